"""The transform as plain arrays, with a card that says what they are."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vicinal.atomic_write import whole_file
from vicinal.export.affine import affine_map, transform_steps, working_dtype

FORMULA = "z = A (x - center) + offset; distance(x, x') = ||z - z'||"


def to_npy(
    model: Any, folder: str | os.PathLike[str], *, feature_names: Sequence[str] | None = None
) -> None:
    """Write the transform of a model as ``.npy`` arrays, and a card ``card.json``.

    The arrays are A (m, d), center (d,) and offset (m,); the card says so, with the formula, their
    shapes and dtypes, and the names of the features where they are known.

    Parameters
    ----------
    model : estimator
        As in :func:`to_onnx`.
    folder : str or path
        It is created if need be; files of the same names are replaced.
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
    transform, dtype = affine_map(model), working_dtype(model)
    arrays = {
        name: np.ascontiguousarray(getattr(transform, name), dtype=dtype)
        for name in ("A", "center", "offset")
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        with whole_file(folder / f"{name}.npy") as temporary, open(temporary, "wb") as file:
            np.save(file, array, allow_pickle=False)
    # The card comes last: where it is, the arrays are.
    with whole_file(folder / "card.json") as temporary:
        card = json.dumps(_card(model, arrays, feature_names), indent=2, ensure_ascii=False)
        temporary.write_text(card + "\n", encoding="utf-8")


def _card(model: Any, arrays: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    from vicinal.version import __version__

    if names is None:
        names = getattr(model, "feature_names_in_", None)
    return {
        "written_by": f"vicinal {__version__}",
        "steps": [type(step).__name__ for step in transform_steps(model)],
        "formula": FORMULA,
        "arrays": {
            name: {"file": f"{name}.npy", "shape": list(array.shape), "dtype": str(array.dtype)}
            for name, array in arrays.items()
        },
        "feature_names": None if names is None else [str(name) for name in names],
    }
