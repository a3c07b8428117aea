"""The transform as an ONNX graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from vicinal.atomic_write import whole_file
from vicinal.export.affine import AffineMap, affine_map, working_dtype
from vicinal.export.extras import missing_extra

OPSET = 17
IR_VERSION = 8  # what goes with it: runtimes of 2022 and later read it


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
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
    transform, dtype = affine_map(model), working_dtype(model)
    try:
        import onnx
    except ImportError as error:
        raise missing_extra("onnx") from error
    graph = onnx.helper.make_model(
        _graph(transform, dtype),
        producer_name="vicinal",
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(graph, full_check=True)
    with whole_file(path) as temporary:
        temporary.write_bytes(graph.SerializeToString())


def _graph(transform: AffineMap, dtype: np.dtype[Any]) -> Any:
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
