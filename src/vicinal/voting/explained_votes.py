"""A prediction as a weighted vote over training rows, and the way back to them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.committee import Choice
from vicinal.features.hat_basis import HatBasis
from vicinal.learners.base import DTYPES
from vicinal.learners.triplet_margins import factor
from vicinal.objective.soft_average import soft_average
from vicinal.voting.explanation import Explanation, NeighborVote, contributions
from vicinal.voting.row_weights import Committee, Projection
from vicinal.voting.votes import Electorate


class ExplainedVotes:
    """What a fitted committee can tell about its predictions."""

    classes_: NDArray[Any]
    n_samples_fit_: int
    X_fit_: FloatArray
    y_fit_: IndexArray
    row_weights_: FloatArray
    prior_: FloatArray
    metrics_: FloatArray
    knots_: FloatArray | None = None  # missing in models stored before features were unfolded
    chosen_: Sequence[Choice]

    def vote_weights(self, X: Any) -> tuple[csr_array, FloatArray]:
        """What every training row contributes to the prediction.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)

        Returns
        -------
        weights : sparse array of shape (n_queries, n_samples_fit_)
        prior_share : (n_queries,) array
            What the class shares contribute: with Y the one-hot labels of the training rows,
            ``predict_proba(X) = weights @ Y + prior_share[:, None] * prior_``.
        """
        return self._committee().row_shares(self.unfold(X))

    def kneighbors(self, X: Any = None, n_neighbors: int = 5, return_distance: bool = True) -> Any:
        """The training rows with the largest vote weights, largest first.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features) or None
            None asks for the neighbors of the training rows; no row is then its own.
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
        queries = self._placed(self.X_fit_) if X is None else self.unfold(X)
        available = self.n_samples_fit_ - (X is None)
        check_scalar(n_neighbors, "n_neighbors", Integral, min_val=1, max_val=available)
        committee = self._committee()
        weights, _ = committee.row_shares(queries, own)
        M = committee.mean_metric()
        distances, indices = _ranked_voters(committee.X, M, queries, weights, own, int(n_neighbors))
        return (distances, indices) if return_distance else indices

    def explain(self, X: Any, n_neighbors: int = 5) -> list[Explanation]:
        """For every row of X the neighbors that decided, and what made them near.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        n_neighbors : int, default=5
            Training rows to list, those with the largest vote weights.

        Returns
        -------
        explanations : list of Explanation
            ``prediction``, ``probabilities``, ``neighbors`` (row, label, weight, distance and the
            contribution of every feature to the squared distance), ``effective_neighbors``;
            ``print`` one to see it as a table.
        """
        X = self.unfold(X)
        check_scalar(n_neighbors, "n_neighbors", Integral, min_val=1)
        committee = self._committee()
        weights, prior_share = committee.row_shares(X)
        P = weights @ np.eye(len(self.classes_))[self.y_fit_] + np.outer(prior_share, self.prior_)
        M, k = committee.mean_metric(), min(n_neighbors, self.n_samples_fit_)
        _, rows = _ranked_voters(committee.X, M, X, weights, None, k)
        effective = self._effective(committee, X, P)
        return [
            self._explanation(
                self._by_feature(contributions(X[i], committee.X[rows[i]], M)),
                P[i],
                weights[[i]].toarray()[0],
                rows[i],
                effective[i],
            )
            for i in range(len(X))
        ]

    def _by_feature(self, parts: FloatArray) -> FloatArray:
        """(k, d) sums over the columns of each feature, of parts (k, p)."""
        return parts if self.knots_ is None else HatBasis(self.knots_).by_feature(parts)

    def _explanation(
        self,
        parts: FloatArray,
        p: FloatArray,
        shares: FloatArray,
        rows: IndexArray,
        effective: float,
    ) -> Explanation:
        distances = np.sqrt(np.maximum(parts.sum(axis=1), 0.0))
        labels = self.classes_[self.y_fit_[rows]]
        votes = tuple(
            NeighborVote(int(row), label, float(shares[row]), float(distance), part)
            for row, label, distance, part in zip(rows, labels, distances, parts, strict=True)
        )
        names = getattr(self, "feature_names_in_", [f"x{f}" for f in range(parts.shape[1])])
        return Explanation(
            prediction=self.classes_[np.argmax(p)],
            probabilities=dict(zip(self.classes_.tolist(), p.tolist(), strict=True)),
            neighbors=votes,
            other_weight=max(0.0, 1.0 - float(shares[rows].sum())),
            effective_neighbors=float(effective),
            feature_names=tuple(str(name) for name in names),
        )

    def effective_neighbors(self, X: Any) -> FloatArray:
        """How many neighbors the metrics look at, (n,): the K of the paper's Lemma 3.

        The mean of the K smallest squared distances to the predicted class equals their soft
        average at exponent 1, at which the metrics were learned; averaged over the members.
        """
        X, committee = self.unfold(X), self._committee()
        return self._effective(committee, X, committee.probabilities(X))

    def _effective(self, committee: Committee, X: FloatArray, P: FloatArray) -> FloatArray:
        winners = P.argmax(axis=1)
        counts = np.zeros(len(X))
        for choice in self.chosen_:
            for q in choice.metrics:
                L = Projection.of(self.metrics_[q])
                Z, references = L.project(X), L.project(committee.X)
                for label in np.unique(winners):
                    won = winners == label
                    D = cdist(Z[won], references[self.y_fit_ == label], "sqeuclidean")
                    counts[won] += choice.weight / len(choice.metrics) * effective_counts(D)
        return counts

    def _queries(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=DTYPES, reset=False))

    def unfold(self, X: Any) -> FloatArray:
        """What ``metrics_`` are about: the features, and their hats where there are ``knots_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        columns : (n_samples, p) array
        """
        return self._placed(self._queries(X))

    def mean_metric(self) -> FloatArray:
        r"""M (p, p), by which :meth:`kneighbors` and :meth:`explain` measure distances.

        Their squares are :math:`\delta^\top M \delta`, with :math:`\delta` the difference of two
        rows of :meth:`unfold`. M is the mean of the members' metrics, each divided by its mean
        squared distance of two training rows; with mode="single", its metric.
        """
        check_is_fitted(self)
        return self._committee().mean_metric()

    def _committee(self) -> Committee:
        return self._committee_of(self._placed(self.X_fit_), self.metrics_)

    def _committee_of(self, rows: FloatArray, metrics: FloatArray) -> Committee:
        voters = Electorate(self.y_fit_, self.row_weights_, self.prior_)
        return Committee(rows, voters, metrics, self.chosen_)

    def _placed(self, X: FloatArray) -> FloatArray:
        """:meth:`unfold` without the checks."""
        X = X.astype(np.float64)
        return X if self.knots_ is None else HatBasis(self.knots_).expand(X)


def _ranked_voters(
    X: FloatArray,
    M: FloatArray,
    queries: FloatArray,
    weights: csr_array,
    own: IndexArray | None,
    k: int,
) -> tuple[FloatArray, IndexArray]:
    """(q, k) distances in the metric M and rows of X (n, p), by their vote weights (q, n)."""
    L = factor(M)
    center = X.mean(axis=0)
    Z, references = (queries - center) @ L.T, (X - center) @ L.T
    indices = np.empty((len(queries), k), dtype=np.intp)
    distances = np.empty((len(queries), k))
    for i, z in enumerate(Z):
        to_all = np.linalg.norm(references - z, axis=1)
        shares = weights[[i]].toarray()[0]
        if own is not None:
            to_all[own[i]] = np.inf
        indices[i] = np.lexsort((to_all, -shares))[:k]
        distances[i] = to_all[indices[i]]
    return distances, indices


def effective_counts(D: FloatArray) -> FloatArray:
    """:func:`~vicinal.k_for_gamma` at γ = 1 for every row of the squared distances D (q, n)."""
    a = np.sort(D, axis=1)
    n = a.shape[1]
    b = soft_average(a, 1.0, axis=1)[:, None]  # (q, 1)
    means = np.cumsum(a, axis=1) / np.arange(1, n + 1)
    j = np.sum(means <= b, axis=1).clip(1, n)  # m_j ≤ b < m_{j+1}
    rows = np.arange(len(a))
    following = a[rows, np.minimum(j, n - 1)] - b[:, 0]
    beyond = b[:, 0] - means[rows, j - 1]
    inside = (j < n) & (following > 0)
    fraction = np.where(inside, beyond / np.where(inside, following, 1.0), 0.0)
    return np.asarray(j * (1.0 + np.maximum(fraction, 0.0)))
