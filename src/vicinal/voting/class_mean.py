"""K-NN classifier with the paper's class-mean rule or the majority vote."""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_scalar, gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import MEMORY, NeighborIndex, as_points
from vicinal.learners.fit_input import DTYPES, check_labeled, on_host, store_fit
from vicinal.learners.parameters import COUNT, OneOf, ParameterConstraints, check_parameters
from vicinal.voting.neighbor_search import all_search, check_backend, class_search
from vicinal.voting.row_weights import RowWeights, check_row_numbers, class_sums
from vicinal.voting.sources import prepared
from vicinal.voting.votes import majorities


class ClassMeanKNN(ClassifierMixin, BaseEstimator):
    r"""K-nearest-neighbor classifier with the class-mean rule, or with the majority vote.

    The class-mean rule (the paper's Eq. 2) looks at K samples of *every* class:

    .. math:: d(x, C_c) = \frac{1}{K} \sum_{k=1}^{K} d^{[k]}(x, C_c), \qquad
              \hat y = \arg\min_c d(x, C_c),

    where :math:`d^{[k]}(x, C_c)` is the k-th smallest squared Euclidean distance from x to the
    samples of class c. A class with fewer than K samples uses all of them. Ties go to the first
    class in ``classes_``. The vote takes the class of most of the K nearest samples. Ties go to
    that one of the tied classes that has the nearest sample; equally near samples count in the
    order of the training data.

    Parameters
    ----------
    n_neighbors : int, default=5; K
    rule : {"class_mean", "vote"}, default="class_mean"
    backend : {"auto", "numba", "cuda"}, default="auto"
        Where neighbors are looked for. "cuda": on a GPU, by PyTorch; "auto" as for the learners:
        there if PyTorch has been imported, sees a GPU, and the training data have 20,000 rows.

    Attributes
    ----------
    classes_ : (c,) array, the sorted labels
    n_features_in_, n_samples_fit_ : int
    references_ : (n, d) array, the training data sorted by class, float32 or float64 as given
    rows_ : (n,) ints; ``references_[r]`` is row ``rows_[r]`` of the training data
    offsets_ : (c + 1,) ints; class c is ``references_[offsets_[c]:offsets_[c + 1]]``
    scale_ : float, s in :meth:`predict_proba`

    Notes
    -----
    Searches are exact, threaded and in bounded memory (:mod:`vicinal.kernels.cpu.class_neighbors`);
    on a GPU the neighbors are the same, and their distances up to rounding.
    Distances are computed in float64; real-valued results are float32 when X is.

    Examples
    --------
    The vote follows the crowd; the class mean asks how near each class comes.

    >>> X = [[0.0], [1.0], [4.0], [5.0], [6.0]]
    >>> y = ["few", "few", "many", "many", "many"]
    >>> ClassMeanKNN(rule="class_mean").fit(X, y).predict([[2.4]])
    array(['few'], dtype='<U4')
    >>> ClassMeanKNN(rule="vote").fit(X, y).predict([[2.4]])
    array(['many'], dtype='<U4')
    """

    classes_: NDArray[np.generic]
    rows_: IndexArray
    offsets_: IndexArray
    references_: FloatArray
    n_samples_fit_: int
    scale_: float

    _constraints: ClassVar[ParameterConstraints] = {
        "n_neighbors": COUNT,
        "rule": OneOf(("class_mean", "vote")),
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        rule: Literal["class_mean", "vote"] = "class_mean",
        backend: str = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.rule = rule
        self.backend = backend

    def fit(self, X: ArrayLike, y: ArrayLike) -> ClassMeanKNN:
        """Store the training data X (n, d), labels y (n,), sorted by class."""
        check_parameters(self)
        check_backend(self.backend)
        given = check_labeled(self, X, y, ensure_min_samples=1)
        check_classification_targets(given.y)
        store_fit(self, {**given.attributes, **self._arranged(given.X, given.y)})
        return self

    def add_rows(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Let further rows X (k, d) of labels y (k,) vote, as if `fit` had seen them at the end.

        In :meth:`kneighbors` they have the numbers after those of the rows before.
        """
        X, added = self._queries(X), np.asarray(column_or_1d(on_host(y)))
        check_consistent_length(X, added)
        check_classification_targets(added)
        before, labels = self._training_rows()
        if (labels.dtype.kind in "OUS") != (added.dtype.kind in "OUS"):
            raise ValueError(
                f"y has labels of type {added.dtype}, the training data {labels.dtype}"
            )
        X = np.concatenate([before, X.astype(before.dtype)])
        self._replace_rows(X, np.concatenate([labels, added]))
        return self

    def forget_rows(self, rows: ArrayLike) -> Self:
        """Let some rows vote no longer, as if `fit` had not seen them.

        `rows` are their numbers, as :meth:`kneighbors` gives them; the others are then numbered
        from 0 again, in the same order.
        """
        check_is_fitted(self)
        n = self.n_samples_fit_
        kept = np.ones(n, dtype=bool)
        kept[check_row_numbers(rows, n)] = False
        if not kept.any():
            raise ValueError(f"all {n} rows would be forgotten, and none left to vote")
        X, labels = self._training_rows()
        self._replace_rows(X[kept], labels[kept])
        return self

    def _training_rows(self) -> tuple[FloatArray, NDArray[np.generic]]:
        """Rows (n, d) and labels (n,), in the order of the training data."""
        order = np.argsort(self.rows_)
        labels = np.repeat(self.classes_, np.diff(self.offsets_))
        return self.references_[order], labels[order]

    def _replace_rows(self, X: FloatArray, y: NDArray[np.generic]) -> None:
        """Set other training rows, all attributes at once."""
        self.__dict__ = {**vars(self), **self._arranged(X, y)}

    def _arranged(self, X: FloatArray, y: NDArray[np.generic]) -> dict[str, object]:
        """The attributes of a fit on rows X (n, d) of labels y (n,)."""
        n = len(X)
        if self.rule == "vote":
            _check_voters(self.n_neighbors, n)
        classes, codes = np.unique(y, return_inverse=True)
        rows = np.argsort(codes, kind="stable")
        offsets = np.searchsorted(codes[rows], np.arange(len(classes) + 1))
        references = as_points(X[rows], "X")
        return {
            "classes_": classes,
            "rows_": rows,
            "offsets_": offsets,
            "references_": references,
            "n_samples_fit_": n,
            "scale_": _scale(references, offsets),
        }

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """Predict the class of every row of X, the one with the largest probability."""
        winners = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[winners]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        r"""Probabilities of the classes, (n, c); rows sum to 1.

        Vote: the share of each class in the K votes. Class-mean rule:

        .. math:: p_c \propto \exp(-d(x, C_c) / s), \qquad s = 2 W / \sqrt{d},

        with W the pooled within-class variance, summed over the d features (where no class has
        two samples: the total variance). 2W is the mean squared distance of two samples of a
        class, and :math:`2W/\sqrt d` the order of its spread: units of X cancel. The predicted
        class always has the largest: where a tie, or rounding, would leave that open, its is the
        next larger floating-point number. For calibrated probabilities use scikit-learn's
        ``CalibratedClassifierCV``.
        """
        Z = self._queries(X)
        if self.rule == "vote":
            shares, winners = self._votes(Z)
        else:
            means = self._class_distances(Z)
            shares, winners = _softmin(means, self.scale_), np.argmin(means, axis=1)
        return _favor(shares.astype(Z.dtype, copy=False), winners)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        r"""Score the classes: (n, c), the largest wins; with two classes (n,), the sign decides.

        Class-mean rule: :math:`-d(x, C_c)`; with two classes :math:`d(x, C_0) - d(x, C_1)`,
        positive for ``classes_[1]``. That is :math:`-h(x)` of the paper's Eq. 1 with the pointed
        class ``classes_[1]``, which the paper accepts where h < 0. Vote: the shares of
        :meth:`predict_proba`; with two classes their difference.
        """
        Z = self._queries(X)
        scores = self.predict_proba(Z) if self.rule == "vote" else -self._class_distances(Z)
        if len(self.classes_) == 2:
            scores = scores[:, 1] - scores[:, 0]
        return _cast(scores, Z.dtype)

    def class_distances(self, X: ArrayLike) -> FloatArray:
        r"""Return :math:`d(x, C_c)`, the means of the K smallest squared distances, (n, c).

        Examples
        --------
        >>> knn = ClassMeanKNN(n_neighbors=2).fit([[0.0], [1.0], [5.0]], [0, 0, 1])
        >>> knn.class_distances([[2.0]])
        array([[2.5, 9. ]])
        """
        Z = self._queries(X)
        return _cast(self._class_distances(Z), Z.dtype)

    def kneighbors(
        self,
        X: ArrayLike | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> tuple[FloatArray, IndexArray] | IndexArray:
        """Find the nearest training samples, whatever their class, as scikit-learn does.

        X None means the training samples, none of them its own neighbor; n_neighbors None, the
        constructor's. Returns Euclidean distances, not squared (only with `return_distance`), and
        rows of the training data in its original order, both (n, n_neighbors).

        Examples
        --------
        >>> knn = ClassMeanKNN().fit([[0.0], [5.0], [1.0]], [0, 1, 0])
        >>> knn.kneighbors([[2.0]], n_neighbors=2)
        (array([[1., 2.]]), array([[2, 0]]))
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_scalar(k, "n_neighbors", Integral, min_val=1)
        available = self.n_samples_fit_ - (X is None)
        if k > available:
            raise ValueError(f"n_neighbors = {k}, but there are only {available} samples to find")
        Z, exclude = (self.references_, self.rows_) if X is None else (self._queries(X), None)
        find = all_search(self._voters[0], self.backend)
        squared, rows = find(Z, k=k, exclude=exclude)
        if X is None:  # back from the order of the classes
            order = np.argsort(self.rows_)
            squared, rows = squared[order], rows[order]
        return (_cast(np.sqrt(squared), Z.dtype), rows) if return_distance else rows

    def vote_weights(self, X: ArrayLike) -> tuple[csr_array, FloatArray]:
        r"""Weight of every training row in the predictions.

        Vote: 1/K for each of the K nearest. Class-mean rule: :math:`p_c / K_c` for each of the
        :math:`K_c` rows of class c that its mean is about.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)

        Returns
        -------
        weights : sparse array of shape (n_queries, ``n_samples_fit_``)
            With Y the one-hot labels of the training rows, ``predict_proba(X) = weights @ Y``, up
            to rounding.
        prior_share : (n_queries,) array
            0: the prior has no share, as it may have in :meth:`ANNClassifier.vote_weights`.
        """
        Z = self._queries(X)
        ids, weights = self._vote_entries(Z) if self.rule == "vote" else self._mean_entries(Z)
        prior_share = np.zeros(len(Z))
        row_weights = RowWeights.of(ids, weights, prior_share)
        return row_weights.to_sparse(self.n_samples_fit_), prior_share

    def _vote_entries(self, Z: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Rows and weights (n, K) of the vote."""
        _check_voters(self.n_neighbors, self.n_samples_fit_)
        ids = all_search(self._voters[0], self.backend)(Z, k=self.n_neighbors).ids
        return ids, np.full(ids.shape, 1.0 / self.n_neighbors)

    def _mean_entries(self, Z: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Rows and weights (n, c K) of the class-mean rule."""
        sizes = np.minimum(np.diff(self.offsets_), self.n_neighbors)  # (c,)
        find = class_search(self._voters[0], self.offsets_, self.backend)
        distances, ids = find(Z, k=int(sizes.max()))  # (n, c, K)
        shares = _softmin(_class_means(distances, ids, sizes), self.scale_) / sizes
        weights = np.where(ids >= 0, shares[:, :, None], 0.0)
        return ids.reshape(len(Z), -1), weights.reshape(len(Z), -1)

    def _queries(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=DTYPES, reset=False)

    @prepared("references_", "rows_", "offsets_")
    def _voters(self) -> tuple[NeighborIndex, IndexArray]:
        """The training rows, ready to be searched, and (n,) their classes, in the order of fit."""
        codes = np.empty(self.n_samples_fit_, dtype=np.intp)
        codes[self.rows_] = np.repeat(np.arange(len(self.classes_)), np.diff(self.offsets_))
        return NeighborIndex(self.references_, self.rows_), codes

    def _class_distances(self, X: FloatArray) -> NDArray[np.float64]:
        """(n, c) means of the K smallest squared distances."""
        sizes = np.minimum(np.diff(self.offsets_), self.n_neighbors)  # (c,)
        k, means = int(sizes.max()), np.empty((len(X), len(sizes)))
        find = class_search(self._voters[0], self.offsets_, self.backend)
        for block in gen_batches(len(X), _block_length(k * len(sizes))):
            means[block] = _class_means(*find(X[block], k=k), sizes)
        return means

    def _votes(self, X: FloatArray) -> tuple[NDArray[np.float64], IndexArray]:
        """Shares of the votes (n, c) and winners (n,)."""
        k, c = self.n_neighbors, len(self.classes_)
        _check_voters(k, self.n_samples_fit_)  # the parameters may have changed since fit
        index, codes = self._voters
        shares, winners = np.empty((len(X), c)), np.empty(len(X), dtype=np.intp)
        find = all_search(index, self.backend)
        for block in gen_batches(len(X), _block_length(k + c)):
            ids = find(X[block], k=k).ids  # (b, k), nearest first
            winners[block] = majorities(codes[ids], [k])[0]
            shares[block] = class_sums(ids, codes, c) / k
        return shares, winners


def _check_voters(k: int, n: int) -> None:
    if k > n:
        hint = "lower n_neighbors, or use rule='class_mean'"
        raise ValueError(f"n_neighbors = {k} cannot vote, with n_samples = {n}: {hint}")


def _block_length(neighbors: int) -> int:
    return max(1, MEMORY // (16 * neighbors))  # queries that fit into the block budget


def _class_means(
    distances: NDArray[np.float64], ids: IndexArray, sizes: IndexArray
) -> NDArray[np.float64]:
    """(b, c) means of the neighbors' distances (b, c, k), of which class c has ``sizes[c]``."""
    np.copyto(distances, 0.0, where=ids < 0)  # a smaller class has fewer
    return np.asarray(distances.sum(axis=2) / sizes)


def _scale(X: FloatArray, offsets: IndexArray) -> float:
    """2 W / √d of samples (n, d) sorted by class; positive."""
    n, d = X.shape
    for starts in (offsets[:-1], offsets[:1]):  # within the classes, or if that is 0 in total
        sizes = np.diff(np.append(starts, n))
        centers = np.add.reduceat(X, starts, axis=0, dtype=np.float64) / sizes[:, None]  # (c, d)
        codes = np.repeat(np.arange(len(starts)), sizes)
        blocks = gen_batches(n, _block_length(d))
        squares = sum(np.sum((X[b] - centers[codes[b]]) ** 2) for b in blocks)
        if squares > 0:
            return float(2 * squares / (n - len(starts)) / np.sqrt(d))
    return 1.0


def _softmin(values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """exp(−values / scale) of every row, normalized."""
    with np.errstate(over="ignore"):  # infinitely far beyond the nearest: weight 0
        weights = np.exp((values.min(axis=1, keepdims=True) - values) / scale)
    return weights / weights.sum(axis=1, keepdims=True)


def _favor(shares: FloatArray, winners: IndexArray) -> FloatArray:
    """Make the winner's share the first largest of its row, by one unit in the last place."""
    unclear = np.flatnonzero(np.argmax(shares, axis=1) != winners)
    largest = shares[unclear].max(axis=1, initial=0)
    shares[unclear, winners[unclear]] = np.nextafter(largest, shares.dtype.type(np.inf))
    return shares


def _cast(values: FloatArray, dtype: np.dtype[np.floating]) -> FloatArray:
    with np.errstate(over="ignore"):  # squared distances beyond float32 are inf
        return values.astype(dtype, copy=False)
