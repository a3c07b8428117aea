"""A fit sets everything or nothing: refused, interrupted and repeated fits of every learner."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import vicinal as vc

LEARNERS = {
    "ANN": vc.ANN(max_iter=3, similar=3, refresh_every=2),
    "PNCA": vc.PNCA(max_iter=3),
    "NCA": vc.NCA(max_iter=3),
    "LMNN": vc.LMNN(max_iter=3, refresh_every=2),
    "ITML": vc.ITML(max_iter=3, random_state=0),
    "LDML": vc.LDML(max_iter=3),
    "SCML": vc.SCML(max_iter=3, random_state=0),
    "RVML": vc.RVML(kernel="rbf"),
    "GMML": vc.GMML(),
    "BoostMetric": vc.BoostMetric(max_iter=3),
    "MCML": vc.MCML(max_iter=3),
    "LFDA": vc.LFDA(),
    "MMC": vc.MMC(max_iter=3, random_state=0),
    "LSML": vc.LSML(max_iter=3, random_state=0),
    "SDML": vc.SDML(),
    "RCA": vc.RCA(),
}
PACKAGE = str(Path(vc.__file__).parent)
pytestmark = pytest.mark.filterwarnings("ignore")


def samples(n_features, labels, seed):
    rng = np.random.RandomState(seed)
    codes = np.arange(36) % 3
    return rng.standard_normal((36, n_features)) + codes[:, None], np.array(labels)[codes]


FIRST = samples(4, ["a", "b", "c"], 0)
SECOND = samples(6, [5, 6, 7], 1)


@pytest.fixture(params=LEARNERS)
def learner(request):
    return clone(LEARNERS[request.param]).fit(*FIRST)


def state(learner):
    return dict(vars(learner))


def same(before, after):
    """Whether two states are the same objects throughout."""
    return before.keys() == after.keys() and all(before[name] is after[name] for name in before)


class Interrupter:
    """Raise KeyboardInterrupt at the n-th line that is executed inside of vicinal."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
        return self

    def run(self, function):
        sys.settrace(self)
        try:
            function()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


def test_an_interrupted_fit_is_a_whole_one_or_none(learner):
    complete = clone(learner)
    counting = Interrupter(at=0)
    counting.run(lambda: complete.fit(*SECOND))
    rng = np.random.RandomState(0)
    last = np.arange(counting.count - 30, counting.count)  # where attributes are set
    points = np.unique(np.r_[rng.randint(1, counting.count, 12), last[last > 0]])
    kept = 0
    for at in points:
        before = state(learner)
        interrupted = Interrupter(at).run(lambda: learner.fit(*SECOND))
        after = state(learner)
        if same(before, after):
            assert interrupted
            continue
        kept += 1
        assert after.keys() == vars(complete).keys()
        assert learner.n_features_in_ == 6
        np.testing.assert_array_equal(learner.classes_, [5, 6, 7])
        learner.transform(SECOND[0])
        learner.fit(*FIRST)
    assert kept < len(points)


BAD = {
    "NaN": (np.full((36, 6), np.nan), SECOND[1]),
    "lengths": (SECOND[0], SECOND[1][:-1]),
    "one class": (SECOND[0], np.zeros(36)),
    "mixed labels": (SECOND[0], np.array(["x", 1] * 18, dtype=object)),
    "no y": (SECOND[0], None),
    "numbers": (SECOND[0], np.linspace(0, 1, 36)),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_refused_fit_changes_nothing(learner, bad):
    before = state(learner)
    with pytest.raises(ValueError):  # noqa: PT011
        learner.fit(*BAD[bad])
    assert same(before, state(learner))


def test_wrong_parameters_change_nothing(learner):
    names = set(learner.get_params()) & {"tol", "regularization", "t"}
    for name in names:
        changed = clone(learner).set_params(**{name: np.nan})
        changed.__dict__.update({k: v for k, v in vars(learner).items() if k.endswith("_")})
        before = state(changed)
        with pytest.raises(ValueError, match=name):
            changed.fit(*SECOND)
        assert same(before, state(changed))


WEAK = {
    "fit_pairs": ([[0, 3], [0, 1], [1, 2], [1, 4]], [1, 0, 0, 1]),
    "fit_triplets": ([[0, 3, 1], [1, 4, 2], [2, 5, 0]],),
    "fit_quadruplets": ([[0, 3, 1, 2], [1, 4, 2, 0]],),
    "fit_chunks": (np.arange(36) % 3,),
}


def test_nothing_is_left_of_an_earlier_fit(learner):
    pandas = pytest.importorskip("pandas")
    X, y = FIRST
    learner.fit(pandas.DataFrame(X).add_prefix("x"), y).set_threshold(3.0)
    assert list(learner.feature_names_in_) == ["x0", "x1", "x2", "x3"]
    learner.fit(*SECOND)
    assert not hasattr(learner, "feature_names_in_")
    assert not hasattr(learner, "threshold_") or learner.threshold_ != 3.0
    if "refresh_every" in learner.get_params():
        learner.set_params(refresh_every=None)  # given triplets name their targets
    kinds = [name for name in WEAK if hasattr(learner, name)]
    for name in kinds:
        getattr(learner, name)(X, *WEAK[name])
    assert (kinds == []) == hasattr(learner, "classes_")


def test_mixed_labels_are_named(learner):
    with pytest.raises(ValueError, match=r"'x' \(str\) and 1 \(int\)"):
        learner.fit(*BAD["mixed labels"])


NUMBERS = {
    "tol": (np.nan, np.inf, -1.0),
    "regularization": (np.nan, np.inf, -1.0),
    "t": (np.nan, np.inf, -0.1),
    "v": (np.nan, np.inf, -1.0),
    "balance": (np.nan, np.inf, -1.0),
    "sparsity": (np.nan, np.inf, -1.0),
    "beta": (np.nan, np.inf, -1.0),
    "ridge": (np.nan, np.inf, -1.0),
    "perplexity": (np.nan, np.inf, 1.0),
    "gamma": (np.nan, -1.0, 0.0),
    "alpha": (np.nan,),
    "push_weight": (np.nan, np.inf, 1.1),
    "max_iter": (0, 1.5, np.nan),
    "n_components": (0, 7, 1.5),
}


def test_numbers_that_are_not_possible_are_named(learner):
    for name in set(NUMBERS) & set(learner.get_params()):
        for value in NUMBERS[name]:
            changed = clone(learner).set_params(**{name: value})
            with pytest.raises(ValueError, match=name):
                changed.fit(*SECOND)


@pytest.mark.parametrize("scale", [1e154, 1e160, 1e-154, 1e-300, 1e-308])
def test_extreme_units_work_or_are_refused(learner, scale):
    X, y = SECOND
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            learner.fit(X * scale, y)
        except ValueError as error:
            assert "X" in str(error)
            return
    assert np.isfinite(learner.components_).all()
    assert np.isfinite(learner.transform(X * scale)).all()


def test_small_float32(learner):
    X, y = SECOND
    learner.fit((1e-20 * X).astype(np.float32), y)
    assert learner.components_.dtype == np.float32
    assert np.isfinite(learner.components_).all()


@pytest.mark.parametrize("name", ["ANN", "LMNN", "MCML", "LDML"])
def test_principal_directions_where_discriminant_ones_fail(name):
    """No class varies, or every sample is a class of its own but one pair."""
    X = np.repeat(np.eye(4)[:3], 5, axis=0)
    y = np.repeat([0, 1, 2], 5)
    learner = clone(LEARNERS[name]).set_params(init="lda", n_components=2)
    learner.fit(X, y)
    assert learner.components_.shape == (2, 4)
    assert np.isfinite(learner.components_).all()


NAMED = {name: getattr(vc, name) for name in vc.__all__}
EVERY = {
    name: kind() for name, kind in NAMED.items() if isinstance(kind, type) and hasattr(kind, "fit")
}
SHARED = {
    "random_state": (np.nan, -1, 2**32, "x", []),
    "verbose": (np.nan, np.inf, "x", 0.5),
    "warm_start": (np.nan, 2, "x", None),
    "rescale": (np.nan, 2, "x", None),
    "diagonal": (np.nan, 2, "x", None),
    "refit": (np.nan, 2, "x", None),
    "standardize": (np.nan, 2, "x", None),
    "max_levels": (np.nan, np.inf, -1, 0, "x"),
    "kinds": (np.nan, -1, "number", ["a"]),
    "alphas": (np.nan, {}, 1j, 10**400),
    "max_iter": (10**400,),
    "n_neighbors": (10**400,),
    "n_components": (10**400,),
    "effort": (10**400,),
    "init": ({}, set()),
    "bounds": ({},),
}


@pytest.mark.parametrize("name", EVERY)
def test_shared_parameters_are_checked_everywhere(name):
    learner = EVERY[name]
    X, y = FIRST
    y = np.arange(36.0) if name in ("ANNRegressor", "MLKR") else y
    for parameter in sorted(set(learner.get_params(deep=False)) & set(SHARED)):
        if name == "ANNSearchCV" and parameter == "n_neighbors":
            continue  # a list, with a check of its own
        for value in SHARED[parameter]:
            changed = clone(learner).set_params(**{parameter: value})
            before = state(changed)
            with pytest.raises((ValueError, TypeError), match=parameter):
                changed.fit(X, y)
            assert same(before, state(changed))


def test_a_flag_may_be_a_number_or_a_bool_of_numpy():
    for value in (True, False, 1, 0, np.True_, np.int64(1)):
        vc.NCA(max_iter=1, warm_start=value).fit(*FIRST)


def test_a_start_that_overflows_as_a_matrix_is_a_clear_error():
    """L is finite, M = LᵀL is not: there is nothing to project."""
    for solver in ("pgd", "apg"):
        learner = vc.NCA(init=np.eye(4) * 1e200, solver=solver)
        with pytest.raises(ValueError, match="not finite at the start"):
            learner.fit(*FIRST)


def test_metric_learns_names_are_left_as_they_were_by_a_refused_fit():
    from vicinal.compat import metric_learn

    for name in ("LMNN", "NCA", "MLKR", "LSML_Supervised", "MMC_Supervised", "ITML_Supervised"):
        learner = getattr(metric_learn, name)(max_iter=3, random_state=0)
        target = np.arange(36.0) if name == "MLKR" else SECOND[1]
        learner.fit(FIRST[0], target)
        learner.set_params(max_iter=-1)
        before = state(learner)
        with pytest.raises(ValueError, match="max_iter"):
            learner.fit(SECOND[0], target)
        assert same(before, state(learner))


def test_a_huge_effort_tunes_on_all_rows():
    fast = vc.ANNClassifier(effort=1e308, members=["linear"], max_time=5.0, random_state=0)
    assert fast.fit(*FIRST).n_features_in_ == 4
