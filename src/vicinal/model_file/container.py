"""One JSON document and named arrays in one safetensors file, with a checksum over both.

A safetensors file is: 8 bytes, the length of the header (little-endian); the header, JSON; the
tensors. The header names every tensor with dtype, shape and place, and holds texts under
``__metadata__``. It is read with bounds, and checked before anything is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import Document, Json
from vicinal.atomic_write import atomic_write
from vicinal.exceptions import ModelFileError

Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]

KEY = "vicinal"
"""Where the document is among the texts of the header; one key, so that files are reproducible."""

CHECKSUM = "sha256"
"""Where the checksum is in the document; it covers everything else."""

MAX_HEADER = 16 * 2**20
"""Bytes of the largest header that is read; a header holds parameters and labels, no arrays."""

METADATA = "__metadata__"
PREFIX = 8  # bytes of the header's length

DTYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
"""What a tensor may consist of."""


def write_container(path: Path, document: Document, arrays: Arrays) -> None:
    """Write to a temporary file in the same folder and rename it: all or nothing."""
    from safetensors.numpy import save

    signed = {**document, CHECKSUM: checksum(document, arrays)}
    text = json.dumps(signed, ensure_ascii=False, allow_nan=False)
    if len(json.dumps(text)) > MAX_HEADER // 2:  # the other half: names and places of the tensors
        raise ModelFileError(
            "its labels, names and parameters do not fit into the header of a file: "
            f"{len(text):,} characters, at most about {MAX_HEADER // 2:,}"
        )
    data = save(dict(arrays), metadata={KEY: text})
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(data)


def read_document(file: BufferedReader) -> tuple[Document, Header]:
    """The document of an open file, checksum included, and the header: no array is read yet."""
    header = read_header(file)
    if KEY not in header.texts:
        raise ModelFileError("it was not written by vicinal.save")
    document = parse_json(header.texts[KEY], "its description of the model")
    if not isinstance(document, dict):
        raise ModelFileError("its description of the model is not a JSON object")
    return document, header


def read_arrays(
    file: BufferedReader, document: Document, header: Header
) -> dict[str, NDArray[np.generic]]:
    """Read the arrays, which are as large as the rest of the file, and compare the checksum."""
    arrays = {}
    for tensor in header.tensors:
        try:
            array = np.empty(tensor.shape, tensor.dtype)
        except MemoryError as error:
            raise ModelFileError(f"its arrays do not fit into memory: {error}") from error
        if file.readinto(_bytes(array)) != array.nbytes:
            raise ModelFileError("it is truncated")
        arrays[tensor.name] = array
    covered = {name: value for name, value in document.items() if name != CHECKSUM}
    if document.get(CHECKSUM) != checksum(covered, arrays):
        raise ModelFileError("it was altered or damaged: its checksum does not match")
    return arrays


def checksum(document: Document, arrays: Arrays) -> str:
    """SHA-256 of the document, keys sorted, and of name, dtype, shape and bytes of every array."""
    digest = hashlib.sha256()
    for part in [document, *({n: [a.dtype.str, a.shape]} for n, a in sorted(arrays.items()))]:
        digest.update(_canonical(part))
    for _, array in sorted(arrays.items()):
        digest.update(_bytes(array))
    return digest.hexdigest()


def _canonical(value: Document) -> bytes:
    try:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
        return text.encode() + b"\n"
    except RecursionError as error:
        raise ModelFileError("its description of the model is nested too deeply") from error
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise ModelFileError("a text in it is not valid Unicode") from error


def _bytes(array: NDArray[np.generic]) -> memoryview:
    """The bytes of a C-contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


# ----------------------------------------------------------------------------------- the header


@dataclass(frozen=True)
class Tensor:
    """The place of a tensor: bytes [begin, end) behind the header."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """Tensors in the order of the file, without gaps, and the texts beside them."""

    tensors: tuple[Tensor, ...]
    texts: dict[str, str]


def read_header(file: BufferedReader) -> Header:
    """Read the header of an open file; the file is then at the first tensor."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):  # a pipe would wait, a device never end
        raise ModelFileError("it is not a regular file")
    prefix = file.read(PREFIX)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < PREFIX or length > status.st_size - PREFIX:
        raise ModelFileError("it is truncated, or not a model file")
    if length > MAX_HEADER:
        raise ModelFileError(f"its header has {length:,} bytes; at most {MAX_HEADER:,} are read")
    raw = file.read(length)
    if len(raw) < length:
        raise ModelFileError("it is truncated")
    entries = parse_json(raw, "its header")
    if not isinstance(entries, dict):
        raise ModelFileError("its header is not a JSON object")
    texts = entries.pop(METADATA, {})
    if not isinstance(texts, dict) or not all(isinstance(v, str) for v in texts.values()):
        raise ModelFileError("its header has no readable metadata")
    tensors = sorted((_tensor(*item) for item in entries.items()), key=lambda t: (t.begin, t.end))
    _check_coverage(tensors, status.st_size - PREFIX - length)
    return Header(tuple(tensors), texts)


def parse_json(raw: bytes | str, what: str) -> Any:
    """Parse JSON strictly: no name twice, only finite numbers, no bottomless nesting."""
    try:
        return json.loads(
            raw,
            object_pairs_hook=_distinct,
            parse_constant=_finite,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ModelFileError(f"{what} is not valid JSON") from error


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name occurs twice")
    return names


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text} is beyond the range of numbers")
    return float(text)


def _tensor(name: str, entry: object) -> Tensor:
    problem = ModelFileError(f"its entry for tensor {name[:80]!r} is malformed")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise problem
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2 or len(shape) > 4:
        raise problem
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise problem
    begin, end = offsets
    if end - begin != math.prod(shape) * DTYPES[dtype].itemsize:
        raise problem
    if math.prod(size or 1 for size in shape) >= 2**60:  # NumPy refuses it even where a size is 0
        raise problem
    return Tensor(name, DTYPES[dtype], tuple(shape), begin, end)


def _are_sizes(values: object) -> bool:
    """Whether these are non-negative integers that fit into 63 bits."""
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**63 for v in values)


def _check_coverage(tensors: list[Tensor], available: int) -> None:
    """Tensors follow one another from the header to the end: no gap, no overlap, nothing else."""
    position = 0
    for tensor in tensors:
        if tensor.begin != position:
            raise ModelFileError(f"tensor {tensor.name[:80]!r} is not where it should be")
        position = tensor.end
    if position != available:
        raise ModelFileError(f"it holds {available:,} bytes of arrays and declares {position:,}")
