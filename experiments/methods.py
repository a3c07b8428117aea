"""The methods of Table 2 and their grids, with the same budget for all.

Honest protocol: at most `BUDGET` configurations per method, each of at most `MAX_ITER` iterations
(BoostMetric: `MAX_ROUNDS` rounds of up to 16 rank-one matrices; ITML: `MAX_PASSES` passes over its
pairs), judged by the same five folds; K comes free, from one neighbor search. A method with two
parameters tunes them one after the other, as the paper proposes for α and γ. Paper protocol: the
paper's grids as printed.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

Parameters: TypeAlias = Mapping[str, Any]

BUDGET = 9
MAX_ITER = 50
MAX_ROUNDS = 10
MAX_PASSES = 20
TOL = 1e-4

FEW_NEIGHBORS = tuple(range(1, 11))
SPREAD_NEIGHBORS = tuple(range(1, 47, 3))
NEIGHBORS = tuple(sorted({*FEW_NEIGHBORS, *SPREAD_NEIGHBORS}))
"""K of the honest protocol, the same for all methods."""


@dataclass(frozen=True)
class Stage:
    """Values to try, in the order of warm starts, around the best of the stages before."""

    values: tuple[Parameters, ...]

    @classmethod
    def of(cls, **grid: Iterable[Any]) -> Stage:
        """All combinations; the last parameter varies fastest.

        Parameters
        ----------
        **grid : the values of each parameter
        """
        combined = itertools.product(*grid.values())
        return cls(tuple(dict(zip(grid, values, strict=True)) for values in combined))


@dataclass(frozen=True)
class Method:
    """A metric learner, followed by the majority vote of K neighbors."""

    name: str
    label: str
    learner: str
    """``module:class`` of something with ``fit(X, y)`` and ``transform(X)``."""
    fixed: Parameters = field(default_factory=dict)
    honest: tuple[Stage, ...] = (Stage.of(),)
    paper: tuple[Stage, ...] | None = None
    """None: there is nothing to tune but K."""
    paper_fixed: Parameters = field(default_factory=dict)
    paper_neighbors: Sequence[int] = FEW_NEIGHBORS
    warm: bool = False
    """Whether ``init`` takes the ``components_`` of the configuration before."""
    on_gpu: bool = False
    """Whether a GPU can compute it."""
    backend: str = "auto"
    """Backend of the learner."""

    def stages(self, protocol: str) -> tuple[Stage, ...]:
        """The stages of the tuning.

        Parameters
        ----------
        protocol : "honest", "paper" or "noisy"
        """
        if protocol != "paper":
            return self.honest
        return self.paper if self.paper is not None else (Stage.of(),)

    def neighbors(self, protocol: str) -> Sequence[int]:
        """The values of K.

        Parameters
        ----------
        protocol : "honest", "paper" or "noisy"
        """
        return self.paper_neighbors if protocol == "paper" else NEIGHBORS

    def make(self, parameters: Parameters, protocol: str, seed: int, init: Any = None) -> Any:
        """A fresh learner.

        Parameters
        ----------
        parameters : what is tuned
        protocol : "honest", "paper" or "noisy"
        seed : for learners that draw
        init : (m, d) factor to start from; None is the learner's own start
        """
        module, _, name = self.learner.partition(":")
        learner = getattr(importlib.import_module(module), name)()
        chosen = {**self.fixed, **parameters}
        if protocol == "paper":
            chosen |= self.paper_fixed
        known = learner.get_params()
        if "random_state" in known:
            chosen["random_state"] = seed
        if self.warm and init is not None:
            chosen["init"] = init
        return learner.set_params(**chosen, **self.computed_by)

    @property
    def computed_by(self) -> dict[str, str]:
        """``backend``, where it is not the learner's own choice."""
        return {} if self.backend == "auto" else {"backend": self.backend}


@dataclass(frozen=True)
class Automatic:
    """The automatic classifier: it tunes itself, inside the training part, by any protocol."""

    name: str = "auto"
    label: str = "ANNClassifier"
    classifier: str = "vicinal.automatic.classifier:ANNClassifier"
    fixed: Parameters = field(default_factory=dict)

    def make(self, seed: int) -> Any:
        """A fresh classifier.

        Parameters
        ----------
        seed : its random state
        """
        module, _, name = self.classifier.partition(":")
        return getattr(importlib.import_module(module), name)(random_state=seed, **self.fixed)


def on_backend(method: Method | Automatic, backend: str) -> Method | Automatic:
    """The method computed by that backend; itself where it has no backend to choose.

    Parameters
    ----------
    method : of `METHODS`
    backend : "auto", "cuda" or "cuda:fast"
    """
    if isinstance(method, Method) and method.on_gpu:
        return replace(method, backend=backend)
    return method


def powers_of_two(low: int, high: int, step: int = 1) -> tuple[float, ...]:
    """2^low … 2^high.

    Parameters
    ----------
    low, high, step : of the exponents
    """
    return tuple(2.0**k for k in range(low, high + 1, step))


def _negative(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(-value for value in values)


_DESCENT = {"max_iter": MAX_ITER, "tol": TOL}
_ALPHAS = powers_of_two(-4, 4, 2)
_GAMMAS = (Stage.of(gamma=(1 / 4, 1 / 16)), Stage.of(gamma=(4.0, 16.0)))  # γ = 1 comes before
_PAPER_ALPHAS = powers_of_two(-8, 10)
_TENTHS = tuple(k / 10 for k in range(1, 10))
_PAPER_START = {"init": "paper"}

_ALL: tuple[Method | Automatic, ...] = (
    Method("euclidean", "Euclidean", "sklearn.preprocessing:FunctionTransformer"),
    Method(
        "nca",
        "NCA",
        "vicinal.learners.nca:NCA",
        fixed={"tol": TOL, "max_iter": MAX_ITER},
        honest=(Stage.of(perplexity=(5.0, 20.0, 80.0), max_iter=(5, 15, MAX_ITER)),),
        paper_neighbors=SPREAD_NEIGHBORS,
        on_gpu=True,
    ),
    Method(
        "lmnn",
        "LMNN",
        "vicinal.learners.lmnn:LMNN",
        fixed=_DESCENT,
        honest=(Stage.of(n_neighbors=(4, 7, 10), push_weight=(0.1, 0.5, 0.9)),),
        paper=(Stage.of(n_neighbors=range(4, 11), push_weight=_TENTHS),),
        warm=True,
    ),
    Method(
        "itml",
        "ITML",
        "vicinal.learners.itml:ITML",
        fixed={"max_iter": MAX_PASSES},
        honest=(Stage.of(gamma=(0.01, 0.03, 0.1, 0.25, 0.5, 0.7, 0.9, 3.0, 10.0)),),
        paper=(Stage.of(gamma=(0.25, 0.5, 0.7, 0.9)),),
    ),
    Method(
        "ldml",
        "LDML",
        "vicinal.learners.ldml:LDML",
        fixed=_DESCENT,
        honest=(Stage.of(pair_weight=(None, "balanced"), regularization=(1e-1, 1e-2, 1e-3, 0.0)),),
        warm=True,
    ),
    Method(
        "scml",
        "SCML",
        "vicinal.learners.scml:SCML",
        fixed={"max_iter": MAX_ITER},
        honest=(Stage.of(beta=tuple(10.0**-k for k in range(1, 8))),),
    ),
    Method(
        "rvml",
        "RVML",
        "vicinal.learners.rvml:RVML",
        honest=(Stage.of(kernel=("linear", "rbf"), regularization=(1e-5, 1e-4, 1e-3, 1e-2)),),
    ),
    Method(
        "gmml",
        "GMML",
        "vicinal.learners.gmml:GMML",
        honest=(Stage.of(t=_TENTHS),),
        paper=(Stage.of(t=_TENTHS),),
    ),
    Method(
        "boostmetric",
        "BoostMetric",
        "vicinal.learners.boostmetric:BoostMetric",
        fixed={"max_iter": MAX_ROUNDS},
        honest=(Stage.of(n_similar=(3, 7), v=(1e-7, 1e-4, 1e-3, 1e-2)),),
    ),
    Method(
        "pnca",
        "PNCA",
        "vicinal.learners.pnca:PNCA",
        fixed=_DESCENT,
        honest=(Stage.of(alpha=powers_of_two(-4, 4)),),
        paper=(Stage.of(alpha=_PAPER_ALPHAS),),
        paper_fixed=_PAPER_START,
        paper_neighbors=SPREAD_NEIGHBORS,
        warm=True,
        on_gpu=True,
    ),
    Method(
        "ann+",
        "ANN⁺",
        "vicinal.learners.ann:ANN",
        fixed=_DESCENT,
        honest=(Stage.of(alpha=_ALPHAS), *_GAMMAS),
        paper=(Stage.of(alpha=_PAPER_ALPHAS),),
        paper_fixed=_PAPER_START,
        paper_neighbors=SPREAD_NEIGHBORS,
        warm=True,
        on_gpu=True,
    ),
    Method(
        "ann-",
        "ANN⁻",
        "vicinal.learners.ann:ANN",
        fixed=_DESCENT,
        honest=(Stage.of(alpha=_negative(_ALPHAS)), *_GAMMAS),
        paper=(Stage.of(alpha=_negative(_PAPER_ALPHAS)),),
        paper_fixed=_PAPER_START,
        paper_neighbors=SPREAD_NEIGHBORS,
        warm=True,
        on_gpu=True,
    ),
    Automatic(),
)

METHODS = {method.name: method for method in _ALL}
"""By name, in the order of the paper's table."""
