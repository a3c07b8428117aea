"""The transform of a model as an ONNX graph, or as plain arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from vicinal._typing import FloatArray
from vicinal.atomic_write import atomic_write
from vicinal.exceptions import missing_extra
from vicinal.export.affine import AffineMap, composed, transform_steps, working_dtype
from vicinal.version import __version__

OPSET = 17
IR_VERSION = 8  # of that opset; runtimes of 2022 and later read it
FORMULA = "z = A (x - center) + offset; distance(x, x') = ||z - z'||"


def to_onnx(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write the transform of a model as an ONNX graph.

    The input ``X`` is (n, n_features), the output ``Z`` is (n, n_components), n is free; both are
    float32 if the model was fitted on float32, else float64. Euclidean distances between rows of Z
    are the learned ones.

    Parameters
    ----------
    model : estimator
        A fitted metric learner, an ``ANNClassifier(mode="single")``, an ``ANNSearchCV``, or a
        Pipeline of ``StandardScaler``, ``PCA`` and one of these; a classifier at its end is left
        out.
    path : str or path
        The file, by convention ``*.onnx``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal.export import to_onnx
    >>> nca = vc.NCA(n_components=2).fit(*load_iris(return_X_y=True))
    >>> to_onnx(nca, "iris.onnx")  # doctest: +SKIP
    """
    steps = transform_steps(model)
    transform, dtype = composed(steps), working_dtype(steps)
    try:
        import onnx
    except ImportError as error:
        raise missing_extra("this export", "onnx", "export") from error
    graph = onnx.helper.make_model(
        _graph(transform, dtype),
        producer_name="vicinal",
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(graph, full_check=True)
    with atomic_write(path) as temporary:
        temporary.write_bytes(graph.SerializeToString())


def _graph(transform: AffineMap, dtype: np.dtype[np.floating]) -> Any:
    """Z = (X − center) Aᵀ + offset; what is zero is left out."""
    from onnx import helper, numpy_helper

    constants = {"center": transform.center, "A": transform.A.T, "offset": transform.offset}
    operators = {"center": "Sub", "A": "MatMul", "offset": "Add"}
    used = {name: array for name, array in constants.items() if name == "A" or array.any()}
    values = ["X", *(f"after_{name}" for name in list(used)[:-1]), "Z"]
    kind, (m, d) = helper.np_dtype_to_tensor_dtype(dtype), transform.A.shape
    return helper.make_graph(
        [
            helper.make_node(operators[name], [values[i], name], [values[i + 1]])
            for i, name in enumerate(used)
        ],
        "vicinal",
        [helper.make_tensor_value_info("X", kind, ["n", d])],
        [helper.make_tensor_value_info("Z", kind, ["n", m])],
        [
            numpy_helper.from_array(np.ascontiguousarray(array, dtype=dtype), name)
            for name, array in used.items()
        ],
    )


def to_npy(
    model: BaseEstimator,
    folder: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write the transform of a model as ``.npy`` arrays, and a card ``card.json``.

    The arrays are A (m, d), center (d,) and offset (m,); the card says so, with the formula, their
    shapes and dtypes, and the names of the features where they are known.

    Parameters
    ----------
    model : estimator
        As in :func:`to_onnx`.
    folder : str or path
        It is created if necessary; files of the same names are replaced.
    feature_names : sequence of str, optional
        Of the d entries of x, for the card; default: those that the model was fitted with.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal.export import to_npy
    >>> X, y = load_iris(return_X_y=True)
    >>> nca, folder = vc.NCA(n_components=2).fit(X, y), Path(tempfile.mkdtemp())
    >>> to_npy(nca, folder)
    >>> bool(np.allclose(X @ np.load(folder / "A.npy").T, nca.transform(X)))
    True
    >>> json.loads((folder / "card.json").read_text())["arrays"]["A"]
    {'file': 'A.npy', 'shape': [2, 4], 'dtype': 'float64'}
    """
    steps = transform_steps(model)
    transform, dtype = composed(steps), working_dtype(steps)
    arrays = {
        name: np.ascontiguousarray(getattr(transform, name), dtype=dtype)
        for name in ("A", "center", "offset")
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = feature_names
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    card = _card([type(step).__name__ for step in steps], arrays, names)
    text = json.dumps(card, indent=2, ensure_ascii=False)
    with ExitStack() as stack:  # all are written before the first is renamed, the card last
        temporary = stack.enter_context(atomic_write(folder / "card.json"))
        temporary.write_text(text + "\n", encoding="utf-8")
        for name, array in arrays.items():
            temporary = stack.enter_context(atomic_write(folder / f"{name}.npy"))
            with open(temporary, "wb") as file:
                np.save(file, array, allow_pickle=False)


def _card(
    steps: list[str], arrays: Mapping[str, FloatArray], names: Sequence[str] | None
) -> dict[str, object]:
    return {
        "written_by": f"vicinal {__version__}",
        "steps": steps,
        "formula": FORMULA,
        "arrays": {
            name: {"file": f"{name}.npy", "shape": list(array.shape), "dtype": str(array.dtype)}
            for name, array in arrays.items()
        },
        "feature_names": None if names is None else [str(name) for name in names],
    }
