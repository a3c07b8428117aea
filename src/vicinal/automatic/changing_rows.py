"""Training rows that come and go after a fit: the metrics stay, the voters change.

What votes is described by attributes of the model (``X_fit_``, ``y_fit_``, ``row_weights_``,
``prior_``). Both functions return them for other rows; the model then prepares itself anew at the
next question, as if it had been fitted with these voters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.automatic.committee import Choice
from vicinal.learners.fit_input import on_host
from vicinal.learners.labeled_data import row_weights
from vicinal.voting.row_weights import check_row_numbers
from vicinal.voting.votes import FADING


class VotingAttributes(Protocol):
    """The attributes of a fitted model that are about its training rows."""

    X_fit_: FloatArray
    y_fit_: LabelArray
    row_weights_: FloatArray
    prior_: FloatArray
    oof_rows_: IndexArray
    chosen_: Sequence[Choice]


def known_codes(classes: NDArray[np.generic], y: ArrayLike) -> IndexArray:
    """(n,) codes of labels; a ValueError names one that is not among the classes (c,)."""
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    labels = column_or_1d(on_host(y)).tolist()
    strange = [label for label in labels if label not in code_of]
    if strange:
        raise ValueError(
            f"y has the class {strange[0]!r}, which the fit did not see: there are "
            f"{', '.join(map(repr, list(code_of)[:10]))}. Fit again to have a new class"
        )
    return np.array([code_of[label] for label in labels], dtype=np.intp)


def rows_added(
    model: VotingAttributes, X: FloatArray, votes: LabelArray, sample_weight: ArrayLike | None
) -> dict[str, LabelArray]:
    """The voters of a model and further rows.

    Parameters
    ----------
    model : the fitted model
    X : (k, e) the further rows, as numbers
    votes : (k,) class codes, or (k,) or (k, t) targets
    sample_weight : (k,) what they count; None as much as the mean row of their class
    """
    check_consistent_length(X, votes)
    old = model.row_weights_
    if sample_weight is not None:
        weights = row_weights(X, None, sample_weight, None)
    elif model.y_fit_.dtype.kind == "f":  # targets: there are no classes
        weights = np.full(len(X), old.mean())
    else:
        weights = _class_weights(old, model.y_fit_, len(model.prior_))[votes]
    return {
        "X_fit_": np.concatenate([model.X_fit_, X.astype(model.X_fit_.dtype)]),
        "y_fit_": np.concatenate([model.y_fit_, votes.astype(model.y_fit_.dtype)]),
        "row_weights_": np.concatenate([old, weights]),
    }


def _class_weights(weights: FloatArray, codes: IndexArray, n_classes: int) -> FloatArray:
    """(c,) mean weight of the rows of each class; of all rows, where a class has none."""
    counts = np.bincount(codes, minlength=n_classes)
    sums = np.bincount(codes, weights=weights, minlength=n_classes)
    return np.where(counts > 0, sums / np.maximum(counts, 1), weights.mean())


def rows_forgotten(model: VotingAttributes, rows: ArrayLike) -> dict[str, LabelArray]:
    """The voters of a model without some rows, and where the remaining ones were judged.

    Parameters
    ----------
    model : the fitted model
    rows : (k,) numbers of rows of ``X_fit_``
    """
    n = len(model.X_fit_)
    kept = np.ones(n, dtype=bool)
    kept[check_row_numbers(rows, n)] = False
    fading = [choice.n_neighbors for choice in model.chosen_ if choice.vote in FADING]
    needed = 1 + max(fading, default=0)
    if kept.sum() < needed or not model.row_weights_[kept].any():
        raise ValueError(
            f"{kept.sum()} of {n} rows would remain, and the votes of this model need {needed} "
            "and one of positive weight: forget fewer rows, or fit again"
        )
    changed = {name: getattr(model, name)[kept] for name in ("X_fit_", "y_fit_", "row_weights_")}
    judged = kept[model.oof_rows_]
    new_numbers = np.cumsum(kept) - 1
    changed["oof_rows_"] = new_numbers[model.oof_rows_[judged]].astype(model.oof_rows_.dtype)
    return changed | {
        name: value[judged]
        for name, value in vars(model).items()
        if name.startswith("oof_") and name != "oof_rows_"
    }
