"""K-NN regressor: the mean of the nearest targets, or one in which nearer rows count more."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_scalar, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import MEMORY, NeighborIndex, as_points
from vicinal.learners.fit_input import DTYPES, check_labeled, on_host, store_fit
from vicinal.learners.parameters import COUNT, OneOf, ParameterConstraints, check_parameters
from vicinal.voting.row_weights import RowWeights, TargetRows
from vicinal.voting.sources import prepared
from vicinal.voting.votes import VoteName, vote_weights

VOTES: dict[str, VoteName] = {"mean": "majority", "epanechnikov": "epanechnikov", "soft": "soft"}


class NeighborRegressor(RegressorMixin, BaseEstimator):
    r"""K-nearest-neighbor regressor on exact, threaded searches.

    Predicts :math:`\sum_j v_j y_j / \sum_j v_j` over the K nearest training rows, at squared
    Euclidean distances :math:`d_j`.

    Parameters
    ----------
    n_neighbors : int, default=5; K
    vote : {"mean", "epanechnikov", "soft"}, default="mean"
        "mean": all count alike. "epanechnikov": :math:`v_j = \max(0, 1 - d_j / d_{K+1})`, so that
        a row fades before it leaves. "soft": :math:`v_j = e^{-d_j}`, as in the objective of
        :class:`MLKR`, in whose space the length of a distance is learned; take K large.

    Attributes
    ----------
    references_ : (n, d) array, the training data, float32 or float64 as given
    targets_ : (n,) or (n, t) array
    n_features_in_, n_samples_fit_ : int

    See Also
    --------
    ANNRegressor : Learns the distance, and chooses K and the vote by itself.
    ClassMeanKNN : The counterpart for classes.

    Examples
    --------
    >>> import vicinal as vc
    >>> X, y = [[0.0], [1.0], [3.0], [7.0]], [0.0, 1.0, 2.0, 6.0]
    >>> vc.NeighborRegressor(2).fit(X, y).predict([[0.4]])
    array([0.5])
    >>> vc.NeighborRegressor(2, vote="epanechnikov").fit(X, y).predict([[0.4]])
    array([0.4923...])
    """

    references_: FloatArray
    targets_: FloatArray
    n_samples_fit_: int

    _constraints: ClassVar[ParameterConstraints] = {
        "n_neighbors": COUNT,
        "vote": OneOf(tuple(VOTES)),
    }

    def __init__(
        self, n_neighbors: int = 5, *, vote: Literal["mean", "epanechnikov", "soft"] = "mean"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.vote = vote

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the training data X (n, d) and targets y (n,) or (n, t)."""
        check_parameters(self)
        options = {"multi_output": True, "y_numeric": True, "ensure_min_samples": 1}
        given = check_labeled(self, X, y, **options)
        self._check_k(len(given.X))
        attributes = {
            "references_": as_points(given.X, "X"),
            "targets_": np.asarray(given.y, dtype=np.float64),
            "n_samples_fit_": len(given.X),
        }
        store_fit(self, {**given.attributes, **attributes})
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Averages (n,), or (n, t) where there are several targets."""
        Z = self._queries(X)
        targets = self._rows.targets
        found = np.empty((len(Z), targets.shape[1]))
        size = max(1, MEMORY // (16 * (self.n_neighbors + 1) * targets.shape[1]))
        for block in gen_batches(len(Z), size):
            found[block] = self._weights(Z[block]).averages(targets, self._rows.prior)
        return found[:, 0] if self.targets_.ndim == 1 else found

    def vote_weights(self, X: ArrayLike) -> tuple[csr_array, FloatArray]:
        """Weight of every training row in the predictions.

        Returns
        -------
        weights : sparse array of shape (n_queries, ``n_samples_fit_``)
        prior_share : (n_queries,) array
            The share of the mean target: 0, or 1 where all the K nearest count 0.
            ``predict(X) = weights @ targets_ + prior_share * targets_.mean()``.
        """
        weights = self._weights(self._queries(X))
        return weights.to_sparse(self.n_samples_fit_), weights.prior_share

    def kneighbors(
        self,
        X: ArrayLike | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> tuple[FloatArray, IndexArray] | IndexArray:
        """Find the nearest training rows, as scikit-learn does.

        X None means the training rows, none of them its own neighbor; n_neighbors None, the
        constructor's. Returns Euclidean distances (only with `return_distance`) and rows, both
        (n, n_neighbors).
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        available = self.n_samples_fit_ - (X is None)
        check_scalar(k, "n_neighbors", Integral, min_val=1, max_val=available)
        Z = self.references_ if X is None else self._queries(X)
        own = np.arange(self.n_samples_fit_) if X is None else None
        squared, rows = self._index.nearest(Z, k, exclude=own)
        return (np.sqrt(squared), rows) if return_distance else rows

    def _weights(self, Z: FloatArray) -> RowWeights:
        self._check_k(self.n_samples_fit_)  # the parameter may have changed since fit
        found, name = self._index.nearest(Z, self.n_neighbors + 1), VOTES[self.vote]
        # K rows that count alike need no prior; in the other votes all may count 0.
        prior_votes = 0.0 if name == "majority" else self._rows.prior_votes
        return vote_weights(found, self._rows.weights, name, self.n_neighbors, prior_votes)

    def _check_k(self, n: int) -> None:
        if self.n_neighbors > n:
            raise ValueError(f"n_neighbors = {self.n_neighbors}, but n_samples = {n}; lower it")

    def _queries(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, on_host(X), dtype=DTYPES, reset=False))

    @prepared("references_")
    def _index(self) -> NeighborIndex:
        """The training rows, ready to be searched."""
        return NeighborIndex(self.references_)

    @prepared("targets_")
    def _rows(self) -> TargetRows:
        """The training rows as voters."""
        targets = self.targets_.reshape(len(self.targets_), -1)
        return TargetRows.of(targets, np.ones(len(targets)))

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
