"""MLKR: metric learning for kernel regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from vicinal._typing import FloatArray, Seed
from vicinal.exceptions import warn_user
from vicinal.learners.descent import FitCallback
from vicinal.learners.fit_input import FitInput, check_labeled, check_on_device, stays_on_device
from vicinal.learners.labeled_data import (
    LabeledData,
    center_and_scale,
    refuse_extreme,
    unlabeled_data,
)
from vicinal.learners.neighbor_fit import CommonParts, RowConfiguration
from vicinal.learners.neighbor_learner import CONSTRAINTS, NeighborLearner
from vicinal.learners.parameters import (
    OPTIONAL_COUNT,
    ArrayGiven,
    CountOrArray,
    OneOf,
    ParameterConstraints,
)
from vicinal.objective.losses import RESIDUAL_LOSSES, Loss, get_loss
from vicinal.objective.regression_objective import RegressionObjective

NORMAL = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""


@dataclass(frozen=True, kw_only=True)
class RegressionConfiguration(RowConfiguration):
    """The regression objective of given targets."""

    dissimilar: str = "none"
    loss: Loss
    targets: FloatArray
    """(n, q) centered, of a size of about 1."""
    unit: float
    """What residuals of ``targets`` are multiplied by before the loss sees them."""
    excluded: ClassVar[str] = (
        "have no neighbor (their group, or an empty list) and are left out of the objective"
    )

    def objective(self, common: CommonParts) -> RegressionObjective:
        """See :meth:`vicinal.learners.neighbor_fit.RowConfiguration.objective`."""
        targets = common["kernel"].asarray(self.targets)
        return RegressionObjective(**common, loss=self.loss, targets=targets, unit=self.unit)


def regression_configuration(
    y: ArrayLike, loss: Any, neighbors: Any = "all", refresh_every: int | None = None
) -> RegressionConfiguration:
    """The objective of targets y (n,) or (n, q), and of a loss by its name or as a pair.

    "squared" and a pair see residuals in the units of y; "absolute" and "huber", whose shape has
    a scale, in units of the spread of y: 1.4826 times the median absolute deviation.
    """
    Y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    Y = Y.reshape(len(Y), -1)
    refuse_extreme(Y, "a squared residual", "y")
    targets, scale = center_and_scale(Y)
    if np.ptp(Y, axis=0).min() == 0:  # what rounding leaves of a constant is not a target
        targets[:, np.ptp(Y, axis=0) == 0] = 0.0
        targets, rescale = center_and_scale(targets)
        scale *= rescale
    chosen = get_loss(loss, RESIDUAL_LOSSES)
    unit = scale
    if chosen.name in ("absolute", "huber"):
        gaps = np.abs(targets - np.median(targets, axis=0))
        unit = 1.0 / (NORMAL * float(np.median(gaps)) or float(targets.std()) or 1.0)
    return RegressionConfiguration(
        loss=chosen, targets=targets, unit=unit, similar=neighbors, refresh_every=refresh_every
    )


class MLKR(NeighborLearner):
    """Metric Learning for Kernel Regression.

    Learns the distance by which averages over the neighbors predict numbers best. With
    d_ij = ‖L(x_i − x_j)‖², minimizes

    .. code-block:: text

        J = Σ_i w_i ℓ(y_i − ŷ_i),     ŷ_i = Σ_j p_ij y_j,     p_ij = e^{−d_ij} / Σ_{k≠i} e^{−d_ik}

    No sample predicts itself: J is a leave-one-out error. The length of L is learned too, and with
    it how many neighbors count.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features.
    loss : {"squared", "absolute", "huber"} or pair of callables, default="squared"
        ℓ, summed over the targets if there are several. "absolute" is smooth around 0, "huber" is
        quadratic up to one spread of y (a robust standard deviation) and then linear; both measure
        residuals in units of that spread. A pair (value, slope) of elementwise functions sees
        residuals in the units of y.
    neighbors : "all", int or lists, default="all"
        Which samples predict each sample: all others, its k nearest (Euclidean at first, see
        ``refresh_every``), or those that row i of an (n, k) array, or of a list of lists, names;
        negative entries are padding.
    refresh_every : int or None, default=None
        Choose the k nearest anew, by the learned metric, every so many iterations.
    init : {"auto", "identity", "pca", "random"} or array, default="auto"
        Where to start. "auto" is the identity (for fewer components PCA), scaled so that the mean
        perplexity of the p_i is ``perplexity``, as "pca" and "random" are. "identity" and arrays
        of shape (n_components, n_features) are taken as they are.
    perplexity : float, default=20
        How many neighbors count at the start.
    solver : {"auto", "lbfgs", "sgd", "pgd", "apg"}, default="auto"
        "lbfgs" and "sgd" (mini-batches) minimize over L; "pgd" and "apg" over M. "auto" is "lbfgs"
        up to 50,000 samples, beyond that "sgd"; ``solver_`` says what was used.
    max_iter : int, default=200
        Iterations (epochs of "sgd").
    tol : float, default=1e-5
        Stop when the objective's mean relative decrease per iteration, over 5 of them, or the
        relative size of the gradient is below this.
    backend : {"auto", "numba", "numpy", "cuda", "cuda:fast"}, default="auto"
        What computes it; "numpy" is the slow, readable reference, "cuda" needs ``vicinal[gpu]``.
    batch_size : int, default=256
        Samples per mini-batch of "sgd".
    n_references : int or "auto", default="auto"
        Samples that a mini-batch of "sgd" is compared with, drawn anew each time. "auto" is
        8,192, or all where there are fewer.
    warm_start : bool, default=False
        Start from the ``components_`` of the previous fit.
    callback : callable, default=None
        Called after every iteration with ``n_iter``, ``objective``, ``step`` and ``components``
        of the run; a true return value stops it.
    verbose : int, default=0
        1 logs every tenth iteration, 2 every one, on the logger "vicinal".
    random_state : int, RandomState or None, default=None
        For init="random" and solver="sgd".

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L.
    objective_ : float
        J at ``components_``.
    history_ : ndarray
        J of the start and of every accepted iterate.
    n_iter_, converged_, stop_reason_, solver_
        How the run ended: "gradient", "decrease" or "step" (converged), "max_iter", "callback".
    n_excluded_ : int
        Samples without a neighbor, left out of the objective.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With several targets the losses are added up as they are: standardize targets whose units
    differ. The objective is not convex.

    References
    ----------
    Weinberger, Tesauro: Metric Learning for Kernel Regression. AISTATS 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> import vicinal as vc
    >>> X, y = load_diabetes(return_X_y=True)
    >>> mlkr = vc.MLKR(n_components=2).fit(X[:300], y[:300])
    >>> knn = KNeighborsRegressor(20).fit(mlkr.transform(X[:300]), y[:300])
    >>> bool(knn.score(mlkr.transform(X[300:]), y[300:]) > 0.4)
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        **CONSTRAINTS,
        "init": OneOf(("auto", "identity", "pca", "random"), ArrayGiven()),
        "neighbors": OneOf(("all",), CountOrArray()),
        "refresh_every": OPTIONAL_COUNT,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        loss: Any = "squared",
        neighbors: str | int | ArrayLike = "all",
        refresh_every: int | None = None,
        init: str | ArrayLike = "auto",
        perplexity: float = 20.0,
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        backend: str = "auto",
        batch_size: int = 256,
        n_references: int | str = "auto",
        warm_start: bool = False,
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.neighbors = neighbors
        self.refresh_every = refresh_every
        self.init = init
        self.perplexity = perplexity
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.batch_size = batch_size
        self.n_references = n_references
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, **metadata: ArrayLike | None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
            A tensor on a GPU stays there, if ``backend`` is "auto" or a GPU's, and the fit is
            computed where it is.
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_targets)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,), optional
            What each sample counts in the objective. It weighs the sample's own loss; as a
            neighbor of others every sample counts alike.
        groups : array-like of shape (n_samples,), optional
            Samples of one group are never each other's neighbors.

        Returns
        -------
        self
        """
        return super().fit(X, y, **metadata)

    def _check_input(self, X: ArrayLike, y: ArrayLike) -> FitInput:
        if stays_on_device(X, self.backend):
            return check_on_device(X, y, multi_output=True)
        return check_labeled(self, X, y, multi_output=True, y_numeric=True)

    def _configuration_for(self, given: FitInput) -> RegressionConfiguration:
        found = regression_configuration(given.y, self.loss, self.neighbors, self.refresh_every)
        if not found.targets.any():
            warn_user("The target is constant: there is nothing to learn from it.", UserWarning)
        return found

    def _prepare(
        self, given: FitInput, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[FitInput, LabeledData]:
        return given, unlabeled_data(given.X, sample_weight=sample_weight, groups=groups)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
