"""A model as a document and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from vicinal._typing import Document, Json
from vicinal.exceptions import ModelFileError
from vicinal.model_file.encoding import Decoder, Encoder
from vicinal.model_file.entry import Entry, Values
from vicinal.model_file.estimator_entries import ESTIMATORS
from vicinal.model_file.schema import check_fields
from vicinal.model_file.wrapper_entries import WRAPPERS

ENTRIES: dict[str, Entry] = {**ESTIMATORS, **WRAPPERS}
"""The classes that a model file may name. Nothing else is ever imported or called."""

PARTS = {"class", "parameters", "state"}


def entry_of(model: object) -> Entry | None:
    """The entry of exactly this class: a subclass may hold more than its parent."""
    entry = ENTRIES.get(type(model).__name__)
    return entry if entry and entry.load_class() is type(model) else None


def to_document(model: object) -> tuple[Document, dict[str, NDArray[np.generic]]]:
    """Describe a model.

    Returns
    -------
    description : JSON object, ``{"class": …, "parameters": {…}, "state": {…}}``
    arrays : what the description refers to
    """

    def encode_model(value: object, name: str) -> Document | None:
        entry = entry_of(value)
        if entry is None:
            return None
        prefix = f"{name}." if name else ""
        state = entry.state_of(value)
        return {
            "class": type(value).__name__,
            "parameters": {
                key: encoder.encode(item, f"{prefix}{key}")
                for key, item in entry.parameters_of(value).items()
            },
            "state": None
            if state is None
            else {key: encoder.encode(item, f"{prefix}{key}") for key, item in state.items()},
        }

    encoder = Encoder(encode_model)
    description = encode_model(model, "")
    if description is None:
        known = ", ".join(sorted(ENTRIES))
        raise TypeError(f"a {type(model).__name__} cannot be stored; a model file holds {known}")
    return description, encoder.arrays


def from_document(description: Json, arrays: dict[str, NDArray[np.generic]]) -> Any:
    """The model of a description; ModelFileError where it is not one."""

    def decode_model(node: Json, depth: int) -> object:
        if not isinstance(node, dict) or set(node) != PARTS or not isinstance(node["class"], str):
            raise ModelFileError("its description of the model is incomplete")
        name = node["class"]
        if name not in ENTRIES:
            raise ModelFileError(f"it holds a {name[:80]!r}, which this version does not know")
        parameters = _decode_values(decoder, node["parameters"], depth)
        state = None if node["state"] is None else _decode_values(decoder, node["state"], depth)
        try:
            return _build(ENTRIES[name], parameters, state)
        except (ValueError, TypeError, OverflowError) as error:
            raise ModelFileError(f"the {name} in it is not valid: {error}") from error

    decoder = Decoder(dict(arrays), decode_model)
    model = decode_model(description, 0)
    try:
        check_complete(model)
    except (NotFittedError, TypeError) as error:
        raise ModelFileError(str(error)) from error
    if decoder.arrays:
        raise ModelFileError(f"array {min(decoder.arrays)[:80]!r} in it belongs to nothing")
    return model


def check_complete(model: object) -> None:
    """Refuse what is not fitted (NotFittedError), or only a part of a model (TypeError)."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    elif not hasattr(model, "predict"):
        raise TypeError(f"a {type(model).__name__} is only a part of a model")


def _decode_values(decoder: Decoder, node: Json, depth: int) -> Values:
    if not isinstance(node, dict):
        raise ModelFileError("its description of the model is malformed")
    return {name: decoder.decode(item, depth) for name, item in node.items()}


def _build(entry: Entry, parameters: Values, state: Values | None) -> object:
    unknown = set(parameters) - entry.parameter_names()
    if unknown:
        raise ValueError(f"parameter {min(unknown)!r} is unknown")
    sizes: dict[str, int] = {}
    relevant = {f.name: parameters[f.name] for f in entry.parameters if f.name in parameters}
    check_fields(entry.parameters, relevant, sizes)
    if state is not None:
        check_fields(entry.state, state, sizes)
    elif not entry.stateless:
        return entry.load_class()(**parameters)  # not fitted: a parameter of another estimator
    model = entry.from_state(entry.load_class(), parameters, state or {})
    entry.check(model)
    return model
