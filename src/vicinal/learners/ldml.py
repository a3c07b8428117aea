"""LDML: logistic discriminant metric learning."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal._typing import FloatArray
from vicinal.kernels import BACKENDS
from vicinal.kernels.cpu.logistic_pairs import PairKernel, make_pair_kernel
from vicinal.learners.base import DTYPES
from vicinal.learners.configuration import check_choice
from vicinal.learners.descent import (
    check_descent,
    descend,
    median_distance,
    median_start,
    parametrization_of,
    params_of,
    unlabeled_data,
)
from vicinal.learners.evidence import store_evidence
from vicinal.learners.labeled_data import LabeledData, sort_by_class
from vicinal.learners.supervision import Pairs
from vicinal.learners.weakly_supervised import PairLearner
from vicinal.objective.ldml_objective import LDMLObjective, ListedPairs


class LDML(PairLearner):
    """Logistic Discriminant Metric Learning.

    A pair is similar (t = 1) with probability p = σ(b − d_ij), d_ij = ‖L(x_i − x_j)‖². Metric and
    bias maximize the likelihood of the pairs, or minimize

    .. code-block:: text

        J = −Σ_{i<j} ω_ij [ t_ij ln p_ij + (1 − t_ij) ln(1 − p_ij) ] + λ ‖M‖_F²

    over all pairs of the samples (``fit``, in memory of order n) or over given ones
    (``fit_pairs``). J is convex in (M, b). b is the threshold of the squared distance at which p is
    ½: ``predict_pairs`` works at once.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features. Fewer need solver="lbfgs".
    pair_weight : {"balanced", None}, default=None
        ω. None counts every pair alike, as the paper does; of c classes about (c − 1)/c of the
        pairs are then dissimilar. "balanced" gives both kinds the same total weight.
    regularization : float, default=0.0
        λ, with M in units in which the median squared Euclidean distance is 1. Where the pairs are
        separable, J without it has no minimum: M and b grow until ``tol`` or ``max_iter``.
    init : {"auto", "identity", "pca", "lda", "random"} or array, default="auto"
        Where to start. "auto" is the identity (for fewer components LDA or PCA directions), scaled
        so that the median squared distance is 1, as "pca", "lda" and "random" are. "identity" and
        arrays of shape (n_components, n_features) are taken as they are. b starts at the median.
    solver : {"lbfgs", "pgd", "apg"}, default="lbfgs"
        "lbfgs" minimizes over (L, b), "pgd" is the projected gradient over (M, b), "apg" its
        accelerated sister.
    max_iter : int, default=500
        Iterations.
    tol : float, default=1e-6
        Stop when the objective's mean relative decrease an iteration, over 5 of them, or the
        relative size of the gradient is below this.
    backend : {"auto", "numba", "numpy"}, default="auto"
        What computes it; "numpy" is the slow, readable reference.
    callback : callable, default=None
        Called after every iteration with ``n_iter``, ``objective``, ``step`` and ``components``
        of the run; a true return value stops it.
    verbose : int, default=0
        1 logs every tenth iteration, 2 every one, on the logger "vicinal".
    random_state : int, RandomState or None, default=None
        For init="random".

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L.
    bias_ : float
        b.
    threshold_ : float
        √max(b, 0): pairs up to this distance are called similar.
    objective_ : float
        J at ``components_``.
    history_ : ndarray
        J of the start and of every accepted iterate.
    n_iter_, converged_, stop_reason_
        How the run ended: "gradient", "decrease" or "step" (converged), "max_iter", "callback".
    classes_ : ndarray
        The class labels (after ``fit``).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Guillaumin, Verbeek, Schmid: Is that you? Metric Learning Approaches for Face Identification.
    ICCV 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> ldml = vc.LDML(n_components=2).fit(X, y)
    >>> ldml.predict_pairs([[X[0], X[1]], [X[0], X[100]]])
    array([ True, False])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        pair_weight: str | None = None,
        regularization: float = 0.0,
        init: Any = "auto",
        solver: str = "lbfgs",
        max_iter: int = 500,
        tol: float = 1e-6,
        backend: str = "auto",
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.pair_weight = pair_weight
        self.regularization = regularization
        self.init = init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the metric from all pairs of samples with class labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels of any type that scikit-learn takes.
        """
        samples, labels = validate_data(self, X, y, dtype=DTYPES, ensure_min_samples=2)
        self._check_parameters(samples.shape[1])
        data = sort_by_class(samples.astype(np.float64), labels)
        sizes = np.diff(data.offsets)
        n_similar = int((sizes * (sizes - 1) // 2).sum())
        weights = self._weights(n_similar, len(samples) * (len(samples) - 1) // 2 - n_similar)
        self.classes_ = data.classes
        return self._learn(
            data, make_pair_kernel(data.offsets, weights, self.backend), samples.dtype
        )

    def _learn_pairs(self, X: FloatArray, pairs: Pairs) -> Self:
        self._check_parameters(X.shape[1])
        if isinstance(self.init, str) and self.init == "lda":
            raise ValueError("init='lda' needs class labels; use 'auto' or 'pca' with pairs")
        n_similar = int(pairs.similar.sum())
        weights = self._weights(n_similar, len(pairs) - n_similar)
        kernel = ListedPairs(pairs.i, pairs.j, pairs.similar, weights)
        return self._learn(unlabeled_data(X), kernel, X.dtype)

    def _learn(self, data: LabeledData, pairs: PairKernel, dtype: np.dtype[Any]) -> Self:
        # At a median squared distance of 1 metric and bias have one scale: steps suit both.
        median = np.sqrt(median_distance(data.X)) or 1.0
        data = replace(data, X=data.X / median, scale=data.scale * median)
        L = median_start(self, data, check_random_state(self.random_state))
        start = params_of(self, L)
        problem = LDMLObjective(
            X=data.X,
            pairs=pairs,
            parametrization=parametrization_of(self),
            shape=(start.shape[0], start.shape[1]),
            regularization=float(self.regularization),
        )

        def to_components(params: FloatArray) -> FloatArray:
            L = problem.parametrization.factor(problem.split(params)[0])
            return np.asarray(L / data.scale, dtype=dtype)

        bias = median_distance(data.X @ L.T) or 1.0
        solution = descend(self, problem, problem.join(start, bias), to_components)
        self.components_ = to_components(solution.params)
        self.bias_ = problem.split(solution.params)[1]
        self.threshold_ = float(np.sqrt(max(self.bias_, 0.0)))
        store_evidence(self, solution, stacklevel=4)
        return self

    def predict_pairs(self, pairs: ArrayLike) -> NDArray[np.bool_]:
        """Whether each pair is similar: its distance is at most ``threshold_``.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)

        Returns
        -------
        similar : ndarray of bool of shape (n_pairs,)
        """
        check_is_fitted(self)
        if self.bias_ <= 0 and self.threshold_ == 0:
            warnings.warn(
                f"LDML's bias is {self.bias_:.3g}: no pair, however near, is more likely similar "
                "than not. Use pair_weight='balanced', or calibrate_threshold.",
                UserWarning,
                stacklevel=2,
            )
        return super().predict_pairs(pairs)

    def _weights(self, n_similar: int, n_dissimilar: int) -> tuple[float, float]:
        """(ω_s, ω_d), 1 on the average."""
        if n_similar == 0 or n_dissimilar == 0:
            missing = "similar" if n_similar == 0 else "dissimilar"
            raise ValueError(f"LDML needs similar and dissimilar pairs; there is no {missing} one")
        if self.pair_weight is None:
            return 1.0, 1.0
        half = 0.5 * (n_similar + n_dissimilar)
        return half / n_similar, half / n_dissimilar

    def _check_parameters(self, d: int) -> None:
        if self.pair_weight is not None:
            check_choice("pair_weight", self.pair_weight, ("balanced",))
        check_scalar(self.regularization, "regularization", Real, min_val=0)
        check_choice("backend", self.backend, BACKENDS)
        check_descent(self, d)
