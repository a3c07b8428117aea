"""The paper's fifteen data sets, read from a folder or from OpenML and verified.

The content of a file is compared with a known checksum. For a download, scikit-learn compares the
checksum with the one that OpenML states, and the size is compared here.
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

from vicinal._typing import IndexArray


@dataclass(frozen=True)
class DatasetInfo:
    """Known facts about a data set: its size and the checksum of its content."""

    name: str
    label: str
    """As the paper's Table 2 calls it."""
    n: int
    d: int
    n_classes: int
    sha256: str
    """Of the bytes of X as little-endian float64 rows, then of y as little-endian int64."""
    openml: int | None = None
    """Number of the same data set at OpenML, where all its features are numbers there too."""
    differs: str = ""
    """Difference from the paper's data set, or possible difference."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n, self.d, self.n_classes


_TABLE = """
Iris 150 4 3 61 aa06b8008ceba42efc654be0f83fdafc786239c9e8f13146044d078f5aab8f23
Wine 178 13 3 187 3a28849ef2366c4b9d4e382b3fa5624a66f693c04d7fdcf43c529bbb0bb338d7
Glass 214 9 6 41 e1b78599150c764bf917f2760574bb05bb53bb09afeb78c58591762d8e85c1c5
Solar 323 12 6 - e7d974664707dec6fd10d13ea5afed91f4954449625d282cb55922c5b614cb17
Ecoli 336 7 8 39 6a374a295ef290f78d7aa390a060e0bfabffa4ff08ba43a1317250267d3439f6
Cars 392 8 2 - a09bf14ea241aa89d8ade48af926a394def888b367ba9a014d25f548d77f226c
Monk1 432 6 2 - f934daacaea2ae17fdf57cafe06602dbe70c14085a587360205ae57c40db06c7
Australian 690 14 2 40981 fde0bc54aaacda42fa6492da6ef8fb27baf09802eea938e88f6900dcbd2bde33
Vehicle 846 18 4 54 9e89c2bf022b80460e4cc9d43942113e9ba11652e8f3b8a6be1885c4edf927f8
German 1000 20 2 - 6309fd3ad067c86f803d348cb3761e4f92194efff72e2ec5ae0ba4eb594de664
Coil20 1440 1024 20 - 08d4965f65ef0d72d5b97e83a20f23555f81357b12f8cda42c94a8a9dea4bb49
Isolet 1560 617 26 - 1f89b486514dcb0d06ef33e13025c94cc17edc1cbdf12c4112eef63c9088e787
USPS 9298 256 10 41082 5c9e7c6fcfaef26f82d9eff34225422e1b319986c2f22fbe428ace97c483abb8
Pendigits 10992 16 10 32 17147845ca6d0696da2668de47d4f902d550d4d4bbdeaa56b69b6024b7219c3c
Letter 20000 16 26 6 8990c1257da286165b4ebf7e87d4440e05221d55c67a4411b822845c9b9515e3
"""
"""Label, rows, features, classes, number at OpenML, SHA-256."""


_DIFFERS = {
    "ecoli": "7 features; the paper counts 343, which are these and one for each of the 336 names",
    "cars": "the paper says neither label nor eighth feature: here USA or not, and the name's rank",
    "isolet": "26 classes, the letters; the paper counts 2 and does not say which",
}


def _parse(line: str) -> DatasetInfo:
    label, n, d, c, openml, digest = line.split()
    number = None if openml == "-" else int(openml)
    name = label.lower()
    differs = _DIFFERS.get(name, "")
    return DatasetInfo(name, label, int(n), int(d), int(c), digest, number, differs)


_ALL = [_parse(line) for line in _TABLE.strip().splitlines()]

DATASETS = {info.name: info for info in _ALL}
"""All data sets by name, the smallest first."""

SMALLEST = tuple(DATASETS)[:8]
"""The eight smallest data sets: all methods, 30 splits take 30 minutes on 2 cores."""


@dataclass(frozen=True)
class Dataset:
    """Samples X (n, d), in whatever type they are stored, and labels y (n,) of 0 … c − 1."""

    name: str
    X: NDArray[Any]
    y: IndexArray
    source: str
    """``sha256:…`` of the content where it is known, ``openml:…`` otherwise."""


class DatasetUnavailable(Exception):
    """Raised for a data set that cannot be loaded or has unexpected content."""


def load(name: str, folder: Path | None = None) -> Dataset:
    """Load a data set from the first place that has it.

    Parameters
    ----------
    name : one of `DATASETS`
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
    """Load the available data sets; for each of the others, return the reason.

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
