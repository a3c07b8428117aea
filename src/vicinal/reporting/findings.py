"""The content of a report as frozen values, drawn by the page and by ``vicinal.plot``.

Rows are indices into the points that are shown, classes are codes into ``Findings.classes``, and
features are indices into ``Findings.features``; -1 stands for "none". Where an encoder made several
features of a column of a table, "features" are the columns: what belongs to one is summed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray


@dataclass(frozen=True)
class AccuracyScore:
    """``correct`` of ``total`` rows right, with the 95 % Wilson interval of the accuracy."""

    name: str
    note: str
    correct: int
    total: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Chosen:
    """One setting, its value, and why it is what it is."""

    name: str
    value: str
    why: str


@dataclass(frozen=True)
class Headline:
    """The quality of the model: the learned metric, plain K-NN and the majority class, in order."""

    protocol: str
    """What the rows are that the accuracies were measured on, and what to keep in mind."""
    scores: tuple[AccuracyScore, AccuracyScore, AccuracyScore]
    gained: int
    """Rows that the learned metric gets right and plain K-NN wrong."""
    lost: int
    """The other way round."""
    p_value: float
    """Of the exact sign test of ``gained`` against ``lost``, two-sided."""
    chosen: tuple[Chosen, ...]


@dataclass(frozen=True)
class ErrorScore:
    """Errors of predicted numbers, with the 95 % interval of their root mean square."""

    name: str
    note: str
    rmse: float
    low: float
    high: float
    mae: float
    """Mean absolute error."""
    r2: float
    """1 − squared error / variance."""


@dataclass(frozen=True)
class NumberHeadline:
    """How near predicted numbers are: the learned metric, plain K-NN and the mean, in order."""

    protocol: str
    scores: tuple[ErrorScore, ErrorScore, ErrorScore]
    total: int
    gained: int
    """Rows that the learned metric is nearer to than plain K-NN."""
    lost: int
    """The other way round."""
    p_value: float
    """Of the exact sign test of ``gained`` against ``lost``, two-sided."""
    chosen: tuple[Chosen, ...]


@dataclass(frozen=True)
class Neighborhoods:
    """The k nearest training rows of each of n points, nearest first."""

    rows: IndexArray
    """(n, k) points."""
    distances: FloatArray
    """(n, k)"""
    features: IndexArray
    """(n, k, t) the features with the largest shares of the squared distance; t = 0: unknown."""
    shares: FloatArray
    """(n, k, t) δ_f (Mδ)_f / δᵀMδ of these; over all features they sum to 1."""
    agreement: float
    """Mean fraction of the neighbors that have the point's label, or of numbers the mean distance
    of their targets from the point's: of the held-out points, or, if there are none, of all."""


@dataclass(frozen=True)
class Maps:
    """The points before (standardized) and after (learned metric), two directions each."""

    ids: tuple[str, ...]
    labels: IndexArray | FloatArray
    """(n,) classes, or numbers."""
    predictions: IndexArray | FloatArray
    """(n,) -1, or of numbers NaN: unknown."""
    held_out: NDArray[np.bool_]
    """(n,) not training rows: they are nobody's neighbor."""
    before: FloatArray
    """(n, 2)"""
    after: FloatArray
    """(n, 2)"""
    before_spread: tuple[float, float]
    """Fraction of the variance in each direction; the second is 0 where there is only one."""
    after_spread: tuple[float, float]
    near_before: Neighborhoods
    near_after: Neighborhoods
    kept: float
    """Mean number of neighbors that a point has in common before and after."""
    n_rows: int
    """Of which the points are a stratified sample, where there are more."""
    focus: int
    """The point to begin with."""
    focus_why: str
    """Why that one; empty where no neighborhood improved."""
    voters: str
    """How many neighbors decide, where that is not the number listed; else empty."""


@dataclass(frozen=True)
class Direction:
    """A leading direction of the transformed data, in standard deviations of the features."""

    spread: float
    """Fraction of the variance of the transformed data."""
    names: tuple[str, ...]
    """(t,) of the features, levels of a column included, with the largest loadings."""
    loadings: FloatArray
    """(t,)"""


@dataclass(frozen=True)
class MetricFindings:
    """M in units that make features comparable: M_fg σ_f σ_g."""

    features: IndexArray
    """(t,) features shown, the heaviest first."""
    weights: FloatArray
    """(t,) M_ff σ_f² / Σ_g M_gg σ_g²: what each alone adds to the mean squared distance."""
    plain: FloatArray
    """(t,) the same of plain K-NN on standardized features."""
    matrix: FloatArray
    """(t, t) M_fg σ_f σ_g, divided by the largest entry in absolute value."""
    directions: tuple[Direction, ...]
    n_features: int
    unfolded: bool = False
    """Whether the metric is about functions of the features: weights are theirs, M near to it."""
    summed: bool = False
    """Whether they are columns of a table, some of them several features."""


@dataclass(frozen=True)
class Surface:
    """Cross-validated error over a grid of two settings; NaN where nothing was tried."""

    title: str
    x_name: str
    y_name: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    error: FloatArray
    """(len(y), len(x))"""
    chosen: tuple[tuple[int, int], ...]
    """(row, column) of what was chosen."""
    note: str


@dataclass(frozen=True)
class Curve:
    """The objective of every iterate."""

    name: str
    values: FloatArray


@dataclass(frozen=True)
class Tuning:
    """The settings tried, and the descent of the objective."""

    surfaces: tuple[Surface, ...]
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class AtRisk:
    """A point with a small margin."""

    point: int
    margin: float


@dataclass(frozen=True)
class Histogram:
    """Counts between consecutive edges."""

    name: str
    note: str
    edges: FloatArray
    counts: IndexArray
    median: float


@dataclass(frozen=True)
class Calibration:
    """Rows by the probability of their predicted class: what was promised, what came true."""

    promised: FloatArray
    """(b,) mean probability of the predicted class in each bin."""
    came_true: FloatArray
    """(b,) fraction right."""
    counts: IndexArray


@dataclass(frozen=True)
class Errors:
    """The errors of the model on the rows of the headline."""

    confusion: IndexArray
    """(c, c) rows true, columns predicted."""
    precision: FloatArray
    """(c,) NaN where the class was never predicted."""
    recall: FloatArray
    """(c,) NaN where the class has no row."""
    support: IndexArray
    margin_name: str
    margins: Histogram
    at_risk: tuple[AtRisk, ...]
    calibration: Calibration


@dataclass(frozen=True)
class Coverage:
    """How many targets lie inside of their intervals, with the 95 % Wilson interval."""

    nominal: float
    measured: float
    low: float
    high: float


@dataclass(frozen=True)
class ResidualGroup:
    """Residuals (actual less predicted) of the rows with like values of a feature."""

    name: str
    count: int
    mean: float
    low: float
    """The quantile of 10 %."""
    high: float
    """The quantile of 90 %."""


@dataclass(frozen=True)
class ResidualsByFeature:
    """Residuals along one feature, its values in ascending order."""

    feature: str
    groups: tuple[ResidualGroup, ...]


@dataclass(frozen=True)
class NumberErrors:
    """Where predicted numbers are off: p points of the map, and all rows of the headline."""

    points: IndexArray
    """(p,)"""
    low: FloatArray
    """(p,) lower ends of their 90 % intervals."""
    high: FloatArray
    coverage: tuple[Coverage, ...]
    coverage_note: str
    width: float
    """Mean width of the 90 % intervals."""
    residuals: Histogram
    by_feature: tuple[ResidualsByFeature, ...]
    worst: IndexArray
    """(t,) places in ``points`` of the largest errors, the largest first."""


@dataclass(frozen=True)
class NeighborsUsed:
    """Numbers of neighbors that count (Lemma 3): a histogram per side, none where K is constant."""

    histograms: tuple[Histogram, ...]
    note: str


@dataclass(frozen=True)
class Fact:
    """A line, or several, of the provenance."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """All that a report says."""

    title: str
    summary: str
    classes: tuple[str, ...]
    """Empty where numbers are predicted."""
    features: tuple[str, ...]
    headline: Headline | NumberHeadline
    maps: Maps
    metric: MetricFindings | None
    """None where the metric is not a quadratic form of the features."""
    tuning: Tuning
    errors: Errors | NumberErrors
    neighbors: NeighborsUsed
    provenance: tuple[Fact, ...]
