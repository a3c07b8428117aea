"""SCML and SCML_Supervised."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin
from sklearn.utils import check_array

from vicinal._typing import FloatArray, IndexArray, LabelArray, Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin, _TripletsClassifierMixin
from vicinal.compat.metric_learn.constraints import Constraints
from vicinal.compat.metric_learn.tuple_input import Preprocessor, as_indices
from vicinal.exceptions import warn_user
from vicinal.learners import scml as native

BASES = {"triplet_diffs": "triplets", "lda": "lda"}
TOL = 1e-3
"""How far the objective may be from its minimum, about, relative to 1 + J. Stochastic steps end at
many times that."""


def _check_integers(estimator: SCML | SCML_Supervised, *names: str) -> None:
    for name in names:
        value = getattr(estimator, name)
        if not isinstance(value, int | np.integer):
            raise ValueError(f"{name} should be an integer, instead it is of type {type(value)}")


def _check_run(estimator: SCML | SCML_Supervised) -> None:
    _check_integers(estimator, "max_iter", "output_iter", "batch_size")
    if estimator.output_iter > estimator.max_iter:
        raise ValueError("The value of output_iter must be equal or smaller than max_iter.")


def _check_basis(estimator: SCML | SCML_Supervised, n_features: int) -> None:
    """An array of bases of the right width, or one of the estimator's names."""
    basis = estimator.basis
    if isinstance(basis, str) and basis in estimator._authorized_basis:
        return
    if not isinstance(basis, np.ndarray):
        names = "', '".join(estimator._authorized_basis)
        raise ValueError(
            f"`basis` must be one of the options '{names}' or an array of shape (n_basis, "
            "n_features)."
        )
    width = check_array(basis).shape[1]
    if width != n_features:
        raise ValueError(
            f"The dimensionality ({width}) of the provided bases must match the dimensionality of "
            f"the data ({n_features})."
        )


def _n_basis(estimator: SCML | SCML_Supervised, default: int) -> int:
    """The number of bases to make."""
    if estimator.n_basis is None:
        warn_user(
            "As no value for `n_basis` was selected, the number of basis will be set to n_basis= "
            f"{default}",
            UserWarning,
        )
        return default
    _check_integers(estimator, "n_basis")
    return int(estimator.n_basis)


def _n_basis_of_triplets(
    estimator: SCML | SCML_Supervised, n_features: int, n_triplets: int
) -> int:
    n_basis = _n_basis(estimator, 80 * n_features)
    if n_features > n_triplets:
        raise ValueError(
            f"Number of features ({n_features}) is greater than the number of triplets"
            f"({n_triplets}).\nConsider using dimensionality reduction or using another basis "
            "generation scheme."
        )
    return n_basis


def _n_basis_of_classes(estimator: SCML_Supervised, X: FloatArray, y: LabelArray) -> int:
    n_classes = len(np.unique(y))
    most = 2 * len(X) * min(n_classes - 1, X.shape[1])
    n_basis = _n_basis(estimator, min(20 * X.shape[1], most - 1))
    if n_basis < n_classes:
        warn_user(
            "The number of basis is less than the number of classes, which may lead to poor "
            "discriminative performance.",
            UserWarning,
        )
    elif n_basis >= most:
        raise ValueError(
            f"Not enough samples to generate {n_basis} LDA bases, n_basisshould be smaller than "
            f"{most}"
        )
    return n_basis


def _learn(
    estimator: SCML | SCML_Supervised,
    X: FloatArray,
    triplets: IndexArray,
    basis: Any,
    n_basis: int | None,
) -> None:
    """Minimize metric-learn's objective, in the units of the data."""
    learner = native.SCML(
        estimator.beta,
        basis=basis,
        n_basis=n_basis,
        rescale=False,
        max_iter=int(estimator.max_iter),
        tol=TOL,
        verbose=2 * int(estimator.verbose),
        random_state=estimator.random_state,
    )
    estimator._learn(learner, lambda: learner.fit_triplets(X, triplets))
    rank, d = learner.components_.shape
    if rank < d:
        warn_user(
            "The number of bases with nonzero weight is less than the number of features of the "
            f"input, in consequence the learned transformation reduces the dimension to {rank}.",
            UserWarning,
        )


class SCML(_TripletsClassifierMixin, MahalanobisMixin):
    """Sparse Compositional Metric Learning from triplets: :class:`vicinal.SCML`.

    Parameters
    ----------
    beta : float, default=1e-5
        The price of the weights.
    basis : "triplet_diffs" or array of shape (n_basis, n_features), default="triplet_diffs"
        Directions to choose among; "triplet_diffs" makes them from the triplets.
    n_basis : int, default=None
        How many of them to make; None is 80 × n_features.
    gamma, batch_size, output_iter : default=5e-3, 10 and 500
        Without effect: the solver is deterministic and goes to the minimum. metric-learn's own
        algorithm is ``vicinal.SCML(solver="adagrad", rescale=False)``, which has the first two.
    max_iter : int, default=10000
        Iterations.
    verbose : bool, default=False
        Whether to log every iteration, on the logger "vicinal".
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    random_state : int, RandomState or None, default=None
        For the directions.
    """

    _authorized_basis: ClassVar[list[str]] = ["triplet_diffs"]

    def __init__(
        self,
        beta: float = 1e-5,
        basis: str | ArrayLike = "triplet_diffs",
        n_basis: int | None = None,
        gamma: float = 5e-3,
        max_iter: int = 10000,
        output_iter: int = 500,
        batch_size: int = 10,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(preprocessor)
        self.beta = beta
        self.basis = basis
        self.n_basis = n_basis
        self.gamma = gamma
        self.max_iter = max_iter
        self.output_iter = output_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, triplets: object) -> Self:
        """Learn from triplets.

        Parameters
        ----------
        triplets : array-like of shape (n_triplets, 3, n_features), or indicators (n_triplets, 3)
            The first sample ought to be nearer to the second than to the third.
        """
        _check_run(self)
        tuples = self._prepare_inputs(triplets, type_of_inputs="tuples")
        _check_basis(self, tuples.shape[2])
        X, indices = as_indices(tuples)
        if isinstance(self.basis, str):
            n_basis = _n_basis_of_triplets(self, X.shape[1], len(indices))
            _learn(self, X, indices, BASES[self.basis], n_basis)
        else:
            _learn(self, X, indices, self.basis, None)
        return self


class SCML_Supervised(TransformerMixin, MahalanobisMixin):
    """Sparse Compositional Metric Learning from triplets that are made from class labels.

    Parameters
    ----------
    k_genuine, k_impostor : int, default=3 and 10
        Neighbors of the class and of others that make a sample's triplets.
    basis : {"lda", "triplet_diffs"} or array, default="lda"
        Directions to choose among; "lda" is Fisher's discriminants of many regions.
    beta, n_basis, gamma, max_iter, output_iter, batch_size, verbose, preprocessor, random_state
        As of :class:`SCML`; for "lda", n_basis=None is 20 × n_features, or less for few samples.
    """

    _authorized_basis: ClassVar[list[str]] = ["triplet_diffs", "lda"]
    _needs_labels = True

    def __init__(
        self,
        k_genuine: int = 3,
        k_impostor: int = 10,
        beta: float = 1e-5,
        basis: str | ArrayLike = "lda",
        n_basis: int | None = None,
        gamma: float = 5e-3,
        max_iter: int = 10000,
        output_iter: int = 500,
        batch_size: int = 10,
        verbose: bool = False,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(preprocessor)
        self.k_genuine = k_genuine
        self.k_impostor = k_impostor
        self.beta = beta
        self.basis = basis
        self.n_basis = n_basis
        self.gamma = gamma
        self.max_iter = max_iter
        self.output_iter = output_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels, −1 where unknown."""
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        _check_basis(self, samples.shape[1])
        lda = isinstance(self.basis, str) and self.basis == "lda"
        n_basis = _n_basis_of_classes(self, samples, labels) if lda else None
        _check_integers(self, "k_genuine", "k_impostor")
        _check_run(self)
        basis: Any = self.basis
        if lda:
            find = native.SCML(
                n_basis=n_basis, basis="lda", rescale=False, random_state=self.random_state
            )
            known = labels >= 0
            basis = find.find_bases(samples[known], labels[known])
            n_basis = None
        triplets = Constraints(labels).generate_knntriplets(
            samples, int(self.k_genuine), int(self.k_impostor)
        )
        if isinstance(basis, str):
            n_basis = _n_basis_of_triplets(self, samples.shape[1], len(triplets))
            basis = BASES[basis]
        _learn(self, samples, triplets, basis, n_basis)
        return self
