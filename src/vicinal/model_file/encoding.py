"""Plain values as JSON, and arrays beside it.

==================  ==============================================================
value               in the document
==================  ==============================================================
None, bool, str     as they are
int, finite float   as they are: 1 and 1.0 stay apart, floats are exact
inf, −inf, nan      ``{"float": "inf"}``
list                ``[…]``
tuple               ``{"tuple": […]}``
dict                ``{"items": [[key, value], …]}``
array of numbers    ``{"array": "name of a tensor", "order": "C" | "F"}``
array of strings    ``{"strings": […], "width": characters}``; objects: width null. Many strings
                    are a tensor, the bytes of a JSON list: ``{"strings": "name", …}``
estimator           ``{"model": {…}}`` (:mod:`vicinal.model_file.documents`)
==================  ==============================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import Document, Json
from vicinal.exceptions import ModelFileError
from vicinal.model_file.container import DTYPES, parse_json

MAX_DEPTH = 24  # of nested values; a pipeline in a table model needs about 12
MAX_INTEGER = 2**63 - 1
MANY_STRINGS = 1000  # more of them do not go into the header
MAX_TEXT = 2**26
"""Bytes of all fixed-width arrays of strings, beyond 16 times those of the arrays in the file: one
long string makes all the others as long."""
NONFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

STORED = {dtype.newbyteorder("="): dtype for dtype in DTYPES.values()}


@dataclass
class Encoder:
    """Values to JSON; arrays are collected in ``arrays`` under the names of their place.

    Parameters
    ----------
    encode_model : callable
        ``encode_model(value, name) -> JSON object or None``, for what is not a plain value.
    """

    encode_model: Callable[[object, str], Document | None]
    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def encode(self, value: object, name: str, depth: int = 0) -> Json:
        """The JSON of a value; TypeError names the place of what cannot be stored."""
        if depth > MAX_DEPTH:
            raise TypeError(f"{name} is nested too deeply")
        if value is None or isinstance(value, bool | np.bool_ | str | int | float | np.number):
            return _encode_scalar(value, name)
        if isinstance(value, np.ndarray):
            return self._encode_array(value, name)
        if isinstance(value, list):
            return self._encode_all(value, name, depth)
        if isinstance(value, tuple):
            return {"tuple": self._encode_all(value, name, depth)}
        if isinstance(value, dict):
            return {"items": [self._encode_item(*i, name, depth) for i in value.items()]}
        model = self.encode_model(value, name)
        if model is None:
            raise TypeError(
                f"{name} is {_shorten(value)}, which a model file cannot hold: only numbers, "
                "strings, arrays, lists, dicts and known estimators are stored"
            )
        return {"model": model}

    def _encode_all(self, values: Iterable[object], name: str, depth: int) -> list[Json]:
        return [self.encode(v, f"{name}.{i}", depth + 1) for i, v in enumerate(values)]

    def _encode_item(self, key: object, value: object, name: str, depth: int) -> list[Json]:
        if not isinstance(key, str | int | float | np.generic | None):
            raise TypeError(f"{name} has the key {_shorten(key)}: it must be a string or a number")
        return [_encode_scalar(key, name), self.encode(value, f"{name}.{key}", depth + 1)]

    def _encode_array(self, array: NDArray[np.generic], name: str) -> Json:
        if type(array) is not np.ndarray:  # masked arrays, matrices
            raise TypeError(f"{name} is a {type(array).__name__}: only plain arrays can be stored")
        if array.dtype.kind in "UO":
            return self._encode_strings(array, name)
        if array.dtype.newbyteorder("=") not in STORED or array.ndim > 4:
            raise TypeError(f"{name} has dtype {array.dtype}, {array.ndim} axes: cannot be stored")
        # The order of the memory is kept: matrix products round differently otherwise.
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        stored = np.ascontiguousarray(array.T if fortran else array).reshape(
            array.shape[::-1] if fortran else array.shape
        )
        stored = stored.astype(STORED[array.dtype.newbyteorder("=")], copy=False)
        return {"array": self._keep(stored, name), "order": "F" if fortran else "C"}

    def _encode_strings(self, array: NDArray[np.generic], name: str) -> Json:
        strings = array.tolist()
        if array.ndim != 1 or not all(isinstance(s, str) for s in strings):
            raise TypeError(
                f"{name} holds objects that are not strings, which a model file cannot hold: "
                "use labels that are strings, numbers or booleans"
            )
        width = array.dtype.itemsize // 4 if array.dtype.kind == "U" else None
        node: Json = [str(s) for s in strings]
        if len(strings) > MANY_STRINGS:
            text = json.dumps(node, ensure_ascii=False).encode()
            node = self._keep(np.frombuffer(text, dtype=np.uint8), name)
        return {"strings": node, "width": width}

    def _keep(self, array: NDArray[np.generic], name: str) -> str:
        while name in self.arrays:  # keys of dicts may contain dots
            name += "'"
        self.arrays[name] = array
        return name


@dataclass
class Decoder:
    """JSON to values; every array is to be used exactly once.

    Parameters
    ----------
    arrays : the arrays by name; :meth:`decode` takes them out.
    decode_model : callable
        ``decode_model(JSON, depth) -> estimator``.
    """

    arrays: dict[str, NDArray[np.generic]]
    decode_model: Callable[[Json, int], object]

    def __post_init__(self) -> None:
        """Allow text in proportion to the file."""
        self.text_left = MAX_TEXT + 16 * sum(array.nbytes for array in self.arrays.values())

    def decode(self, node: Json, depth: int = 0) -> Any:
        """The value of this JSON."""
        if depth > MAX_DEPTH:
            raise ModelFileError("its description of the model is nested too deeply")
        if isinstance(node, list):
            return [self.decode(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return _decode_scalar(node)
        match node:
            case {"array": str(name), "order": "C" | "F" as order} if len(node) == 2:
                return self._take(name, order)
            case {"strings": strings, "width": width} if len(node) == 2:
                return self._decode_strings(strings, width)
            case {"tuple": list(items)} if len(node) == 1:
                return tuple(self.decode(items, depth + 1))
            case {"items": list(pairs)} if len(node) == 1:
                return self._decode_items(pairs, depth + 1)
            case {"float": str(name)} if len(node) == 1 and name in NONFINITE:
                return NONFINITE[name]
            case {"model": dict(model)} if len(node) == 1:
                return self.decode_model(model, depth + 1)
        raise ModelFileError(f"its description of the model has an unknown part {_shorten(node)}")

    def _take(self, name: str, order: str) -> NDArray[np.generic]:
        if name not in self.arrays:
            raise ModelFileError(f"array {name[:80]!r} is not in it, or is used twice")
        array = self.arrays.pop(name)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        return array.T if order == "F" else array

    def _decode_strings(self, strings: Json, width: Json) -> NDArray[np.generic]:
        if isinstance(strings, str):
            strings = parse_json(self._take(strings, "C").tobytes(), "an array of strings in it")
        listed = strings if isinstance(strings, list) else [None]
        texts = [text for text in listed if isinstance(text, str)]
        if len(texts) < len(listed):
            raise ModelFileError("an array of strings in it holds something else")
        if width is None:
            return np.array(texts, dtype=object)
        if type(width) is not int or width < max(map(len, texts), default=0):
            raise ModelFileError("the width of an array of strings in it is wrong")
        self.text_left -= 4 * width * max(len(texts), 1)
        if self.text_left < 0:
            raise ModelFileError("arrays of strings in it are too wide: use dtype=object")
        return np.array(texts, dtype=f"<U{width}")

    def _decode_items(self, pairs: list[Json], depth: int) -> dict[object, object]:
        items: dict[object, object] = {}
        for pair in self.decode(pairs, depth):
            is_pair = isinstance(pair, list) and len(pair) == 2
            if not is_pair or not isinstance(pair[0], str | int | float | None):
                raise ModelFileError("a dictionary in it is malformed")
            items[pair[0]] = pair[1]
        return items


def _encode_scalar(value: Any, name: str) -> Json:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        raise TypeError(f"{name} is complex: cannot be stored")
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise TypeError(f"{name} is {_shorten(value)}: an integer beyond 63 bits cannot be stored")
    return value if value is None or isinstance(value, bool) else _plain(value)


def _plain(value: str | int | float) -> str | int | float:
    """Without what a subclass (np.str_, an Enum) adds: JSON would not bring it back."""
    return next(kind(value) for kind in (str, int, float) if isinstance(value, kind))


def _decode_scalar(node: Json) -> Json:
    if isinstance(node, int) and abs(node) > MAX_INTEGER:
        raise ModelFileError("an integer in it is too large")
    return node


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
