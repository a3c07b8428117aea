"""The model that is served: read from a file, and again when the file has been replaced."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from vicinal.model_file import load
from vicinal.serve.served_model import ServedModel, served

logger = logging.getLogger("vicinal.serve")

Stamp: TypeAlias = tuple[int, int, int]
"""What changes when a file is replaced: time, size and number."""


@dataclass(frozen=True)
class LoadedModel:
    """A model, and which one it is: a request uses one from its beginning to its end."""

    model: ServedModel
    version: int
    """Counts files read and changes of rows, from 1."""


class ModelSource:
    """The current model of a file; requests that use an earlier one are not disturbed by changes.

    Parameters
    ----------
    path : Path
        Of the model file; an error here is raised, later ones are kept in ``last_error``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_error: str | None = None
        self._changing = threading.Lock()
        self._stamp = self._stamp_now()
        self.current = LoadedModel(self._read(), 1)

    def refresh(self) -> bool:
        """Read the file again if it has been replaced; whether there is a new model.

        A file that cannot be read leaves the model as it is. Rows that were added or forgotten
        belong to the model before, and are lost.
        """
        with self._changing:
            try:
                stamp = self._stamp_now()
                if stamp == self._stamp:
                    return False
                self._stamp = stamp
                model = self._read()
            except (OSError, ValueError, TypeError) as error:
                self.last_error = f"the replaced file was not read: {type(error).__name__}"
                logger.warning("%s: %s", self.path, error)
                return False
            self._replace(model)
            self.last_error = None
            logger.info("%s was read again", self.path)
            return True

    def change(self, change: Callable[[ServedModel], ServedModel]) -> LoadedModel:
        """Replace the model by one that is made from it; one change at a time."""
        with self._changing:
            model = change(self.current.model)
            model.warm_up()
            return self._replace(model)

    def _read(self) -> ServedModel:
        model = served(load(self.path))
        model.warm_up()
        return model

    def _replace(self, model: ServedModel) -> LoadedModel:
        self.current = LoadedModel(model, self.current.version + 1)
        return self.current

    def _stamp_now(self) -> Stamp:
        found = os.stat(self.path)
        return found.st_mtime_ns, found.st_size, found.st_ino
