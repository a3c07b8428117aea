"""The learners that are configurations of the neighbor objective share this ``fit``."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils import check_scalar
from sklearn.utils.validation import validate_data

from vicinal.kernels import BACKENDS, DEVICE_BACKENDS
from vicinal.learners.base import DTYPES, MetricLearner
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.learners.configuration import Configuration, check_choice, check_n_components
from vicinal.learners.device_data import check_device_data, on_host, stays_on_device
from vicinal.learners.evidence import store_evidence, warn_if_flat
from vicinal.learners.initialization import INITS
from vicinal.learners.labeled_data import sort_by_class
from vicinal.learners.metadata import take_fit_metadata
from vicinal.learners.neighbor_fit import NeighborFit
from vicinal.solvers import SOLVERS, Solution


class NeighborLearner(MetricLearner):
    """A metric learner that minimizes the neighbor objective; subclasses say which one."""

    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None, "groups": None}

    def __init__(
        self,
        *,
        n_components: int | None = None,
        init: Any = "auto",
        perplexity: float = 20.0,
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        backend: str = "auto",
        class_weight: Any = None,
        batch_size: int = 256,
        n_references: int | str = "auto",
        warm_start: bool = False,
        callback: Any = None,
        verbose: int = 0,
        random_state: Any = None,
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
    def fit(self, X: Any, y: Any, **metadata: Any) -> Self:
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
        fit = self._prepare(X, y, metadata)
        with single_threaded_blas():
            solution = fit.run()
        self._keep(fit, solution)
        return self

    def _prepare(self, X: Any, y: Any, metadata: dict[str, Any]) -> NeighborFit:
        """Check everything that is given."""
        sample_weight, groups = take_fit_metadata(self, metadata)
        if stays_on_device(X, self.backend):
            X, y = check_device_data(self, X, on_host(y))
        else:
            X, y = validate_data(self, on_host(X), on_host(y), dtype=DTYPES, ensure_min_samples=2)
        self._check_parameters(X.shape[1])
        data = sort_by_class(
            X,
            y,
            sample_weight=on_host(sample_weight),
            class_weight=self.class_weight,
            groups=on_host(groups),
        )
        return NeighborFit(self, self._configuration(), data)

    def _keep(self, fit: NeighborFit, solution: Solution) -> None:
        self.classes_ = fit.classes
        self.components_ = fit.to_components(solution.params)
        self.solver_ = fit.solver
        self.n_excluded_ = fit.n_excluded
        store_evidence(self, solution, stacklevel=4)
        warn_if_flat(self, solution, stacklevel=4)

    def _check_parameters(self, d: int) -> None:
        """Every parameter that can be wrong by itself, before any work is done."""
        check_n_components(self.n_components, d)
        check_choice("init", self.init, INITS, or_array=True)
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        check_choice("backend", self.backend, (*BACKENDS, *DEVICE_BACKENDS))
        check_scalar(self.perplexity, "perplexity", Real, min_val=1, include_boundaries="neither")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.tol, "tol", Real, min_val=0)
        check_scalar(self.batch_size, "batch_size", Integral, min_val=1)
        if self.n_references != "auto":
            check_scalar(self.n_references, "n_references", Integral, min_val=2)
        if self.callback is not None and not callable(self.callback):
            raise ValueError("callback must be a function of one FitProgress, or None")
