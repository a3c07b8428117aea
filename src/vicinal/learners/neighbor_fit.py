"""One fit of the neighbor objective: configuration, neighbor sets, kernel, objective, solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, TypedDict

import numpy as np

from vicinal._typing import Array, FloatArray
from vicinal.kernels import DEVICE_BACKENDS, Comparisons, Kernel, choose_backend, make_kernel
from vicinal.learners.descent import FitOptions, descend, warn_excluded
from vicinal.learners.fit_input import in_units_of_data, on_host
from vicinal.learners.initialization import embed
from vicinal.learners.labeled_data import LabeledData
from vicinal.learners.parameters import NOT_NEGATIVE, OPTIONAL_COUNT, CountOrArray, OneOf
from vicinal.objective.losses import Loss, get_loss
from vicinal.objective.neighbor_objective import (
    NeighborObjective,
    RowObjective,
    check_exponents,
    plain_shift,
)
from vicinal.objective.neighbor_sets import Selection, build_comparisons, lists_from_user
from vicinal.objective.pair_sums import pull_matrix
from vicinal.objective.parametrization import Parametrization
from vicinal.objective.sampled_objective import SampledObjective
from vicinal.solvers import Problem, Solution


class CommonParts(TypedDict):
    """The parts of an objective that every configuration has."""

    X: Array
    comparisons: Comparisons
    kernel: Kernel
    parametrization: Parametrization
    weights: Array
    pull: FloatArray


@dataclass(frozen=True, kw_only=True)
class RowConfiguration:
    """The rows that are compared, and what is computed of their distances."""

    similar: Any = "all"
    dissimilar: Any = "all"
    regularization: float | str = 0.0
    refresh_every: int | None = None
    excluded: ClassVar[str]
    """Why samples are left out, as the end of a sentence about them."""

    def objective(self, common: CommonParts) -> RowObjective:
        """The objective, from the parts that all of them have."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Configuration(RowConfiguration):
    """A member of the framework: one line of the table "method = configuration"."""

    alpha: float
    gamma: float
    loss: Loss
    plain: bool
    excluded: ClassVar[str] = (
        "have no similar or no dissimilar sample (one-sample classes, or groups) and are left out "
        "of the objective"
    )

    def objective(self, common: CommonParts) -> NeighborObjective:
        """See :meth:`RowConfiguration.objective`."""
        comparisons = common["comparisons"]
        shift: FloatArray = np.zeros(len(comparisons.n_similar))
        if self.plain:
            shift = plain_shift(comparisons, self.alpha)
        return NeighborObjective(
            **common,
            loss=self.loss,
            alpha=self.alpha,
            gamma=self.gamma,
            shift=common["kernel"].asarray(shift),
        )


def check_configuration(
    *,
    alpha: float,
    gamma: float,
    loss: Any,
    plain: bool,
    similar: Any,
    dissimilar: Any,
    regularization: Any,
    refresh_every: Any = None,
) -> Configuration:
    """A configuration from a user's parameters, each checked, "auto" resolved."""
    check_exponents(alpha, gamma)
    if plain and alpha == 0:
        raise ValueError(
            "plain=True has no soft average at alpha=0; use another alpha, or the mean"
        )
    OneOf(("auto",), NOT_NEGATIVE).check("regularization", regularization)
    if isinstance(similar, str) and similar == "auto":
        similar = 10 if alpha < 0 else "all"
    for name, value in (("similar", similar), ("dissimilar", dissimilar)):
        OneOf(("all",), CountOrArray()).check(name, value)
    OPTIONAL_COUNT.check("refresh_every", refresh_every)
    return Configuration(
        alpha=float(alpha),
        gamma=float(gamma),
        loss=get_loss(loss),
        plain=bool(plain),
        similar=similar,
        dissimilar=dissimilar,
        regularization=regularization,
        refresh_every=refresh_every,
    )


MAX_EXACT_PAIRS = 2.5e9
"""Beyond this many pairs of rows an exact evaluation takes the better part of a minute."""
MAX_DEVICE_PAIRS = 1e12
"""The same for a GPU, where it takes a second or two."""
AUTO_REFERENCES = 8192


def backend_for(backend: str, data: LabeledData) -> str:
    """Resolve ``backend="auto"`` for these data: samples on a GPU stay there."""
    if backend == "auto" and not isinstance(data.X, np.ndarray):
        return "cuda"
    return choose_backend(backend, len(data.X))


def solver_for(solver: str, n: int, backend: str) -> str:
    """Resolve ``solver="auto"`` for n samples: exact gradients while they are affordable."""
    if solver != "auto":
        return solver
    affordable = MAX_DEVICE_PAIRS if backend in DEVICE_BACKENDS else MAX_EXACT_PAIRS
    return "lbfgs" if float(n) ** 2 <= affordable else "sgd"


@dataclass(frozen=True)
class Sampling:
    """Mini-batches of the solver "sgd", and the number of samples that they are compared with."""

    batch_size: int
    n_references: int | str
    rng: np.random.RandomState


@dataclass(frozen=True)
class NeighborFit:
    """One fit: which objective, of which data, minimized how."""

    _configuration: RowConfiguration
    _data: LabeledData
    _options: FitOptions
    _sampling: Sampling
    _backend: str

    @property
    def _on_device(self) -> bool:
        return self._backend in DEVICE_BACKENDS

    def run(self, L: FloatArray) -> tuple[Solution, int]:
        """Minimize from the factor L (m, d), and count the samples that are left out."""
        first = self._compare(self._data.X)
        n_excluded = int((~first.usable).sum())
        warn_excluded(n_excluded, len(first.usable), self._configuration.excluded)

        def problem_at(L: FloatArray | None) -> Problem:
            if L is None:
                return self._problem(first)
            return self._problem(self._compare(embed(self._data.X, L)))

        start = np.asarray(self._options.params_of(L), dtype=self._data.dtype)
        return descend(self._options, start, problem_at, self.to_components), n_excluded

    def to_components(self, params: FloatArray) -> FloatArray:
        """L in the units of the data."""
        L = self._options.parametrization.factor(params)
        return in_units_of_data(L, self._data.scale, self._data.dtype)

    def _compare(self, X: FloatArray) -> Comparisons:
        """Neighbor sets, nearest in the space of X; rows without weight are not anchors."""
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

    def _problem(self, comparisons: Comparisons) -> Problem:
        objective = self._objective(comparisons)
        return self._sampled(objective) if self._options.solver == "sgd" else objective

    def _objective(self, comparisons: Comparisons) -> RowObjective:
        data, regularization = self._data, self._configuration.regularization
        strength = 1.0 / len(data.X) ** 2 if regularization == "auto" else float(regularization)
        kernel = make_kernel(comparisons, self._backend)
        return self._configuration.objective(
            {
                "X": kernel.asarray(data.X),
                "comparisons": comparisons,
                "kernel": kernel,
                "parametrization": self._options.parametrization,
                "weights": kernel.asarray(data.weights),
                "pull": strength * pull_matrix(data.X, comparisons, data.weights),
            }
        )

    def _sampled(self, objective: RowObjective) -> Problem:
        """Against all rows while that is affordable, else against a fresh sample of them."""
        n_references = self._sampling.n_references
        size = AUTO_REFERENCES if n_references == "auto" else int(n_references)
        if size >= len(self._data.X) or (n_references == "auto" and self._on_device):
            return objective
        bind = partial(make_kernel, backend=self._backend)
        seed = int(self._sampling.rng.randint(2**31 - 1))
        return SampledObjective(objective, bind, size, self._sampling.batch_size, seed)

    def _selection(self, chosen: Any, X: FloatArray, *, same_class: bool) -> Selection:
        """The selection of the parameter ``similar`` or ``dissimilar``, in terms of sorted rows."""
        data = self._data
        if isinstance(chosen, str):
            return "none" if chosen == "none" else "all"
        if not isinstance(chosen, Integral):
            return lists_from_user(chosen, data.order, data.codes, same_class=same_class)
        if self._on_device and data.groups is None:
            from vicinal.kernels.gpu import nearest_of_class  # imports torch

            return nearest_of_class(X, data.offsets, int(chosen), same_class=same_class)
        return int(chosen)
