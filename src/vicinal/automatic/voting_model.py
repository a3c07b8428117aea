"""Methods of the automatic models that vote over training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.automatic.changing_rows import rows_forgotten
from vicinal.automatic.committee import Choice
from vicinal.features.expansion import Expansion
from vicinal.features.hat_basis import HatBasis
from vicinal.features.kernel_basis import KernelBasis
from vicinal.features.table_encoder import TableEncoder
from vicinal.features.table_values import dense
from vicinal.learners.fit_input import DTYPES, on_host
from vicinal.voting.explanation import Explanation, NeighborVote
from vicinal.voting.forest import Forest
from vicinal.voting.row_weights import Voters
from vicinal.voting.sources import Committee, mean_metric, prepared


class VotingModel:
    """Neighbors, vote weights and explanations of a committee, from its fitted attributes."""

    n_samples_fit_: int
    n_features_in_: int
    encoder_: TableEncoder | None = None  # missing in models stored before there were encoders
    X_fit_: FloatArray
    y_fit_: LabelArray
    row_weights_: FloatArray
    prior_: FloatArray
    oof_rows_: IndexArray
    metrics_: FloatArray
    knots_: FloatArray | None = None  # missing in models stored before there were hat functions
    chosen_: Sequence[Choice]
    forests_: Sequence[Forest] | None = None  # the same
    landmarks_: FloatArray | None = None  # the same
    kernel_scales_: FloatArray | None = None

    def _voters(self) -> Voters:
        """The training rows as voters."""
        raise NotImplementedError

    def _strength(self) -> float:
        """The strength of the calibration of predictions."""
        raise NotImplementedError

    def _labels(self, rows: IndexArray) -> LabelArray:
        """(k,) the labels or numbers that training rows vote for, as they were given."""
        raise NotImplementedError

    def _stated(self, p: FloatArray) -> tuple[object, dict[object, float]]:
        """The prediction that p (c,) stands for, and the probabilities of the classes."""
        raise NotImplementedError

    def _effective(self, queries: FloatArray, weights: csr_array, P: FloatArray) -> FloatArray:
        """(q,) numbers of neighbors that queries of row weights and predictions (q, c) look at."""
        raise NotImplementedError

    def _let_vote(self, voters: dict[str, LabelArray]) -> None:
        """Replace the voters, all attributes at once."""
        raise NotImplementedError

    def vote_weights(self, X: ArrayLike | None = None) -> tuple[csr_array, FloatArray]:
        """Weight of every training row in the predictions.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features) or None
            None asks about the training rows, each of which has no vote about itself.

        Returns
        -------
        weights : sparse array of shape (n_queries, ``n_samples_fit_``)
        prior_share : (n_queries,) array
            What ``prior_`` contributes: with Y the targets of the training rows, of classes one
            column of zeros and ones each, the prediction (``predict_proba``, or ``predict`` of
            numbers) is ``weights @ Y + prior_share[:, None] * prior_``.
        """
        if X is not None:
            return self._committee.sparse_weights(self.unfold(X))
        check_is_fitted(self)
        return self._committee.sparse_weights(self._committee.X, np.arange(self.n_samples_fit_))

    def kneighbors(
        self, X: ArrayLike | None = None, n_neighbors: int = 5, return_distance: bool = True
    ) -> tuple[FloatArray, IndexArray] | IndexArray:
        """Find the training rows with the largest vote weights, largest first.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features) or None
            None asks for the neighbors of the training rows, excluding each row itself.
        n_neighbors : int, default=5
        return_distance : bool, default=True

        Returns
        -------
        distances : (n_queries, n_neighbors) array
            In the metric of :meth:`mean_metric`; only if ``return_distance``.
        indices : (n_queries, n_neighbors) array of rows of the training data
            Where fewer rows than `n_neighbors` vote, the nearest of the others follow.
        """
        check_is_fitted(self)
        own = None if X is not None else np.arange(self.n_samples_fit_)
        committee = self._committee
        queries = committee.X if X is None else self.unfold(X)
        available = self.n_samples_fit_ - (X is None)
        check_scalar(n_neighbors, "n_neighbors", Integral, min_val=1, max_val=available)
        weights, _ = committee.sparse_weights(queries, own)
        distances, indices = committee.neighbors(queries, weights, int(n_neighbors), own)
        return (distances, indices) if return_distance else indices

    def explain(self, X: ArrayLike, n_neighbors: int = 5) -> list[Explanation]:
        """For every row of X the neighbors that decided, and what made them near.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        n_neighbors : int, default=5
            Training rows to list, those with the largest vote weights.

        Returns
        -------
        explanations : list of Explanation
            ``prediction``, ``probabilities`` (of classes), ``neighbors`` (row, label, weight,
            distance and the contribution of every feature to the squared distance),
            ``effective_neighbors``; ``print`` one to see it as a table.
        """
        queries = self.unfold(X)
        check_scalar(n_neighbors, "n_neighbors", Integral, min_val=1)
        committee, k = self._committee, min(int(n_neighbors), self.n_samples_fit_)
        weights, prior_share = committee.sparse_weights(queries)
        P = weights @ committee.rows.targets + np.outer(prior_share, committee.rows.prior)
        _, rows = committee.neighbors(queries, weights, k)
        effective = self._effective(queries, weights, P)
        explanations = []
        for i, x in enumerate(queries):
            parts = self._expansion.contributions(x, committee.X[rows[i]], committee.mean_metric)
            votes = self._votes(weights[[i]].toarray()[0], rows[i], self._by_column(parts))
            votes = self._with_thresholds(x, votes)
            explanations.append(self._explanation(P[i], votes, float(effective[i])))
        return explanations

    def _votes(
        self, shares: FloatArray, rows: IndexArray, parts: FloatArray
    ) -> tuple[NeighborVote, ...]:
        """The votes of some training rows, of shares (n,) and contributions (k, d)."""
        distances = np.sqrt(np.maximum(parts.sum(axis=1), 0.0))
        labels = self._labels(rows)
        return tuple(
            NeighborVote(int(row), label, float(shares[row]), float(distance), part)
            for row, label, distance, part in zip(rows, labels, distances, parts, strict=True)
        )

    def _with_thresholds(
        self, x: FloatArray, votes: tuple[NeighborVote, ...]
    ) -> tuple[NeighborVote, ...]:
        """The votes with the thresholds of forests that separate them from x (p,)."""
        forests, d = self._committee.forests, self.X_fit_.shape[1]
        if not forests:
            return votes
        rows = self.X_fit_[[vote.row for vote in votes]].astype(np.float64)
        total = sum(weight for weight, _ in forests)
        shares = sum(w / total * forest.separations(x[:d], rows) for w, forest in forests)
        return tuple(
            replace(vote, separations=share)
            for vote, share in zip(votes, self._by_column(np.asarray(shares)), strict=True)
        )

    def _explanation(
        self, p: FloatArray, votes: tuple[NeighborVote, ...], effective: float
    ) -> Explanation:
        d = self.n_features_in_
        names = getattr(self, "feature_names_in_", [f"x{feature}" for feature in range(d)])
        listed = float(np.sum([vote.weight for vote in votes]))
        prediction, shares = self._stated(p)
        return Explanation(
            prediction=prediction,
            probabilities=shares,
            neighbors=votes,
            other_weight=1.0 - listed if not shares else max(0.0, 1.0 - listed),
            effective_neighbors=effective,
            feature_names=tuple(str(name) for name in names),
        )

    def forget_rows(self, rows: ArrayLike) -> Self:
        """Let some training rows vote no longer; the metrics stay as they are.

        Parameters
        ----------
        rows : array-like of int
            Their numbers, as :meth:`kneighbors` gives them. The rows that remain are numbered
            from 0 again, in the same order.

        Returns
        -------
        self

        Notes
        -----
        What was learned from the rows (metrics, thresholds of forests, statistics of ``encoder_``)
        remains until the next :meth:`fit`, and so do ``landmarks_``, which are copies of a few
        rows; nothing else of the rows themselves does.
        """
        check_is_fitted(self)
        self._let_vote(rows_forgotten(self, rows))
        return self

    def unfold(self, X: ArrayLike) -> FloatArray:
        """Columns that ``metrics_`` are about.

        They are the features, their hats where there are ``knots_``, and the kernel functions of
        the ``landmarks_`` where there are some.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        columns : (n_samples, p) array
        """
        return self._expanded(self._queries(X))

    def mean_metric(self) -> FloatArray:
        r"""M (p, p), by which :meth:`kneighbors` and :meth:`explain` measure distances.

        Their squares are :math:`\delta^\top M \delta`, with :math:`\delta` the difference of two
        rows of :meth:`unfold`. M is the mean of the members' metrics, each divided by its mean
        squared distance of two training rows; with mode="single", its metric.
        """
        check_is_fitted(self)
        return self._committee.mean_metric.copy()

    def get_mahalanobis_matrix(self) -> FloatArray:
        r"""M (d, d): the metric of mode="single"; for a committee, the mean of its metrics.

        Each is divided by its mean squared distance of two training rows and weighted like its
        member; where metrics are about hat or kernel functions, each of these is replaced by the
        linear function nearest to it. The committee does not predict with this mean (that would
        lose accuracy): it is for maps.
        """
        check_is_fitted(self)
        X, metrics = self.X_fit_.astype(np.float64), self.metrics_
        if self.knots_ is not None or self.landmarks_ is not None:
            metrics = metrics @ self._expansion.slopes(X)
        return mean_metric(X, metrics, self.chosen_)

    def _queries(self, X: ArrayLike) -> FloatArray:
        """X as numbers (n, e); a missing one is filled with the median of the training rows."""
        check_is_fitted(self)
        X = dense(on_host(X))
        if self.encoder_ is not None:
            return np.asarray(self.encoder_.transform(X))
        options = {"dtype": DTYPES, "ensure_all_finite": "allow-nan"}
        numbers = np.asarray(validate_data(self, X, reset=False, **options))
        gaps = np.isnan(numbers)
        return np.where(gaps, np.median(self.X_fit_, axis=0), numbers) if gaps.any() else numbers

    def _expanded(self, X: FloatArray) -> FloatArray:
        """:meth:`unfold` without the checks."""
        return self._expansion.expand(X.astype(np.float64))

    @property
    def _expansion(self) -> Expansion:
        """The map from features to the columns that the metrics are about."""
        hats = None if self.knots_ is None else HatBasis(self.knots_)
        kernel = None
        if self.landmarks_ is not None and self.kernel_scales_ is not None:
            kernel = KernelBasis(self.landmarks_, self.kernel_scales_)
        return Expansion(self.X_fit_.shape[1], hats, kernel)

    def _by_column(self, parts: FloatArray) -> FloatArray:
        """(k, c) sums over all features (k, d) that were made of each column."""
        return parts if self.encoder_ is None else self.encoder_.sum_by_column(parts)

    @prepared(
        "X_fit_", "y_fit_", "row_weights_", "prior_", "metrics_", "knots_", "chosen_",
        "landmarks_", "kernel_scales_", "forests_", "exponent_", "shrinkage_",
    )  # fmt: skip
    def _committee(self) -> Committee:
        """Training rows, metrics, forests and votes, ready for queries."""
        return self._committee_of(np.arange(self.n_samples_fit_))

    def _committee_of(self, rows: IndexArray) -> Committee:
        """The committee with these training rows as voters."""
        return Committee(
            self._expanded(self.X_fit_[rows]),
            self._voters()[rows],
            self.metrics_,
            self.chosen_,
            forests=self.forests_ or (),
            calibration=self._strength(),
            n_features=self.X_fit_.shape[1],
        )
