"""Ways to damage a model file: as bytes, as JSON, as arrays."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal.model_file.container import CHECKSUM, DTYPES, KEY, METADATA, PREFIX, checksum

NAMES = [
    "ANN", "NCA", "RVML", "ClassMeanKNN", "ANNClassifier", "Choice", "ANNSearchCV", "Pipeline",
    "StandardScaler", "PCA", "KNeighborsClassifier", "TableModel", "os.system", "RandomForest", "",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 37, 38, 39, 50, 10**6, 2**31, 2**53, 2**63, 2**64, -(2**63),
    10**400, 0.0, 1.0, 0.5, -1.0, 1e-300, 1e300, -1e300, 1e36, 1e37,
    "", "x", "vote", "linear", "rbf", "single", "epanechnikov",
    "\ud800", "\x00", "é" * 50, [], {}, [[]], [1], ["x"], {"float": "nan"}, {"float": "inf"},
    {"tuple": []}, {"tuple": [0]}, {"tuple": [0, 10**9]}, {"items": []}, {"items": [["a", 1]]},
    {"strings": ["a", "b", "c"], "width": 1}, {"strings": ["a"], "width": 2**40},
    {"strings": ["a", "b", "c"], "width": None}, {"array": "components_", "order": "F"},
    {"array": "x", "order": "C"}, {"model": {"class": "NCA", "parameters": {}, "state": None}},
]  # fmt: skip
SIZES = [0, 1, 2, 3, 4, 5, 149, 150, 151, 2**20, 2**31, 2**40, 2**62, 2**63, 2**64, -1, 1.0, None]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e-36, 1e36, 1e38, 1e150, 1e308]
INTEGERS = [-1, 0, 1, 2, 3, 149, 150, 2**31, 2**62, -(2**63)]


@dataclass
class Parts:
    """A file taken apart, so that it can be put together wrongly."""

    entries: dict[str, Any]
    document: dict[str, Any]
    body: bytes

    @classmethod
    def of(cls, data: bytes) -> Parts:
        length = int.from_bytes(data[:PREFIX], "little")
        entries = json.loads(data[PREFIX : PREFIX + length])
        document = json.loads(entries.pop(METADATA)[KEY])
        return cls(entries, document, data[PREFIX + length :])

    def arrays(self) -> dict[str, np.ndarray]:
        found = {}
        for name, entry in self.entries.items():
            begin, end = entry["data_offsets"]
            array = np.frombuffer(self.body[begin:end], DTYPES[entry["dtype"]])
            found[name] = array.reshape(entry["shape"])
        return found

    def signed(self) -> Parts:
        """With a valid checksum, if that is possible at all."""
        with suppress(Exception):  # malformed beyond signing: then as it is
            covered = {k: v for k, v in self.document.items() if k != CHECKSUM}
            self.document[CHECKSUM] = checksum(covered, self.arrays())
        return self

    def pack(self) -> bytes:
        text = json.dumps(self.document)
        header = json.dumps({METADATA: {KEY: text}, **self.entries}).encode("utf-8", "replace")
        return len(header).to_bytes(PREFIX, "little") + header + self.body


Mutation = Callable[[np.random.Generator, bytes, bytes], bytes]


def pick(rng: np.random.Generator, items: list[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


def flip_bits(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        changed[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def flip_header_bits(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    length = PREFIX + int.from_bytes(data[:PREFIX], "little")
    return flip_bits(rng, data[:length], other) + data[length:]


def truncate(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    return data[: int(rng.integers(len(data)))]


def splice(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """A piece of another file, over or between the bytes of this one."""
    at, begin = int(rng.integers(len(data))), int(rng.integers(len(other)))
    piece = other[begin : begin + int(rng.integers(1, 4096))]
    return data[:at] + piece + data[at + (len(piece) if rng.random() < 0.5 else 0) :]


def overwrite(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    at, length = int(rng.integers(len(data))), int(rng.integers(1, 64))
    filler = pick(rng, [b"\x00" * length, b"\xff" * length, rng.bytes(length)])
    return data[:at] + filler + data[at + length :]


def change_length(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    length = int.from_bytes(data[:PREFIX], "little")
    changed = pick(rng, [0, 1, length - 1, length + 8, len(data), 2**24, 2**32, 2**63, 2**64 - 1])
    return changed.to_bytes(PREFIX, "little") + data[PREFIX:]


def nest_deeply(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    parts, depth = Parts.of(data), pick(rng, [30, 500, 20_000])
    if rng.random() < 0.5:
        header = b'{"x":' + b"[" * depth + b"]" * depth + b"}"
        return len(header).to_bytes(PREFIX, "little") + header + parts.body
    text = '{"model":' + "[" * depth + "]" * depth + "}"
    header = json.dumps({METADATA: {KEY: text}, **parts.entries}).encode()
    return len(header).to_bytes(PREFIX, "little") + header + parts.body


def edit_layout(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Dtypes, shapes, places and names of tensors."""
    parts = Parts.of(data)
    if not parts.entries:  # a model without arrays
        return flip_bits(rng, data, other)
    name = pick(rng, list(parts.entries))
    entry = parts.entries[name]
    match int(rng.integers(7)):
        case 0:
            entry["dtype"] = pick(rng, [*DTYPES, "F16", "BF16", "C64", "", None])
        case 1:
            entry["shape"] = [pick(rng, SIZES) for _ in range(int(rng.integers(6)))]
        case 2:
            entry["shape"] = pick(rng, [entry["shape"][::-1], [*entry["shape"], 1]])
        case 3:
            entry["data_offsets"][int(rng.integers(2))] = pick(rng, SIZES)
        case 4:
            twin = parts.entries[pick(rng, list(parts.entries))]
            entry["data_offsets"], twin["data_offsets"] = (
                twin["data_offsets"],
                entry["data_offsets"],
            )
        case 5:
            parts.entries[pick(rng, [*parts.entries, "new"])] = parts.entries.pop(name)
        case 6:
            parts.entries[name] = pick(rng, VALUES)
    return (parts.signed() if rng.random() < 0.5 else parts).pack()


def edit_document(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """Versions, class names, parameters, fields: replaced, removed, exchanged."""
    parts, donor = Parts.of(data), Parts.of(other)
    for _ in range(int(rng.integers(1, 3))):
        container, key = _place(rng, parts.document)
        match int(rng.integers(6)):
            case 0 | 1:
                container[key] = deepcopy(pick(rng, VALUES))
            case 2:
                del container[key]
            case 3 | 4 as which:
                source, name = _place(rng, donor.document if which == 3 else parts.document)
                container[key] = deepcopy(source[name])
            case 5 if isinstance(container, dict):
                container[pick(rng, [*NAMES, "class", "state"])] = deepcopy(pick(rng, VALUES))
            case _:
                container[key] = pick(rng, NAMES)
    return (parts.signed() if rng.random() < 0.8 else parts).pack()


def edit_arrays(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """NaN, infinity, huge and negative numbers, indices out of range; checksum valid."""
    parts = Parts.of(data)
    if not parts.entries:  # a model without arrays
        return flip_bits(rng, data, other)
    arrays = {name: array.copy() for name, array in parts.arrays().items()}
    name = pick(rng, [n for n, a in arrays.items() if a.size] or list(arrays))
    array = arrays[name]
    values = NUMBERS if array.dtype.kind == "f" else INTEGERS
    count = pick(rng, [1, 1, 3, array.size])
    with np.errstate(all="ignore"):
        for _ in range(min(count, 50)):
            new = np.asarray(pick(rng, values)).astype(array.dtype)
            array.reshape(-1)[int(rng.integers(array.size))] = new
    begin, end = parts.entries[name]["data_offsets"]
    parts.body = parts.body[:begin] + array.tobytes() + parts.body[end:]
    return parts.signed().pack()


def resize_arrays(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """An array with rows more or fewer, or of another dtype; everything else consistent."""
    parts = Parts.of(data)
    if not parts.entries:  # a model without arrays
        return flip_bits(rng, data, other)
    arrays = dict(parts.arrays())
    name = pick(rng, list(arrays))
    array = arrays[name]
    axis = int(rng.integers(array.ndim)) if array.ndim else 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[name] = pick(
            rng,
            [
                np.repeat(array, 2, axis=axis),
                np.take(array, range(max(array.shape[axis] - 1, 0)), axis=axis),
                array.astype(pick(rng, list(DTYPES.values()))),
                array.reshape(-1),
                array[:0],
            ],
        )
    body, entries = b"", {}
    names = {dtype: name for name, dtype in DTYPES.items()}
    for key, value in arrays.items():
        place = [len(body), len(body) + value.nbytes]
        shape = list(value.shape)
        entries[key] = {"dtype": names[value.dtype], "shape": shape, "data_offsets": place}
        body += value.tobytes()
    return Parts(entries, parts.document, body).signed().pack()


def _place(rng: np.random.Generator, node: Any) -> tuple[Any, Any]:
    """A (container, key) somewhere below a JSON value that is not empty."""
    while True:
        key = pick(rng, list(node) if isinstance(node, dict) else list(range(len(node))))
        child = node[key]
        if not isinstance(child, dict | list) or not child or rng.random() < 0.15:
            return node, key
        node = child


MUTATIONS: dict[str, tuple[Mutation, float]] = {
    "flip bits": (flip_bits, 1.0),
    "flip header bits": (flip_header_bits, 1.0),
    "truncate": (truncate, 1.0),
    "splice": (splice, 1.0),
    "overwrite": (overwrite, 1.0),
    "header length": (change_length, 0.5),
    "deep nesting": (nest_deeply, 0.2),
    "edit layout": (edit_layout, 2.0),
    "edit document": (edit_document, 4.0),
    "edit arrays": (edit_arrays, 2.0),
    "resize arrays": (resize_arrays, 1.0),
}
