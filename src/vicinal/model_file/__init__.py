"""Model files: fitted models on disk, safe to accept from a stranger.

A model file is a safetensors file: arrays, and in the header one JSON document that names the
class, its parameters and its fitted attributes. Reading it executes nothing that it contains: only
classes of a fixed list are built, from fields that are checked first.

.. code-block:: text

    container    the file: bounded header, strict JSON, checksum, all-or-nothing writing
    encoding     plain values as JSON and arrays
    schema       what a field must be: dtype, shape, range; sizes agree across fields
    entry        how a class is stored; one entry each in estimator_entries, wrapper_entries
    documents    model ⇄ document and arrays
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vicinal._typing import Document
from vicinal.exceptions import ModelFileError
from vicinal.model_file.container import read_arrays, read_document, write_container
from vicinal.model_file.documents import check_complete, from_document, to_document

FORMAT = "vicinal model"
SCHEMA = 1
"""Version of the format. Files of this and of all earlier versions are read."""


def save(model: object, path: str | os.PathLike[str]) -> None:
    """Store a fitted model in a file that is safe to pass on.

    Parameters
    ----------
    model : estimator
        A fitted metric learner or classifier of vicinal, a ``TableModel`` of the command line, or a
        scikit-learn ``Pipeline`` of these with ``StandardScaler``, ``PCA`` and
        ``KNeighborsClassifier``.
    path : str or path
        The file, by convention ``*.vicinal``. It is complete or not there: a temporary file beside
        it is renamed at the end.

    Raises
    ------
    NotFittedError
        The model is not fitted.
    TypeError
        The class is not among the above, or a value is neither number, string nor array: labels
        that are other objects, a ``RandomState``, a loss of your own. Predictions do not need
        parameters: ``model.set_params(random_state=None)`` lets it be saved.
    ModelFileError
        The model has values that no file may have, such as NaN in ``components_``.

    Notes
    -----
    ``callback``, ``memory`` and ``n_jobs`` belong to a run or a machine and are not stored.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> from vicinal.model_file import load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> nca = vc.NCA(n_components=2).fit(X, y)
    >>> path = Path(tempfile.mkdtemp()) / "iris.vicinal"
    >>> save(nca, path)
    >>> bool((load(path).transform(X) == nca.transform(X)).all())
    True
    """
    path = Path(path)
    description, arrays = to_document(model)
    check_complete(model)
    try:
        from_document(description, arrays)  # what could not be loaded is not written
        write_container(path, _document(description), arrays)
    except ModelFileError as error:
        raise ModelFileError(f"the model cannot be saved: {error}") from error


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that :func:`save` has stored: the same predictions, bit for bit.

    Parameters
    ----------
    path : str or path
        The file. It may come from anybody: nothing in it is executed, and what is allocated is in
        proportion to its size.

    Returns
    -------
    model : estimator

    Raises
    ------
    ModelFileError
        The file is truncated, altered, hostile, of a newer version, or not a model file. A
        ``ValueError``.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for its other end
            raise ModelFileError("it is not a regular file")
        with open(path, "rb") as file:
            document, header = read_document(file)
            _check_version(document)
            arrays = read_arrays(file, document, header)
        return from_document(document["model"], arrays)
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {path}: {error}") from error


def _document(description: Document) -> Document:
    from vicinal.version import __version__

    return {"format": FORMAT, "schema": SCHEMA, "vicinal": __version__, "model": description}


def _check_version(document: Document) -> None:
    if document.get("format") != FORMAT or "model" not in document:
        raise ModelFileError("it was not written by vicinal.save")
    schema, version = document.get("schema"), document.get("vicinal")
    if type(schema) is not int or schema < 1 or not isinstance(version, str):
        raise ModelFileError("it does not say which version wrote it")
    if schema > SCHEMA:
        raise ModelFileError(
            f"it was written by vicinal {version[:20]} in format {schema}, and this vicinal reads "
            f"formats up to {SCHEMA}: upgrade vicinal"
        )


__all__ = ["ModelFileError", "load", "save"]
