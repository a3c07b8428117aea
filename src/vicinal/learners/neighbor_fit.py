"""One fit of the neighbor objective: start → neighbor sets → kernel → objective → solver."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from vicinal._typing import FloatArray
from vicinal.exceptions import ExcludedRowsWarning
from vicinal.kernels import DEVICE_BACKENDS, Comparisons, choose_backend, make_kernel
from vicinal.learners.configuration import Configuration
from vicinal.learners.device_data import on_host
from vicinal.learners.initialization import embed, starting_factor
from vicinal.learners.labeled_data import LabeledData
from vicinal.learners.progress import fit_callback, logger, show_log
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift
from vicinal.objective.neighbor_sets import Selection, build_comparisons, lists_from_user
from vicinal.objective.pair_sums import pull_matrix
from vicinal.objective.parametrization import Factor, Metric, Parametrization
from vicinal.objective.sampled_objective import SampledObjective
from vicinal.solvers import SOLVERS, Problem, Solution, StopReason

if TYPE_CHECKING:
    from vicinal.learners.neighbor_learner import NeighborLearner


MAX_EXACT_PAIRS = 2.5e9
"""Beyond this many pairs of rows an exact evaluation takes the better part of a minute."""
MAX_DEVICE_PAIRS = 1e12
"""The same for a GPU, where it takes a second or two."""
AUTO_REFERENCES = 8192


class NeighborFit:
    """What a learner's parameters, its configuration and the data make of each other."""

    def __init__(
        self, learner: NeighborLearner, configuration: Configuration, data: LabeledData
    ) -> None:
        self._learner, self._configuration, self._data = learner, configuration, data
        self._rng = check_random_state(learner.random_state)
        self._backend = choose_backend(learner.backend, len(data.X))
        if not isinstance(data.X, np.ndarray) and learner.backend == "auto":
            self._backend = "cuda"  # where the samples are
        self.solver = self._choose_solver()
        self._parametrization: Parametrization = Metric() if self._learns_matrix else Factor()
        self.n_excluded = 0

    @property
    def classes(self) -> NDArray[Any]:
        """The labels of the classes."""
        return self._data.classes

    @property
    def _learns_matrix(self) -> bool:
        return self.solver in ("pgd", "apg")

    @property
    def _on_device(self) -> bool:
        return self._backend in DEVICE_BACKENDS

    def _choose_solver(self) -> str:
        """What ``solver="auto"`` means for these data; an impossible choice is an error."""
        learner, n = self._learner, len(self._data.X)
        if learner.solver == "auto":
            affordable = MAX_DEVICE_PAIRS if self._on_device else MAX_EXACT_PAIRS
            return "lbfgs" if float(n) ** 2 <= affordable else "sgd"
        d = self._data.X.shape[1]
        if learner.solver in ("pgd", "apg") and learner.n_components not in (None, d):
            raise ValueError(
                f"solver={learner.solver!r} learns the whole matrix M and cannot keep it at rank "
                f"n_components={learner.n_components}; use solver='lbfgs' or 'sgd', or "
                "n_components=None"
            )
        return str(learner.solver)

    def run(self) -> Solution:
        """Solve; if neighbors are to be refreshed, in legs of so many iterations."""
        learner = self._learner
        if learner.verbose:
            show_log()
            logger.info("%s uses solver %s", type(learner).__name__, self.solver)
        params, comparisons = self._start(), self._compare(self._data.X)
        self._count_excluded(comparisons)
        leg = self._configuration.refresh_every or learner.max_iter
        solution = self._solve(params, comparisons, min(leg, learner.max_iter), 0)
        while solution.stop_reason == "max_iter" and solution.n_iter < learner.max_iter:
            Z = embed(self._data.X, self._parametrization.factor(solution.params))
            following = self._solve(
                solution.params,
                self._compare(Z),
                min(leg, learner.max_iter - solution.n_iter),
                solution.n_iter,
            )
            solution = replace(
                following,
                n_iter=solution.n_iter + following.n_iter,
                history=np.concatenate([solution.history, following.history[1:]]),
                stop_reason=self._reason_after(following),
            )
        return solution

    def _reason_after(self, leg: Solution) -> StopReason:
        """Why a leg ended; one that hardly decreased is the last, however short legs are."""
        gained = leg.history[0] - leg.value
        enough = max(leg.n_iter, 1) * self._learner.tol * abs(leg.value)
        return "decrease" if leg.stop_reason == "max_iter" and gained <= enough else leg.stop_reason

    def to_components(self, params: FloatArray) -> FloatArray:
        """L in the units of the data."""
        L = self._parametrization.factor(params) / self._data.scale
        return np.asarray(L, dtype=self._data.dtype)

    def _start(self) -> FloatArray:
        learner, d = self._learner, self._data.X.shape[1]
        m = learner.n_components or d
        init = learner.init
        if learner.warm_start and hasattr(learner, "components_"):
            init = learner.components_
        L = starting_factor(init, self._data, m, learner.perplexity, self._rng)
        start = L.T @ L if self._learns_matrix else L
        return np.asarray(start, dtype=self._data.dtype)

    def _compare(self, X: FloatArray) -> Comparisons:
        """Neighbor sets, nearest ones taken in the space of X; weightless rows are no anchors."""
        data, configuration = self._data, self._configuration
        sides = (configuration.similar, configuration.dissimilar)
        if data.groups is not None and any(isinstance(side, Integral) for side in sides):
            X = on_host(X)  # neighbors of other groups are looked for there
        comparisons = build_comparisons(
            X,
            data.offsets,
            similar=self._selection(configuration.similar, X, same_class=True),
            dissimilar=self._selection(configuration.dissimilar, X, same_class=False),
            groups=data.groups,
        )
        weighed = comparisons.anchors[data.weights[comparisons.anchors] > 0]
        if len(weighed) == 0:
            raise ValueError("Every sample that has a similar and a dissimilar one has weight 0")
        return replace(comparisons, anchors=weighed)

    def _count_excluded(self, comparisons: Comparisons) -> None:
        empty = (comparisons.n_similar == 0) | (comparisons.n_dissimilar == 0)
        self.n_excluded = int(empty.sum())
        if self.n_excluded:
            warnings.warn(
                f"{self.n_excluded} of {len(empty)} samples have no similar or no dissimilar "
                "sample (one-sample classes, or groups) and are left out of the objective.",
                ExcludedRowsWarning,
                stacklevel=5,
            )

    def _solve(
        self, params: FloatArray, comparisons: Comparisons, max_iter: int, n_iter_before: int
    ) -> Solution:
        learner = self._learner
        callback = fit_callback(
            type(learner).__name__,
            learner.callback,
            learner.verbose,
            n_iter_before,
            self.to_components,
        )
        solve: Callable[..., Solution] = SOLVERS[self.solver]
        objective = self._objective(comparisons)
        problem: Problem = objective
        if self.solver == "sgd":
            solve = partial(solve, batch_size=learner.batch_size, random_state=self._rng)
            problem = self._sampled(objective)
        return solve(problem, params, max_iter=max_iter, tol=learner.tol, callback=callback)

    def _objective(self, comparisons: Comparisons) -> NeighborObjective:
        data, configuration = self._data, self._configuration
        n = len(data.X)
        regularization = configuration.regularization
        strength = 1.0 / n**2 if regularization == "auto" else float(regularization)
        shift: FloatArray = np.zeros(n)
        if configuration.plain:
            shift = plain_shift(comparisons, configuration.alpha)
        kernel = make_kernel(comparisons, self._backend)
        return NeighborObjective(
            X=kernel.asarray(data.X),
            comparisons=comparisons,
            kernel=kernel,
            parametrization=self._parametrization,
            loss=configuration.loss,
            alpha=configuration.alpha,
            gamma=configuration.gamma,
            shift=kernel.asarray(shift),
            weights=kernel.asarray(data.weights),
            pull=strength * self._pull(comparisons),
        )

    def _pull(self, comparisons: Comparisons) -> FloatArray:
        if isinstance(self._data.X, np.ndarray):
            return pull_matrix(self._data.X, comparisons, self._data.weights)
        from vicinal.kernels.gpu import pull_matrix_of  # imports torch

        return pull_matrix_of(self._data.X, comparisons, self._data.weights)

    def _sampled(self, objective: NeighborObjective) -> Problem:
        """Against all rows while that is affordable, else against a fresh sample of them."""
        n_references = self._learner.n_references
        size = AUTO_REFERENCES if n_references == "auto" else int(n_references)
        if size >= len(self._data.X) or (n_references == "auto" and self._on_device):
            return objective
        bind = partial(make_kernel, backend=self._backend)
        seed = int(self._rng.randint(2**31 - 1))
        return SampledObjective(objective, bind, size, self._learner.batch_size, seed)

    def _selection(self, chosen: Any, X: FloatArray, *, same_class: bool) -> Selection:
        """What the parameter ``similar`` or ``dissimilar`` selects, in terms of sorted rows."""
        data = self._data
        if isinstance(chosen, str):
            return "all"
        if not isinstance(chosen, Integral):
            return lists_from_user(chosen, data.order, data.codes, same_class=same_class)
        if self._on_device and data.groups is None:
            from vicinal.kernels.gpu import nearest_of_class  # imports torch

            return nearest_of_class(X, data.offsets, int(chosen), same_class=same_class)
        return int(chosen)
