"""The attacks of robustness.py, one function each: (seed, number, folder) → (kind, outcome).

An outcome that begins with FAILED is a failure:

* inputs: an error that is not a ValueError or TypeError raised by vicinal or by scikit-learn's
  checks; an estimator that a refused fit has changed; numbers that are not finite; more than 60 s
  of CPU time.
* files: an error other than ModelFileError on loading, any error in using what was loaded, an index
  out of bounds in compiled code, more than 20 s of CPU time.
* interrupts: an estimator that is neither as before nor completely fitted anew.
* kills, full disk: a model file that is not complete, or a temporary file that the next write
  leaves.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

import vicinal as vc

warnings.simplefilter("ignore")
np.seterr(all="ignore")


def _plain_safetensors(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    import json

    from vicinal.model_file.container import DTYPES

    names, header, body = {d: n for n, d in DTYPES.items()}, {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        place = [len(body), len(body) + array.nbytes]
        shape = list(array.shape)
        header[name] = {"dtype": names[array.dtype], "shape": shape, "data_offsets": place}
        body += np.ascontiguousarray(array).tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


try:
    import safetensors.numpy  # noqa: F401
except ImportError:  # a machine without it: the format is simple
    sys.modules["safetensors"] = types.ModuleType("safetensors")
    sys.modules["safetensors.numpy"] = types.ModuleType("safetensors.numpy")
    sys.modules["safetensors.numpy"].save = _plain_safetensors


# ------------------------------------------------------------------------------------ estimators

QUICK = {"max_iter": 4, "max_epochs": 2}
SEARCH = {"alphas": [1.0], "gammas": [1.0], "n_neighbors": [1, 3], "cv": 2}
PARAMETERS: dict[str, list[Any]] = {
    "alpha": [-np.inf, -4.0, -1.0, 0.0, 1e-9, 0.5, 4.0, np.inf, np.nan, "x", 1e300],
    "gamma": [1e-3, 0.5, 1.0, 30.0, np.inf, np.nan, -1.0, None],
    "tol": [0.0, 1e-3, np.nan, np.inf, -1.0],
    "regularization": [0.0, 1e-2, 1e6, np.nan, np.inf, -1.0],
    "t": [0.0, 0.3, 1.0, np.nan, np.inf, 2.0],
    "v": [1e-3, 1.0, np.nan, np.inf, 0.0],
    "ridge": [0.0, 1e-3, np.nan, np.inf],
    "perplexity": [1.5, 5.0, 1e9, np.nan, np.inf, 1.0],
    "push_weight": [0.0, 0.5, 1.0, np.nan, 1.5],
    "n_components": [1, 2, 0, -1, 99, 1.5, None],
    "n_neighbors": [1, 3, 0, 10**6],
    "init": ["pca", "lda", "paper", "identity", "nonsense"],
    "solver": ["auto", "lbfgs", "pgd", "apg", "sgd", "nonsense"],
    "loss": ["hinge", "squared_hinge", "logistic", "linear", "sigmoid", "nonsense", None],
    "similar": ["all", 1, 3, 10**6, 0, "nonsense"],
    "kernel": ["linear", "rbf", "nonsense"],
    "rule": ["vote", "mean", "nonsense"],
    "max_iter": [1, 3, 0, 2.5, np.nan],
    "random_state": [0, None, "x"],
    "effort": [np.nan, -1.0, np.inf, "nonsense"],
    "max_time": [1e-3, np.nan, -1.0, "x"],
    "device": ["cpu", "cpu", "nonsense", None, -1, []],
    "hidden": [(), (8,), [4, 4], (0,), (2.5,), "x", None],
}


ODD: list[Any] = [np.nan, np.inf, -np.inf, -1, 0, 1, 2.5, "nonsense", None, []]
"""For every other parameter that an estimator declares."""


def odd_parameters(model: BaseEstimator) -> list[str]:
    """The parameters that are given odd values."""
    known = set(model.get_params(deep=False))
    return sorted(known & (set(PARAMETERS) | set(getattr(model, "_constraints", {}))))


CHOSEN: list[str] = []
"""Names of the estimators that are attacked; empty for all of them."""


@cache
def estimators() -> dict[str, BaseEstimator]:
    """The chosen public estimators, with networks if there is PyTorch; settings make them quick."""
    kinds = {name: getattr(vc, name) for name in vc.__all__}
    if find_spec("torch") is not None:
        from vicinal import deep

        kinds |= {name: getattr(deep, name) for name in ("DeepANN", "DeepANNRegressor")}
    found = {}
    for name, kind in kinds.items():
        if CHOSEN and name not in CHOSEN:
            continue
        if isinstance(kind, type) and issubclass(kind, BaseEstimator):
            model = kind(vc.ANN(max_iter=2)) if name == "ANNSearchCV" else kind()
            quick = SEARCH if name == "ANNSearchCV" else QUICK
            known = model.get_params(deep=False)
            found[name] = model.set_params(**{k: v for k, v in quick.items() if k in known})
    return found


SLOW = ("ANNClassifier", "ANNRegressor", "ANNSearchCV", "DeepANN", "DeepANNRegressor")


def pick_estimator(rng: np.random.Generator) -> tuple[str, BaseEstimator]:
    names = list(estimators())
    weights = np.array([0.25 if name in SLOW else 1.0 for name in names])
    name = names[int(rng.choice(len(names), p=weights / weights.sum()))]
    return name, clone(estimators()[name])


def samples(rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows and labels: ordinary ones, then one to three things done to them."""
    n, d, classes = int(rng.integers(2, 41)), int(rng.integers(1, 7)), int(rng.integers(1, 6))
    y: Any = rng.integers(classes, size=n)
    X: Any = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
    for _ in range(int(rng.integers(0, 3))):
        X, y = CHANGES[int(rng.integers(len(CHANGES)))](rng, X, y)
    for change in (_dtype, _labels, _container):
        if rng.random() < 0.25:
            X, y = change(rng, X, y)
    return X, y


def _some(rng: np.random.Generator, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _cell(rng: np.random.Generator, X: Any, y: Any) -> tuple[Any, Any]:
    X = X.copy()
    X[int(rng.integers(len(X))), int(rng.integers(X.shape[1]))] = _some(
        rng, [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 1e160, 0.0]
    )
    return X, y


CHANGES: list[Callable[..., tuple[Any, Any]]] = [
    _cell,
    lambda rng, X, y: (X * 10.0 ** int(rng.integers(-320, 309)), y),
    lambda rng, X, y: (X * 10.0 ** rng.integers(-150, 151, X.shape[1]), y),
    lambda rng, X, y: (X + 10.0 ** int(rng.integers(0, 17)), y),
    lambda rng, X, y: (np.repeat(X[:1], len(X), axis=0), y),
    lambda rng, X, y: (X[rng.integers(len(X), size=len(X))], y),
    lambda rng, X, y: (np.c_[X, X[:, :1]], y),
    lambda rng, X, y: (np.c_[X, np.ones(len(X))], y),
    lambda rng, X, y: (np.round(X), y),
    lambda rng, X, y: (X, np.arange(len(X))),
    lambda rng, X, y: (X, np.zeros(len(X), dtype=int)),
    lambda rng, X, y: (X, np.where(np.arange(len(y)) == 0, 77, y)),
    lambda rng, X, y: (X, y[: max(len(y) - 1, 0)]),
    lambda rng, X, y: (np.tile(X, (1, 8)), y),
]


def _dtype(rng: np.random.Generator, X: Any, y: Any) -> tuple[Any, Any]:
    kind = _some(rng, [np.float32, np.float32, np.float16, np.int64, object, complex, str])
    return X.astype(kind), y


def _labels(rng: np.random.Generator, X: Any, y: Any) -> tuple[Any, Any]:
    words = np.array(["a", "b", "c\n", "=d", "é"])[y % 5]
    mixed = np.array([str(v) if i % 2 else v for i, v in enumerate(y)], dtype=object)
    ways = [words, words.astype(object), mixed, y.astype(float), y + 0.5, y > 1, None, y[:, None]]
    return X, _some(rng, [*ways, np.where(y > 1, np.nan, y)])


def _container(rng: np.random.Generator, X: Any, y: Any) -> tuple[Any, Any]:
    rows = X[..., None] if rng.random() < 0.2 else np.asfortranarray(X)
    return _some(rng, [rows, X[:0], X[0], X.tolist(), X[:, :0], None]), y


# ---------------------------------------------------------------------------------------- inputs


def attack_input(seed: int, number: int, folder: Path) -> tuple[str, str]:
    """Fit an estimator, perhaps with odd parameters, to odd data; then use it."""
    rng = np.random.default_rng([seed, number, 1])
    name, model = pick_estimator(rng)
    X, y = samples(rng)
    for key in map(str, rng.permutation(odd_parameters(model))):
        if rng.random() < 0.12 and not (name == "ANNSearchCV" and key == "n_neighbors"):
            model.set_params(**{key: _some(rng, PARAMETERS.get(key, ODD))})
    before = dict(vars(model))
    with time_limit(60):
        try:
            model.fit(X, y)
        except (ValueError, TypeError) as error:
            if not raised_on_purpose(error):
                return name, "FAILED: an error from inside\n" + traceback.format_exc()
            if vars(model).keys() != before.keys():
                return name, "FAILED: a refused fit has left attributes"
            return name, "refused"
        except BaseException:
            return name, "FAILED: fit\n" + traceback.format_exc()
        try:
            return name, use(model, X)
        except BaseException:
            return name, "FAILED: use\n" + traceback.format_exc()


def raised_on_purpose(error: BaseException) -> bool:
    """Whether the statement that raised it is a raise in vicinal or in scikit-learn's checks."""
    if isinstance(error, np.linalg.LinAlgError):
        return False
    if "not supported for the input types" in str(error) or "could not convert" in str(error):
        return True  # NumPy's words for strings and objects, which scikit-learn lets through
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = Path(last.filename)
    ours = Path(vc.__file__).parent in place.parents and "raise" in (last.line or "")
    return bool(str(error)) and (ours or "sklearn" in place.parts)


def use(model: Any, X: Any) -> str:
    """Whether what a fitted model says of its own rows is finite."""
    for attribute in ("components_", "metrics_"):
        if not np.isfinite(np.asarray(getattr(model, attribute, 0.0), dtype=float)).all():
            return f"FAILED: {attribute} is not finite"
    for method in ("transform", "predict", "predict_proba"):
        if not hasattr(model, method):
            continue
        result = np.asarray(getattr(model, method)(X))
        if result.dtype.kind == "f" and not np.isfinite(result).all():
            return f"FAILED: {method} is not finite"
    return "fitted"


class time_limit:  # noqa: N801
    """Raise TimeoutError after some seconds of CPU time: other work on the machine is not ours."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def give_up(signum: int, frame: object) -> None:
            raise TimeoutError(f"more than {self.seconds} s")

        signal.signal(signal.SIGPROF, give_up)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)


# ----------------------------------------------------------------------------------------- files


@cache
def model_files(folder: Path) -> tuple[list[bytes], Any]:
    import bench_fuzz

    place = folder.parent / f"vicinal-specimens-{os.getpid()}"
    place.mkdir(exist_ok=True)
    try:
        return bench_fuzz.specimens(place), bench_fuzz.example_table()
    finally:
        for path in place.iterdir():
            path.unlink()
        place.rmdir()


def attack_file(seed: int, number: int, folder: Path) -> tuple[str, str]:
    """Load a damaged or crafted model file, and predict with it if it loads."""
    import bench_fuzz
    from fuzz_mutations import MUTATIONS, pick

    files, table = model_files(folder.parent)
    rng = np.random.default_rng([seed, number, 2])
    weights = np.array([weight for _, weight in MUTATIONS.values()])
    kind = list(MUTATIONS)[int(rng.choice(len(weights), p=weights / weights.sum()))]
    path = folder / "mutated.vicinal"
    path.unlink(missing_ok=True)
    path.write_bytes(MUTATIONS[kind][0](rng, pick(rng, files), pick(rng, files)))
    with time_limit(20):
        outcome = bench_fuzz.try_file(path, table)
    ok = outcome in ("refused", "loads and predicts")
    return kind, outcome if ok else f"FAILED: {outcome}"


# ------------------------------------------------------------------------------------ interrupts


def fixed_samples(d: int, labels: list[Any], seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.arange(60) % 3
    return rng.standard_normal((60, d)) + codes[:, None], np.array(labels)[codes]


FIRST, SECOND = fixed_samples(4, [1, 2, 3], 0), fixed_samples(6, [5, 6, 7], 1)


@cache
def fitted(name: str) -> tuple[BaseEstimator, set[str], float]:
    """A model of the first samples, and attributes and seconds of a fit to the second ones."""
    model = clone(estimators()[name])
    clone(model).fit(*SECOND)  # compiles
    begin = time.perf_counter()
    complete = clone(model).fit(*SECOND)
    return model.fit(*FIRST), set(vars(complete)), time.perf_counter() - begin


def attack_interrupt(seed: int, number: int, folder: Path) -> tuple[str, str]:
    """Ctrl-C at a random moment of a second fit."""
    from copy import copy

    rng = np.random.default_rng([seed, number, 3])
    name = list(estimators())[number % len(estimators())]
    original, complete, seconds = fitted(name)
    model = copy(original)
    before, arrived = dict(vars(model)), []

    def interrupt(signum: int, frame: object) -> None:
        arrived.append(True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    raised = False
    try:
        signal.setitimer(signal.ITIMER_REAL, max(1e-5, rng.random() * seconds))
        model.fit(*SECOND)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        raised = True
    except BaseException:
        return name, "FAILED: another error\n" + traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    after = vars(model)
    if not arrived:
        return name, "after the end"
    if after.keys() == before.keys() and all(after[key] is before[key] for key in before):
        return name, "as before" if raised else "FAILED: fit returned without a result"
    if set(after) != complete or model.n_features_in_ != 6:
        return name, "FAILED: a mixture of two fits"
    outcome = use(model, SECOND[0])
    return name, "fitted anew" if outcome == "fitted" else outcome


# --------------------------------------------------------------------------- kills and full disks


@cache
def two_models() -> tuple[Any, Any]:
    """Models whose files differ in size; large enough that writing takes a while."""
    X = np.random.default_rng(0).standard_normal((20_000, 20))
    y = np.arange(len(X)) % 3
    return vc.ClassMeanKNN(3).fit(X, y), vc.ClassMeanKNN(5).fit(X[:5000], y[:5000])


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process, which ends with 0, or with 1 after an error."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except OSError:
            os._exit(2)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return pid


def look(path: Path) -> str:
    """The model file must be one of the two, and the next write leaves nothing else."""
    try:
        neighbors = vc.load(path).n_neighbors
    except BaseException:
        return "FAILED: the file\n" + traceback.format_exc()
    left = len(os.listdir(path.parent)) > 1
    vc.save(vc.GMML().fit(*FIRST), path)
    if os.listdir(path.parent) != [path.name]:
        return f"FAILED: left behind: {os.listdir(path.parent)}"
    removed = ", temporary file removed" if left else ""
    return ("old file" if neighbors == 5 else "new file") + removed


def attack_kill(seed: int, number: int, folder: Path) -> tuple[str, str]:
    """kill -9 at a random moment while a model file is replaced."""
    rng = np.random.default_rng([seed, number, 4])
    place = folder / f"kill-{number}"
    place.mkdir()
    path = place / "model.vicinal"
    new, old = two_models()
    vc.save(old, path)
    pid = in_child(lambda: vc.save(new, path))
    time.sleep(float(rng.random()) * save_seconds())
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        return "save", "after the end" if code == 0 else f"FAILED: exit status {code}"
    return "save", look(path)


@cache
def save_seconds() -> float:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        begin = time.perf_counter()
        for _ in range(5):
            vc.save(two_models()[0], Path(name) / "model")
    return (time.perf_counter() - begin) / 5


def attack_full_disk(seed: int, number: int, folder: Path) -> tuple[str, str]:
    """No room after some bytes (a limit on the size of files, which needs no privileges)."""
    rng = np.random.default_rng([seed, number, 5])
    place = folder / f"full-{number}"
    place.mkdir()
    path = place / "model.vicinal"
    new, old = two_models()
    vc.save(old, path)
    room = int(rng.integers(0, 3_000_000))

    def save_without_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        vc.save(new, path)

    _, status = os.waitpid(in_child(save_without_room), 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 2:
        return "save", f"FAILED: exit status {code} instead of an OSError"
    if os.listdir(place) != [path.name]:
        return "save", f"FAILED: left behind: {os.listdir(place)}"
    outcome = look(path)
    return "save", outcome if outcome.startswith(("FAILED", "old")) else "FAILED: the new file"


ATTACKS: dict[str, Callable[[int, int, Path], tuple[str, str]]] = {
    "inputs": attack_input,
    "files": attack_file,
    "interrupts": attack_interrupt,
    "kills": attack_kill,
    "full disk": attack_full_disk,
}
