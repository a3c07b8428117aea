"""Warnings that vicinal gives; scikit-learn's ``ConvergenceWarning`` is used where it fits."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning


class ExcludedRowsWarning(UserWarning):
    """Some rows have no similar or no dissimilar sample and are left out of the objective."""


class SaturatedStartWarning(ConvergenceWarning):
    """The objective is flat where the solver started, so nothing was learned."""


__all__ = ["ConvergenceWarning", "ExcludedRowsWarning", "SaturatedStartWarning"]
