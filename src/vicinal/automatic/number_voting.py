"""Prediction, intervals and further rows of a committee that averages numbers."""

from __future__ import annotations

from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_array, check_is_fitted

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.automatic.changing_rows import rows_added
from vicinal.automatic.intervals import conformal_quantiles, residual_scales
from vicinal.automatic.voting_model import VotingModel
from vicinal.learners.fit_input import on_host
from vicinal.voting.row_weights import TargetRows
from vicinal.voting.sources import Committee, prepared


class NumberVotingModel(VotingModel):
    """A committee that averages numbers."""

    y_fit_: FloatArray
    shrinkage_: float
    oof_predictions_: FloatArray
    oof_scales_: FloatArray

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the target of every row of X: an average over training rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
        return_std : bool, default=False

        Returns
        -------
        y : (n_queries,) array, or (n_queries, n_targets) if y was given like that
        std : array of the same shape
            Standard deviations of the errors to be expected; only with ``return_std``.
        """
        queries = self.unfold(X)
        predicted = self._like_targets(self._committee.predictions(queries))
        if not return_std:
            return predicted
        sizes = np.sqrt(np.mean(self._scores**2, axis=0))
        return predicted, self._like_targets(self._scales(queries) * sizes)

    def predict_quantiles(self, X: ArrayLike, q: ArrayLike) -> FloatArray:
        """Quantiles of the target of every row of X, ascending in q.

        The prediction plus quantiles of residuals out of fold. These are divided by their own
        scales first and multiplied by that of the row: the mean absolute residual of the training
        rows that vote for it, by their weights.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
        q : float or array-like of shape (n_quantiles,)
            Between 0 and 1.

        Returns
        -------
        quantiles : (n_queries, n_quantiles) array
            (n_queries, n_targets, n_quantiles) if y was given with several columns.
        """
        check_is_fitted(self)
        shares = np.atleast_1d(np.asarray(q, dtype=np.float64)).ravel()
        for share in shares.tolist():
            _check_share("q", share)
        queries = self.unfold(X)
        scores = conformal_quantiles(self._scores, shares)  # (s, t)
        centers, scales = self._committee.predictions(queries), self._scales(queries)
        found = centers[:, :, None] + scales[:, :, None] * scores.T
        return found[:, 0] if self.y_fit_.ndim == 1 else found

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> FloatArray:
        """Interval that contains the target of a further row with this probability.

        Its ends are quantiles (:meth:`predict_quantiles`) with the same share outside of each. The
        probability is that over rows like those of the fit, not for each row by itself.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
        coverage : float, default=0.9

        Returns
        -------
        interval : (n_queries, 2) array, lower and upper ends
            (n_queries, n_targets, 2) if y was given with several columns.
        """
        _check_share("coverage", coverage)
        return self.predict_quantiles(X, [(1.0 - coverage) / 2, (1.0 + coverage) / 2])

    def effective_neighbors(self, X: ArrayLike) -> FloatArray:
        """Number of neighbors that predictions average over, (n,): 1/Σ w² of weights of sum 1."""
        queries = self.unfold(X)
        weights, _ = self._committee.sparse_weights(queries)
        return _counts(weights)

    def add_rows(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Let further rows vote; the metrics stay as they are.

        The model is then the same as one that was prepared with all these rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Columns as in :meth:`fit`; ``encoder_`` makes numbers of them.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            What each row counts, where the mean training row of :meth:`fit` counts 1. By default
            as much as the mean row now.

        Returns
        -------
        self

        Notes
        -----
        They are the last rows of ``X_fit_``, which :meth:`kneighbors` counts from 0. ``prior_``
        becomes the weighted mean of all targets. What tuning has found stays, that on which
        intervals are based (``oof_predictions_``, ``oof_scales_``) included.
        """
        X = self._queries(X)
        Y = check_array(on_host(y), ensure_2d=False, dtype=np.float64, input_name="y")
        if Y.shape[1:] != self.y_fit_.shape[1:]:
            raise ValueError(f"y has the shape {Y.shape}, that of the fit {self.y_fit_.shape}")
        self._let_vote(rows_added(self, X, Y, sample_weight))
        return self

    def _let_vote(self, voters: dict[str, LabelArray]) -> None:
        targets, weights = voters["y_fit_"], voters["row_weights_"]
        prior = weights @ targets.reshape(len(targets), -1) / weights.sum()
        n = {"n_samples_fit_": len(targets)}
        self.__dict__ = {**vars(self), **voters, **n, "prior_": prior}

    def _voters(self) -> TargetRows:
        return TargetRows(_columns(self.y_fit_), self.row_weights_, self.prior_)

    def _strength(self) -> float:
        return self.shrinkage_

    def _labels(self, rows: IndexArray) -> LabelArray:
        return self.y_fit_[rows]

    def _stated(self, p: FloatArray) -> tuple[object, dict[object, float]]:
        return (float(p[0]) if self.y_fit_.ndim == 1 else p), {}

    def _effective(self, queries: FloatArray, weights: csr_array, P: FloatArray) -> FloatArray:
        return _counts(weights)

    def _like_targets(self, values: FloatArray) -> FloatArray:
        """(n, t), or (n,) if y was given like that."""
        return values[:, 0] if self.y_fit_.ndim == 1 else values

    @property
    def _residuals(self) -> FloatArray:
        """(t, q) of the rows tuned on, out of fold."""
        return _columns(self.y_fit_[self.oof_rows_] - self.oof_predictions_)

    @property
    def _scores(self) -> FloatArray:
        """(t, q) the residuals, divided by their scales."""
        return self._residuals / _columns(self.oof_scales_)

    def _scales(self, queries: FloatArray) -> FloatArray:
        """(n, q) mean absolute residuals of the near rows that vote for queries (n, p)."""
        found = np.empty((len(queries), len(self.prior_)))
        committee, residuals = self._tuned_committee, self._residuals
        for block in committee.batches(len(queries)):
            weights = committee.local_weights(queries[block])
            found[block] = residual_scales(weights, residuals)
        return found

    @prepared(
        "X_fit_", "y_fit_", "row_weights_", "prior_", "metrics_", "knots_", "chosen_",
        "forests_", "shrinkage_", "oof_rows_",
    )  # fmt: skip
    def _tuned_committee(self) -> Committee:
        """The rows tuned on as the only voters; theirs are the residuals that are known."""
        if len(self.oof_rows_) == self.n_samples_fit_:
            return self._committee
        return self._committee_of(self.oof_rows_)


def _check_share(name: str, value: float) -> None:
    check_scalar(value, name, Real)
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} == {value!r}, must be between 0 and 1")


def _columns(values: FloatArray) -> FloatArray:
    """(n, t) of values (n,) or (n, t)."""
    return values.reshape(len(values), -1)


def _counts(weights: csr_array) -> FloatArray:
    """(q,) (Σ |w|)² / Σ w²."""
    sums, squares = abs(weights).sum(axis=1), (weights**2).sum(axis=1)
    return np.asarray(sums) ** 2 / np.maximum(np.asarray(squares), 1e-300)
