"""Where the data sets come from: a folder, or OpenML; sizes and checksums are verified.

A file of a folder is compared with the manifest; of a download scikit-learn compares the checksum
with the one that OpenML states, and its size is compared here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.manifest import DATASETS, DatasetInfo
from vicinal._typing import IndexArray


@dataclass(frozen=True)
class Dataset:
    """Samples X (n, d), in whatever type they are stored, and labels y (n,) of 0 … c − 1."""

    name: str
    X: NDArray[Any]
    y: IndexArray
    source: str
    """``sha256:…`` of the content where it is the manifest's, ``openml:…`` otherwise."""


class DatasetUnavailable(Exception):
    """A data set that cannot be had, or is not what it ought to be; the message says why."""


def load(name: str, folder: Path | None = None) -> Dataset:
    """A data set of the manifest, from the first place that has it.

    Parameters
    ----------
    name : one of ``manifest.DATASETS``
    folder : holds ``<name>.npz`` with arrays X and y; None is the folder that the environment
        variable VICINAL_DATA names. Where neither has it, scikit-learn's OpenML cache is asked,
        and filled if OpenML can be reached.

    Raises
    ------
    DatasetUnavailable
        With the reason. A run leaves such a set out and says so.
    """
    if name not in DATASETS:
        raise DatasetUnavailable(f"{name!r} is unknown; known are {', '.join(DATASETS)}")
    info = DATASETS[name]
    if folder is None and os.environ.get("VICINAL_DATA"):
        folder = Path(os.environ["VICINAL_DATA"]).expanduser()
    path = None if folder is None else folder / f"{name}.npz"
    if path is not None and path.is_file():
        return _from_file(info, path)
    if info.openml is not None:
        return _from_openml(info)
    raise DatasetUnavailable(
        f"{name}.npz is not in {folder or 'a folder that VICINAL_DATA names'}, and OpenML does "
        "not have it in this form; name a folder with VICINAL_DATA or --data"
    )


def load_available(
    names: Iterable[str], folder: Path | None = None
) -> tuple[dict[str, Dataset], dict[str, str]]:
    """The data sets that can be had, and for each of the others the reason why not.

    Parameters
    ----------
    names, folder : as in :func:`load`
    """
    loaded, missing = {}, {}
    for name in names:
        try:
            loaded[name] = load(name, folder)
        except DatasetUnavailable as reason:
            missing[name] = str(reason)
    return loaded, missing


def checksum(X: NDArray[Any], y: IndexArray) -> str:
    """SHA-256 of the content, whatever the types it is stored in.

    Parameters
    ----------
    X, y : (n, d) and (n,)
    """
    digest = hashlib.sha256(np.ascontiguousarray(X, dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(y, dtype="<i8").tobytes())
    return digest.hexdigest()


def _from_file(info: DatasetInfo, path: Path) -> Dataset:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
        found = checksum(X, y)
    except Exception as error:  # cut off, damaged, no archive, text among the features
        raise DatasetUnavailable(
            f"{path.name} cannot be read: {type(error).__name__}: {error}"
        ) from error
    _check_sizes(info, X, y, path.name)
    if found != info.sha256:
        raise DatasetUnavailable(
            f"{path.name} has the right size but other content: SHA-256 {found[:12]}…, "
            f"expected {info.sha256[:12]}…"
        )
    return Dataset(info.name, X, y.astype(np.intp), f"sha256:{found[:12]}")


def _from_openml(info: DatasetInfo) -> Dataset:
    from sklearn.datasets import fetch_openml

    try:
        frame = fetch_openml(data_id=info.openml, as_frame=False, parser="liac-arff")
        X = np.asarray(frame.data, dtype=np.float64)
    except Exception as error:  # no network, a broken download, text among the features
        raise DatasetUnavailable(
            f"{info.name}.npz is in no folder (VICINAL_DATA, --data), and OpenML's number "
            f"{info.openml} cannot be had: {type(error).__name__}: {error}"
        ) from error
    y = np.unique(np.asarray(frame.target), return_inverse=True)[1]
    where = f"openml:{info.openml}"
    _check_sizes(info, X, y, where)
    return Dataset(info.name, X, y, where)


def _check_sizes(info: DatasetInfo, X: NDArray[Any], y: IndexArray, where: str) -> None:
    found = (*X.shape, len(np.unique(y)))
    if found != info.shape or y.shape != (len(X),):
        raise DatasetUnavailable(
            f"{where} has (rows, features, classes) = {found}, expected {info.shape}"
        )
