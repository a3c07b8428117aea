"""Pair verification: are these two the same, given a distance and a threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d

from vicinal._typing import FloatArray

Strategy: TypeAlias = Literal["accuracy", "f_beta", "max_tpr", "max_tnr"]


class PairVerifier:
    """What a metric learner needs to say "similar" or "dissimilar" of a pair.

    A pair is called similar where its learned distance is at most ``threshold_``.
    """

    threshold_: float
    pair_distance: Callable[[ArrayLike], FloatArray]

    def predict_pairs(self, pairs: ArrayLike) -> NDArray[np.bool_]:
        """Whether each pair is similar: its distance is at most ``threshold_``.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)

        Returns
        -------
        similar : ndarray of bool of shape (n_pairs,)
        """
        check_is_fitted(self, "components_")
        if not hasattr(self, "threshold_"):
            raise NotFittedError(
                f"{type(self).__name__} has no threshold yet: call calibrate_threshold with "
                "validation pairs, or set_threshold, before predict_pairs"
            )
        return np.asarray(self.pair_distance(pairs) <= self.threshold_)

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs similar up to this distance."""
        check_is_fitted(self, "components_")
        self.threshold_ = float(threshold)
        return self

    def calibrate_threshold(
        self,
        pairs: ArrayLike,
        similar: ArrayLike,
        *,
        strategy: Strategy = "accuracy",
        beta: float = 1.0,
        min_rate: float | None = None,
    ) -> Self:
        """Choose the threshold on validation pairs, which ``fit`` should not have seen.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
        similar : array-like of shape (n_pairs,)
            Booleans, 1/0 or +1/−1.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}, default="accuracy"
            What the threshold maximizes: the accuracy, the F-beta score of "similar", the true
            positive rate where the true negative rate is at least ``min_rate``, or the reverse.
        beta : float, default=1.0
            How much recall counts against precision in "f_beta".
        min_rate : float in [0, 1], optional
            The bound of "max_tpr" and "max_tnr".

        Returns
        -------
        self
        """
        distances = self.pair_distance(pairs)
        truth = column_or_1d(similar) > 0
        if len(truth) != len(distances):
            raise ValueError(f"similar has {len(truth)} entries for {len(distances)} pairs")
        if truth.all() or not truth.any():
            raise ValueError("a threshold needs both similar and dissimilar validation pairs")
        self.threshold_ = best_threshold(distances, truth, strategy, beta, min_rate)
        return self


def best_threshold(
    distances: FloatArray,
    similar: NDArray[np.bool_],
    strategy: Strategy,
    beta: float = 1.0,
    min_rate: float | None = None,
) -> float:
    """The threshold of the best score; midway between two distances, the smallest of equals."""
    order = np.argsort(distances, kind="stable")
    d, truth = distances[order].astype(np.float64), similar[order]
    # Calling the k nearest pairs similar, for every k that does not cut through equal distances.
    positives = np.concatenate([[0], np.cumsum(truth)])  # true positives among the k nearest
    k = np.arange(len(d) + 1)
    possible = np.concatenate([[True], d[1:] > d[:-1], [True]])
    n_similar = positives[-1]
    tpr = positives / n_similar
    tnr = 1.0 - (k - positives) / (len(d) - n_similar)
    score = _score(strategy, positives, k, n_similar, tpr, tnr, beta, min_rate)
    best = int(np.argmax(np.where(possible, score, -np.inf)))
    if best == 0:
        return float(np.nextafter(d[0], -np.inf))
    if best == len(d):
        return float(d[-1])
    return float(0.5 * (d[best - 1] + d[best]))


def _score(
    strategy: Strategy,
    positives: FloatArray,
    k: NDArray[np.intp],
    n_similar: int,
    tpr: FloatArray,
    tnr: FloatArray,
    beta: float,
    min_rate: float | None,
) -> FloatArray:
    if strategy == "accuracy":
        return tpr * n_similar + tnr * (len(k) - 1 - n_similar)
    if strategy == "f_beta":
        return (1 + beta**2) * positives / (beta**2 * n_similar + k)
    if strategy in ("max_tpr", "max_tnr"):
        if min_rate is None or not 0 <= min_rate <= 1:
            raise ValueError(f"strategy={strategy!r} needs min_rate in [0, 1], got {min_rate!r}")
        goal, bound = (tpr, tnr) if strategy == "max_tpr" else (tnr, tpr)
        return np.where(bound >= min_rate, goal, -1.0)
    raise ValueError(
        f"strategy={strategy!r} is unknown; use 'accuracy', 'f_beta', 'max_tpr' or 'max_tnr'"
    )
