"""The base of ANN, PNCA, NCA and MLKR: learners that minimize a sum over rows."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from vicinal._typing import ClassWeight, FloatArray, Seed
from vicinal.exceptions import SaturatedStartWarning, warn_user
from vicinal.kernels import BACKENDS, DEVICE_BACKENDS
from vicinal.learners.base import MetricLearner
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.learners.descent import (
    FitCallback,
    FitOptions,
    check_rank,
    logger,
    show_log,
    store_solution,
)
from vicinal.learners.fit_input import (
    FitInput,
    check_labeled,
    check_on_device,
    on_host,
    stays_on_device,
    take_fit_metadata,
)
from vicinal.learners.initialization import starting_factor
from vicinal.learners.labeled_data import LabeledData, sort_by_class
from vicinal.learners.neighbor_fit import (
    Configuration,
    NeighborFit,
    RowConfiguration,
    Sampling,
    backend_for,
    solver_for,
)
from vicinal.learners.parameters import (
    CALLBACK,
    COUNT,
    NOT_NEGATIVE,
    OPTIONAL_COUNT,
    ArrayGiven,
    Number,
    OneOf,
    ParameterConstraints,
    check_n_components,
    check_parameters,
)
from vicinal.solvers import SOLVERS, Solution

CONSTRAINTS: ParameterConstraints = {
    "n_components": OPTIONAL_COUNT,
    "init": OneOf(("auto", "identity", "pca", "lda", "random", "paper"), ArrayGiven()),
    "perplexity": Number(1, above_low=True),
    "solver": OneOf(("auto", *SOLVERS)),
    "max_iter": COUNT,
    "tol": NOT_NEGATIVE,
    "backend": OneOf((*BACKENDS, *DEVICE_BACKENDS)),
    "batch_size": COUNT,
    "n_references": OneOf(("auto",), Number(2, whole=True)),
    "callback": CALLBACK,
}


class NeighborLearner(MetricLearner):
    """A metric learner that minimizes a sum over rows; subclasses say of what."""

    _constraints: ClassVar[ParameterConstraints] = CONSTRAINTS
    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None, "groups": None}

    def __init__(
        self,
        *,
        n_components: int | None = None,
        init: str | ArrayLike = "auto",
        perplexity: float = 20.0,
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        backend: str = "auto",
        class_weight: ClassWeight = None,
        batch_size: int = 256,
        n_references: int | str = "auto",
        warm_start: bool = False,
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.perplexity = perplexity
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.class_weight = class_weight
        self.batch_size = batch_size
        self.n_references = n_references
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _configuration(self) -> Configuration:
        raise NotImplementedError

    # ``sample_weight`` and ``groups`` are named in the metadata request above rather than in the
    # signature: scikit-learn's check_estimator takes a ``sample_weight`` in the signature as the
    # promise that a weight of 2 equals repeating the row. No neighbor objective can keep it: a
    # repeated row is its own nearest neighbor, a weighted one is not.
    def fit(self, X: ArrayLike, y: ArrayLike, **metadata: ArrayLike | None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
            A tensor on a GPU stays there, if ``backend`` is "auto" or a GPU's, and the fit is
            computed where it is.
        y : array-like or tensor of shape (n_samples,)
            Class labels of any type that scikit-learn takes.
        sample_weight : array-like of shape (n_samples,), optional
            What each sample counts in the objective. It weighs the sample's own loss; as a
            neighbor of others every sample counts alike.
        groups : array-like of shape (n_samples,), optional
            Samples of one group are never each other's neighbors: give the subject where several
            rows come from one, so that the metric does not learn to recognize it.

        Returns
        -------
        self
        """
        sample_weight, groups = take_fit_metadata(self, metadata)
        given = self._check_input(X, y)
        check_parameters(self)
        check_n_components(self.n_components, given.n_features)
        configuration = self._configuration_for(given)
        given, data = self._prepare(given, on_host(sample_weight), on_host(groups))
        rng = check_random_state(self.random_state)
        backend = backend_for(self.backend, data)
        options = self._options(configuration, data, backend, rng)
        sampling = Sampling(self.batch_size, self.n_references, rng)
        fit = NeighborFit(configuration, data, options, sampling, backend)
        with single_threaded_blas():
            solution, n_excluded = fit.run(self._start(data, rng))
        store_solution(
            self,
            given,
            solution,
            tol=self.tol,
            components_=fit.to_components(solution.params),
            solver_=options.solver,
            n_excluded_=n_excluded,
        )
        self._warn_if_flat(solution)
        return self

    def _check_input(self, X: ArrayLike, y: ArrayLike) -> FitInput:
        """Samples and labels, checked where they are."""
        on_device = stays_on_device(X, self.backend)
        return check_on_device(X, y) if on_device else check_labeled(self, X, y)

    def _configuration_for(self, given: FitInput) -> RowConfiguration:
        """The configuration of a fit of these data."""
        return self._configuration()

    def _prepare(
        self, given: FitInput, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> tuple[FitInput, LabeledData]:
        """The data as the objective wants them, and the attributes that they give."""
        data = sort_by_class(
            given.X,
            given.y,
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            groups=groups,
        )
        return given.adding(classes_=data.classes), data

    def _options(
        self,
        configuration: RowConfiguration,
        data: LabeledData,
        backend: str,
        rng: np.random.RandomState,
    ) -> FitOptions:
        """The options of the descent; an impossible solver is an error."""
        n, d = data.X.shape
        check_rank(self.solver, self.n_components, d, "solver='lbfgs' or 'sgd'")
        solver = solver_for(self.solver, n, backend)
        name = type(self).__name__
        if self.verbose:
            show_log()
            logger.info("%s uses solver %s", name, solver)
        drawn = {"batch_size": self.batch_size, "random_state": rng}
        return FitOptions(
            name=name,
            solver=solver,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
            verbose=self.verbose,
            refresh_every=configuration.refresh_every,
            solver_options=drawn if solver == "sgd" else {},
        )

    def _start(self, data: LabeledData, rng: np.random.RandomState) -> FloatArray:
        """L to start from, in the units of ``data.X``: that of an earlier fit where asked for."""
        m = self.n_components or data.X.shape[1]
        warm = self.warm_start and hasattr(self, "components_")
        init = self.components_ if warm else self.init
        return starting_factor(init, data, m, self.perplexity, rng)

    def _warn_if_flat(self, solution: Solution) -> None:
        """Tell where a run ended where it began: a minimum if it was a warm start, else a fault."""
        ended_at_once = solution.stop_reason == "gradient" and solution.n_iter == 0
        if ended_at_once and solution.value != 0 and not self.warm_start:
            warn_user(
                f"The objective of {type(self).__name__} is flat at the start, nothing was "
                "learned: the scale of the start is far from the data's. Use init='auto', or "
                "standardize the features.",
                SaturatedStartWarning,
            )
