"""One JSON document and named arrays in one safetensors file, with a checksum over both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.atomic_write import whole_file
from vicinal.exceptions import ModelFileError
from vicinal.model_file.header import MAX_HEADER, Header, parse_json, read_header

Document: TypeAlias = dict[str, Any]
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

KEY = "vicinal"
"""Where the document is among the texts of the header; one key, so that files are reproducible."""

CHECKSUM = "sha256"
"""Where the checksum is in the document; it covers everything else."""


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
    with whole_file(path) as unfinished:
        unfinished.write_bytes(data)


def read_document(file: BufferedReader) -> tuple[Document, Header]:
    """The document of an open file, checksum included, and the header: no array is read yet."""
    header = read_header(file)
    if KEY not in header.texts:
        raise ModelFileError("it was not written by vicinal.save")
    document = parse_json(header.texts[KEY], "its description of the model")
    if not isinstance(document, dict):
        raise ModelFileError("its description of the model is no JSON object")
    return document, header


def read_arrays(
    file: BufferedReader, document: Document, header: Header
) -> dict[str, NDArray[Any]]:
    """Read the arrays, which are as large as the rest of the file, and compare the checksum."""
    arrays = {}
    for tensor in header.tensors:
        array = np.empty(tensor.shape, tensor.dtype)
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


def _bytes(array: NDArray[Any]) -> memoryview:
    """The bytes of a C-contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data
