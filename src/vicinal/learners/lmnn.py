"""LMNN: large margin nearest neighbor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.kernels import BACKENDS, Comparisons, PushKernel, make_push_kernel
from vicinal.learners.descent import (
    ALONE,
    CONSTRAINTS,
    FitCallback,
    descend,
    fit_options,
    store_solution,
    warn_excluded,
)
from vicinal.learners.fit_input import FitInput, in_units_of_data
from vicinal.learners.initialization import SCALED_INITS, starting_factor
from vicinal.learners.labeled_data import LabeledData, sort_by_class, unlabeled_data
from vicinal.learners.parameters import (
    COUNT,
    OPTIONAL_COUNT,
    Number,
    OneOf,
    ParameterConstraints,
)
from vicinal.learners.weakly_supervised import TripletLearner
from vicinal.objective.lmnn_objective import LMNNObjective, TripletPush, targets_of_triplets
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.pair_sums import pull_matrix
from vicinal.solvers import Problem
from vicinal.supervision import Triplets

Supervision: TypeAlias = Callable[[FloatArray], tuple[Comparisons, PushKernel]]
"""Targets and push, given the points among which the nearest are to be taken."""


class LMNN(TripletLearner):
    """Large Margin Nearest Neighbor.

    Every sample i pulls its target neighbors T_i, the k nearest of its class, and pushes impostors,
    samples l of other classes that are not farther than a target by a margin of 1. With
    d_ij = ‖L(x_i − x_j)‖² it minimizes

    .. code-block:: text

        E = (1 − μ) Σ_i Σ_{j∈T_i} d_ij + μ Σ_i Σ_{j∈T_i} Σ_{l: y_l ≠ y_i} h(1 + d_ij − d_il)

    with h(x) = [x]₊ (the paper's) or [x]₊². E is convex in M = LᵀL. Every evaluation finds all
    impostors, exactly, in memory of order n.

    Parameters
    ----------
    n_neighbors : int, default=3
        k, the number of target neighbors; fewer in classes that have no more.
    push_weight : float in [0, 1], default=0.5
        μ of the JMLR paper: it multiplies the push, 1 − μ the pull. (metric-learn's
        ``regularization`` is 1 − μ.)
    loss : {"hinge", "squared_hinge"}, default="hinge"
        h. The squared hinge is smooth.
    refresh_every : int, default=None
        Choose the target neighbors anew, under the metric learned so far, every so many
        iterations. None keeps those of the input space, as the paper does.
    n_components : int, default=None
        Rows of L; None keeps all features. Fewer need solver="lbfgs".
    init : {"auto", "identity", "pca", "lda", "random"} or array, default="auto"
        Where to start. "auto" is the identity (for fewer components LDA or PCA directions), scaled
        so that the mean squared distance to a target is 1, as "pca", "lda" and "random" are.
        "identity" and arrays of shape (n_components, n_features) are taken as they are.
    solver : {"lbfgs", "pgd", "apg"}, default="lbfgs"
        "lbfgs" minimizes over L. "pgd" is the projected subgradient over M, with steps that grow
        while they succeed and are halved when they fail; "apg" is its accelerated sister. "lbfgs"
        and "apg" smooth the kinks of the hinge less and less; "pgd" ends above the minimum.
    max_iter : int, default=500
        Iterations.
    tol : float, default=1e-5
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
    objective_ : float
        E at ``components_``.
    history_ : ndarray
        E of the start and of every accepted iterate.
    n_iter_, converged_, stop_reason_
        How the run ended: "stationary", "gradient", "decrease" or "step" (converged); "stalled",
        "max_iter", "callback". "lbfgs" and "apg" end as "stationary" only where the smallest
        subgradient proves the minimum.
    n_excluded_ : int
        Samples that are alone in their class: they have no targets and serve as impostors only.
    classes_ : ndarray
        The class labels (after ``fit``).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Weinberger, Saul: Distance Metric Learning for Large Margin Nearest Neighbor Classification.
    JMLR 10, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(vc.LMNN(), KNeighborsClassifier(3))
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        **CONSTRAINTS,
        "n_neighbors": COUNT,
        "push_weight": Number(0, 1),
        "loss": OneOf(("hinge", "squared_hinge")),
        "backend": OneOf(BACKENDS),
        "refresh_every": OPTIONAL_COUNT,
    }

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        push_weight: float = 0.5,
        loss: str = "hinge",
        refresh_every: int | None = None,
        n_components: int | None = None,
        init: str | ArrayLike = "auto",
        solver: str = "lbfgs",
        max_iter: int = 500,
        tol: float = 1e-5,
        backend: str = "auto",
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.push_weight = push_weight
        self.loss = loss
        self.refresh_every = refresh_every
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _learn_labeled(self, given: FitInput) -> None:
        """Nearest targets, all impostors."""
        data = sort_by_class(given.X.astype(np.float64), given.y)

        def nearest(Z: FloatArray) -> tuple[Comparisons, PushKernel]:
            targets = build_comparisons(Z, data.offsets, similar=int(self.n_neighbors))
            return targets, make_push_kernel(targets, self.backend)

        n_excluded = int((np.diff(data.offsets) == 1).sum())
        warn_excluded(n_excluded, len(data.X), ALONE)
        given = given.adding(classes_=data.classes, n_excluded_=n_excluded)
        self._learn(given, data, nearest)

    def _learn_triplets(
        self, given: FitInput, triplets: Triplets, codes: IndexArray | None
    ) -> None:
        """The pull of the distinct pairs (i, j), the push of the triplets, and of no others."""
        if self.refresh_every is not None:
            raise ValueError(
                "refresh_every chooses target neighbors anew, but given triplets name theirs; "
                "use refresh_every=None"
            )
        if isinstance(self.init, str) and self.init == "lda":
            raise ValueError("init='lda' needs class labels; use 'auto' or 'pca' with triplets")
        targets = targets_of_triplets(triplets.i, triplets.j, len(given.X))
        push = TripletPush(triplets.i, triplets.j, triplets.l)
        data = unlabeled_data(given.X.astype(np.float64))
        self._learn(given.adding(n_excluded_=0), data, lambda Z: (targets, push))

    def _learn(self, given: FitInput, data: LabeledData, supervision: Supervision) -> None:
        options = replace(
            fit_options(self, given.n_features),
            refresh_every=self.refresh_every,
            flat_leg_ends=False,  # the first legs may be flat until the targets change
        )
        parametrization = options.parametrization

        def to_components(params: FloatArray) -> FloatArray:
            return in_units_of_data(parametrization.factor(params), data.scale, given.X.dtype)

        def problem_of(targets: Comparisons, push: PushKernel) -> Problem:
            return LMNNObjective(
                X=data.X,
                anchors=targets.anchors,
                push=push,
                parametrization=parametrization,
                squared=self.loss == "squared_hinge",
                push_weight=float(self.push_weight),
                pull=(1.0 - self.push_weight) * pull_matrix(data.X, targets, data.weights),
            )

        targets, push = supervision(data.X)
        first = problem_of(targets, push)

        def problem_at(L: FloatArray | None) -> Problem:
            return first if L is None else problem_of(*supervision(data.X @ L.T))

        start = options.params_of(self._start(data, targets))
        solution = descend(options, start, problem_at, to_components)
        components = to_components(solution.params)
        store_solution(self, given, solution, tol=self.tol, components_=components)

    def _start(self, data: LabeledData, targets: Comparisons) -> FloatArray:
        """L to start from, in the units of ``data.X``."""
        d = data.X.shape[1]
        rng = check_random_state(self.random_state)
        L = starting_factor(self.init, data, self.n_components or d, 20.0, rng)
        if isinstance(self.init, str) and self.init in SCALED_INITS:
            C = pull_matrix(data.X, targets, data.weights)
            mean = float(np.vdot(L, L @ C)) / max(int(targets.n_similar.sum()), 1)
            L = L / np.sqrt(mean) if mean > 0 else L
        return L
