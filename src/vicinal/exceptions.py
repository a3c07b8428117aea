"""Warnings and errors of vicinal; scikit-learn's ``ConvergenceWarning`` is used where it fits."""

from __future__ import annotations

import inspect
import warnings

from sklearn.exceptions import ConvergenceWarning


class ExcludedRowsWarning(UserWarning):
    """Some rows have no similar or no dissimilar sample and are left out of the objective."""


class SaturatedStartWarning(ConvergenceWarning):
    """The objective is flat where the solver started, so nothing was learned."""


class ModelFileError(ValueError):
    """A model file cannot be read: it is truncated, altered, of a newer version, or none at all."""


class TableError(ValueError):
    """A table cannot be used as it is; the message names the column and says what to do."""


class TableWarning(UserWarning):
    """A table was read in a way that its writer may not have meant; the message says how."""


class TimeLimitWarning(UserWarning):
    """The time given was used up; what was found until then is returned."""


class IdentifierColumnWarning(UserWarning):
    """A column looks like a row number or an identifier, which tells nothing about new rows."""


class UnseenLevelWarning(UserWarning):
    """Rows have levels that did not occur in training; they are taken as none of the known."""


def missing_extra(user: str, package: str, extra: str) -> ImportError:
    """The error to raise where a package of an optional extra is not installed."""
    return ImportError(f"{user} needs {package}: pip install 'vicinal[{extra}]'", name=package)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called into vicinal, however deep inside the warning arises."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "vicinal":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


__all__ = [
    "ConvergenceWarning",
    "ExcludedRowsWarning",
    "IdentifierColumnWarning",
    "ModelFileError",
    "SaturatedStartWarning",
    "TableError",
    "TableWarning",
    "TimeLimitWarning",
    "UnseenLevelWarning",
    "missing_extra",
    "warn_user",
]
