"""Sparse Compositional Metric Learning (Shi, Bellet, Sha 2014), the global metric."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.learners.descent import FitCallback, fit_callback
from vicinal.learners.fit_input import FitInput, check_labeled
from vicinal.learners.labeled_data import encode_labels
from vicinal.learners.parameters import (
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    POSITIVE,
    ArrayGiven,
    OneOf,
    ParameterConstraints,
    check_n_components,
    check_parameters,
)
from vicinal.learners.rank_one_metrics import (
    CONSTRAINTS,
    Composed,
    TripletData,
    components_of,
    store_composed,
    triplet_data,
)
from vicinal.learners.scml_problem import (
    BestByHinge,
    DualAveraging,
    ScmlProblem,
    local_lda,
    triplet_directions,
)
from vicinal.learners.weakly_supervised import TripletLearner
from vicinal.solvers import Progress, smoothed_lbfgs
from vicinal.supervision import Triplets

MAX_ITER = {"smoothed": 1000, "dual_averaging": 100_000, "adagrad": 10_000}
BATCH_SIZE = {"dual_averaging": 1, "adagrad": 10}
N_EVALUATIONS = 20
"""Evaluations of the whole objective in a stochastic run: the original's 5,000 of 100,000."""


class SCML(TripletLearner):
    r"""Sparse Compositional Metric Learning: a few of many local discriminant directions.

    The metric M = Σ_k w_k b_k b_kᵀ is composed of fixed bases b_k; minimized over w ≥ 0 is

    .. code-block:: text

        J = (1/|C|) Σ_(i,j,l)∈C [1 + d_ij − d_il]₊ + β Σ_k w_k

    over triplets C: i ought to be nearer to j than to l, d_ij = (x_i − x_j)ᵀ M (x_i − x_j). From
    labels, these are the nearest ``n_similar`` of the class × the nearest ``n_dissimilar`` of the
    others for every sample. J is convex; β makes w sparse.

    The authors standardize the features and then scale every *row* to unit length. That is not
    linear, so it is not part of the metric: put it in front, as in
    ``make_pipeline(StandardScaler(), Normalizer(), SCML())``. What it is needed for, a scale at
    which β and the stochastic steps make sense, ``rescale`` gives without it.

    Parameters
    ----------
    beta : float, default=1e-5
        β, price of the bases' weights.
    basis : {"auto", "lda", "triplets"} or array of shape (n_basis, n_features), default="auto"
        "lda": Fisher's discriminants of the surroundings of k-means centers, at two scales.
        "triplets": the same from triplets, where there are no labels. "auto" is "lda" with labels,
        "triplets" without. An array is taken as it is; the paper's bases have length 1, and so
        have those of ``find_bases``, for many fits to one data set.
    n_basis : int, default=None
        How many bases to make; some more or less distinct ones may turn out useless. None is
        20 × n_features, for "lda" at most 2 n_samples min(n_classes − 1, n_features) − 1.
    n_similar, n_dissimilar : int, default=3 and 10
        Neighbors of either kind that make a sample's triplets, Euclidean in the space of X.
    rescale : bool, default=True
        Measure the data in units of their root mean square distance from the mean, so that neither
        β nor γ depends on the features' units. False takes the data as they are.
    solver : {"smoothed", "dual_averaging", "adagrad"}, default="smoothed"
        "smoothed" is deterministic: BFGS over the square roots of the weights, on the hinge loss
        with its kink smoothed less and less, up to the minimum. "dual_averaging" is the authors'
        stochastic algorithm, "adagrad" that of metric-learn, with a step of its own for every
        weight; both keep the best of 20 evaluated iterates.
    gamma : float, default=5e-3
        γ, inverse step size of the stochastic solvers.
    batch_size : int, default=None
        Triplets a stochastic step; None is 1 for "dual_averaging" and 10 for "adagrad".
    n_components : int, default=None
        Rows of L: that many leading eigenvectors of the learned M, the best approximation of this
        rank. None gives as many as M needs, the smaller of the numbers of bases used and features.
    max_iter : int, default=None
        Iterations; None is 1,000 for "smoothed", 100,000 steps for "dual_averaging", 10,000 for
        "adagrad".
    tol : float, default=1e-5
        "smoothed" stops where the smallest subgradient proves that J is within about 1,000 ``tol``
        of the minimum, relative to J + 0.1. The stochastic solvers never stop.
    callback : callable, default=None
        Called after every iteration (evaluation of a stochastic solver) with ``n_iter``,
        ``objective``, ``step`` and ``components``; a true return value stops the run.
    verbose : int, default=0
        1 logs every tenth iteration, 2 every one, on the logger "vicinal".
    random_state : int, RandomState or None, default=None
        For k-means and the draws of the stochastic solvers.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L with M = LᵀL.
    weights_, bases_ : ndarray of shape (n_active,) and (n_active, n_features)
        The positive w_k and their b_k: M = Σ_k w_k b_k b_kᵀ / scale_².
    scale_ : float
        The unit of the data (1 without ``rescale``).
    objective_ : float
        J, with the hinge loss as it is, at ``weights_``.
    history_ : ndarray
        J of the start w = 0 and of every iterate that lowered it.
    n_iter_, converged_, stop_reason_
        How the run ended: "stationary" or "gradient" (converged), "stalled", "max_iter",
        "callback". The stochastic solvers have no test of convergence and end with "max_iter".
    n_excluded_ : int
        Samples that are alone in their class and hence anchor no triplet (after ``fit``).
    classes_ : ndarray
        The class labels (after ``fit``).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Shi, Bellet, Sha: Sparse Compositional Metric Learning. AAAI 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import vicinal as vc
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), vc.SCML(random_state=0), KNeighborsClassifier(3))
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        **CONSTRAINTS,
        "beta": NOT_NEGATIVE,
        "gamma": POSITIVE,
        "basis": OneOf(("auto", "lda", "triplets"), ArrayGiven()),
        "solver": OneOf(tuple(MAX_ITER)),
        "n_basis": OPTIONAL_COUNT,
        "batch_size": OPTIONAL_COUNT,
        "max_iter": OPTIONAL_COUNT,
    }

    def __init__(
        self,
        beta: float = 1e-5,
        *,
        basis: str | ArrayLike = "auto",
        n_basis: int | None = None,
        n_similar: int = 3,
        n_dissimilar: int = 10,
        rescale: bool = True,
        solver: str = "smoothed",
        gamma: float = 5e-3,
        batch_size: int | None = None,
        n_components: int | None = None,
        max_iter: int | None = None,
        tol: float = 1e-5,
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.beta = beta
        self.basis = basis
        self.n_basis = n_basis
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.rescale = rescale
        self.solver = solver
        self.gamma = gamma
        self.batch_size = batch_size
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def find_bases(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """The bases that ``fit(X, y)`` chooses among, to be given as ``basis``.

        For many fits to the same rows: finding the bases takes as long as choosing among them.
        With an integer ``random_state`` the metric of solver="smoothed" is the same to the last
        digit; the stochastic solvers draw other triplets. Leave ``n_basis`` out beside them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        bases : ndarray of shape (n_basis, n_features)

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.preprocessing import scale
        >>> import vicinal as vc
        >>> X, y = load_wine(return_X_y=True)
        >>> X = scale(X)
        >>> bases = vc.SCML(random_state=0).find_bases(X, y)
        >>> path = [vc.SCML(beta, basis=bases).fit(X, y) for beta in (1e-2, 1e-4)]
        >>> [len(learner.weights_) < len(bases) for learner in path]
        [True, True]
        """
        given = check_labeled(self, X, y)
        check_parameters(self)
        _, codes = encode_labels(given.y)
        triplets, _ = self._triplets_from_labels(given, codes)
        data = triplet_data(given.X, triplets, codes, self.rescale)
        return np.asarray(self._bases(data, check_random_state(self.random_state)))

    def _learn_triplets(
        self, given: FitInput, triplets: Triplets, codes: IndexArray | None
    ) -> None:
        check_n_components(self.n_components, given.n_features)
        data = triplet_data(given.X, triplets, codes, self.rescale)
        store_composed(
            self,
            given,
            self._compose(data),
            scale=data.scale,
            n_components=self.n_components,
            tol=self.tol,
            may_converge=self.solver == "smoothed",
        )

    def _compose(self, data: TripletData) -> Composed:
        rng = check_random_state(self.random_state)
        bases = self._bases(data, rng)
        problem = ScmlProblem(data.sums, bases, float(self.beta))
        report = fit_callback(
            type(self).__name__,
            self.callback,
            self.verbose,
            0,
            lambda w: components_of(w, bases, data.scale, self.n_components),
        )
        best = BestByHinge(problem, report)
        if self.solver != "smoothed":
            return best.composed(self._draw(data, best, rng))
        start = problem.start()
        if not start.any():
            return best.composed("stationary")
        solution = smoothed_lbfgs(
            problem, start, max_iter=self._iterations(), tol=self.tol, callback=best.offer
        )
        best.drop_small_weights()
        return best.composed(solution.stop_reason)

    def _iterations(self) -> int:
        return MAX_ITER[self.solver] if self.max_iter is None else self.max_iter

    def _draw(self, data: TripletData, best: BestByHinge, rng: np.random.RandomState) -> str:
        averaging = DualAveraging(
            data.sums.X,
            best.problem.bases,
            data.triplets,
            beta=float(self.beta),
            gamma=float(self.gamma),
            adaptive=self.solver == "adagrad",
            batch_size=self.batch_size or BATCH_SIZE[self.solver],
        )
        max_iter = self._iterations()
        every = max(1, max_iter // N_EVALUATIONS)
        try:
            return averaging.run(
                max_iter, every, rng, lambda t, w: best.offer(Progress(t, np.nan, w, np.nan))
            )
        except KeyboardInterrupt:
            return "interrupted"

    def _bases(self, data: TripletData, rng: np.random.RandomState) -> FloatArray:
        n, d = data.sums.X.shape
        if not isinstance(self.basis, str):
            return _given_bases(self.basis, self.n_basis, d)
        basis = self.basis
        if basis == "auto":
            basis = "triplets" if data.codes is None else "lda"
        if basis == "lda":
            if data.codes is None:
                raise ValueError("basis='lda' needs labels; use basis='triplets', or an array")
            most = 2 * n * min(int(data.codes.max()), d) - 1
            bases = local_lda(data.sums.X, data.codes, self.n_basis or min(20 * d, most), rng)
        else:
            bases = triplet_directions(data.sums.X, data.triplets, self.n_basis or 20 * d, rng)
        return bases if len(bases) else np.eye(d)  # the axes where nothing separates


def _given_bases(basis: Any, n_basis: int | None, d: int) -> FloatArray:
    bases = check_array(basis, dtype=np.float64, input_name="basis")
    if bases.shape[1] != d:
        raise ValueError(f"basis has {bases.shape[1]} columns, X has {d} features")
    if n_basis is not None and n_basis != len(bases):
        raise ValueError(f"basis has {len(bases)} rows but n_basis={n_basis}; leave n_basis out")
    if not np.any(bases, axis=1).all():
        raise ValueError("basis has a row of zeros, which measures nothing")
    return bases
