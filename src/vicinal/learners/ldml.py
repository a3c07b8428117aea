"""LDML: logistic discriminant metric learning."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from vicinal._typing import FloatArray, Seed
from vicinal.kernels import BACKENDS, PairKernel, make_pair_kernel
from vicinal.learners.descent import CONSTRAINTS, FitCallback, descend, fit_options, store_solution
from vicinal.learners.fit_input import FitInput, in_units_of_data
from vicinal.learners.initialization import median_distance, median_start
from vicinal.learners.labeled_data import LabeledData, sort_by_class, unlabeled_data
from vicinal.learners.parameters import NOT_NEGATIVE, OneOf, ParameterConstraints
from vicinal.learners.weakly_supervised import PairLearner
from vicinal.objective.ldml_objective import LDMLObjective, ListedPairs
from vicinal.supervision import Pairs


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

    _constraints: ClassVar[ParameterConstraints] = {
        **CONSTRAINTS,
        "pair_weight": OneOf((None, "balanced")),
        "regularization": NOT_NEGATIVE,
        "backend": OneOf(BACKENDS),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        pair_weight: str | None = None,
        regularization: float = 0.0,
        init: str | ArrayLike = "auto",
        solver: str = "lbfgs",
        max_iter: int = 500,
        tol: float = 1e-6,
        backend: str = "auto",
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
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

    def _learn_labeled(self, given: FitInput) -> None:
        data = sort_by_class(given.X.astype(np.float64), given.y)
        n, sizes = len(data.X), np.diff(data.offsets)
        n_similar = int((sizes * (sizes - 1) // 2).sum())
        weights = self._weights(n_similar, n * (n - 1) // 2 - n_similar)
        pairs = make_pair_kernel(data.offsets, weights, self.backend)
        self._learn(given.adding(classes_=data.classes), data, pairs)

    def _learn_pairs(self, given: FitInput, pairs: Pairs) -> None:
        if isinstance(self.init, str) and self.init == "lda":
            raise ValueError("init='lda' needs class labels; use 'auto' or 'pca' with pairs")
        n_similar = int(pairs.similar.sum())
        weights = self._weights(n_similar, len(pairs) - n_similar)
        kernel = ListedPairs(pairs.i, pairs.j, pairs.similar, weights)
        self._learn(given, unlabeled_data(given.X.astype(np.float64)), kernel)

    def _learn(self, given: FitInput, data: LabeledData, pairs: PairKernel) -> None:
        options = fit_options(self, given.n_features)
        # At a median squared distance of 1 metric and bias have one scale: steps suit both.
        median = np.sqrt(median_distance(data.X)) or 1.0
        data = replace(data, X=data.X / median, scale=data.scale * median)
        rng = check_random_state(self.random_state)
        L = median_start(self.init, data, self.n_components, rng)
        start = options.params_of(L)
        problem = LDMLObjective(
            X=data.X,
            pairs=pairs,
            parametrization=options.parametrization,
            shape=(start.shape[0], start.shape[1]),
            regularization=float(self.regularization),
        )

        def to_components(params: FloatArray) -> FloatArray:
            L = problem.parametrization.factor(problem.split(params)[0])
            return in_units_of_data(L, data.scale, given.X.dtype)

        bias = median_distance(data.X @ L.T) or 1.0
        solution = descend(options, problem.join(start, bias), lambda _: problem, to_components)
        bias = problem.split(solution.params)[1]
        store_solution(
            self,
            given,
            solution,
            tol=self.tol,
            components_=to_components(solution.params),
            bias_=bias,
            threshold_=float(np.sqrt(max(bias, 0.0))),
        )

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
