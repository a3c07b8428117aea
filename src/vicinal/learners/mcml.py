"""MCML: maximally collapsing metric learning."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from vicinal._typing import FloatArray, Seed
from vicinal.kernels import BACKENDS, make_kernel
from vicinal.learners.base import MetricLearner
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
from vicinal.learners.initialization import median_start
from vicinal.learners.labeled_data import sort_by_class
from vicinal.learners.parameters import OneOf, ParameterConstraints
from vicinal.objective.mcml_objective import MCMLObjective, mean_pull
from vicinal.objective.neighbor_sets import build_comparisons


class MCML(MetricLearner):
    """Maximally Collapsing Metric Learning.

    Would like every class to be one point, far from the others: every sample i chooses its neighbor
    with probabilities p_i, which are to be the uniform p⁰_i on its class. Minimizes

    .. code-block:: text

        J = Σ_i KL(p⁰_i ‖ p_i),     p_i(j) = e^{−d_ij} / Σ_{k≠i} e^{−d_ik},     p⁰_i(j) = 1/|S_i|

    with S_i all other samples of the class and d_ij = ‖L(x_i − x_j)‖². J is convex in M = LᵀL; its
    minimum often has a low rank by itself.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features. Fewer need solver="lbfgs".
    init : {"auto", "identity", "pca", "lda", "random"} or array, default="auto"
        Where to start. "auto" is the identity (for fewer components LDA or PCA directions), scaled
        so that the median squared distance is 1, as "pca", "lda" and "random" are. "identity" and
        arrays of shape (n_components, n_features) are taken as they are.
    solver : {"lbfgs", "pgd", "apg"}, default="lbfgs"
        "lbfgs" minimizes over L, "pgd" is the projected gradient over M, "apg" its accelerated
        sister.
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
        J at ``components_``.
    history_ : ndarray
        J of the start and of every accepted iterate.
    n_iter_, converged_, stop_reason_
        How the run ended: "gradient", "decrease" or "step" (converged), "max_iter", "callback".
    n_excluded_ : int
        Samples that are alone in their class: they have no p⁰ and are neighbors only.
    classes_ : ndarray
        The class labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Globerson, Roweis: Metric Learning by Collapsing Classes. NIPS 2005. (There the same-class terms
    of a sample are summed; here, as in the KL divergence, they are averaged.)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> mcml = vc.MCML().fit(X, y)
    >>> mcml.transform(X).shape, mcml.objective_ < 40
    ((150, 4), True)
    """

    _constraints: ClassVar[ParameterConstraints] = {**CONSTRAINTS, "backend": OneOf(BACKENDS)}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: str | ArrayLike = "auto",
        solver: str = "lbfgs",
        max_iter: int = 500,
        tol: float = 1e-5,
        backend: str = "auto",
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
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
        options = fit_options(self, given.n_features)
        data = sort_by_class(given.X.astype(np.float64), given.y)
        comparisons = build_comparisons(data.X, data.offsets)
        problem = MCMLObjective(
            X=data.X,
            comparisons=comparisons,
            kernel=make_kernel(comparisons, self.backend),
            parametrization=options.parametrization,
            pull=mean_pull(data.X, comparisons),
        )

        def to_components(params: FloatArray) -> FloatArray:
            L = options.parametrization.factor(params)
            return in_units_of_data(L, data.scale, given.X.dtype)

        rng = check_random_state(self.random_state)
        start = options.params_of(median_start(self.init, data, self.n_components, rng))
        n_excluded = len(data.X) - len(comparisons.anchors)
        warn_excluded(n_excluded, len(data.X), ALONE)
        solution = descend(options, start, lambda _: problem, to_components)
        store_solution(
            self,
            given,
            solution,
            tol=self.tol,
            components_=to_components(solution.params),
            classes_=data.classes,
            n_excluded_=n_excluded,
        )
