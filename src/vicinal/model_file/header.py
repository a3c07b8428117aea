"""The header of a safetensors file, read with bounds and checked before anything is allocated.

A file is: 8 bytes, the length of the header (little-endian); the header, JSON; the tensors. The
header names every tensor with dtype, shape and place, and holds texts under ``__metadata__``.
"""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

import numpy as np

from vicinal.exceptions import ModelFileError

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


@dataclass(frozen=True)
class Tensor:
    """Where a tensor is: bytes [begin, end) behind the header."""

    name: str
    dtype: np.dtype[Any]
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
        raise ModelFileError("it is truncated, or no model file")
    if length > MAX_HEADER:
        raise ModelFileError(f"its header has {length:,} bytes; at most {MAX_HEADER:,} are read")
    raw = file.read(length)
    if len(raw) < length:
        raise ModelFileError("it is truncated")
    entries = parse_json(raw, "its header")
    if not isinstance(entries, dict):
        raise ModelFileError("its header is no JSON object")
    texts = entries.pop(METADATA, {})
    if not isinstance(texts, dict) or not all(isinstance(v, str) for v in texts.values()):
        raise ModelFileError("its header has no readable metadata")
    tensors = sorted((_tensor(*item) for item in entries.items()), key=lambda t: (t.begin, t.end))
    _check_coverage(tensors, status.st_size - PREFIX - length)
    return Header(tuple(tensors), texts)


def parse_json(raw: bytes | str, what: str) -> Any:
    """Parse JSON strictly: no name twice, no NaN, no bottomless nesting."""
    try:
        return json.loads(raw, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ModelFileError(f"{what} is not valid JSON") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name occurs twice")
    return names


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _tensor(name: str, entry: Any) -> Tensor:
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


def _are_sizes(values: Any) -> bool:
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
