"""Section 3: the metric itself, in units that make features comparable."""

from __future__ import annotations

import numpy as np

from vicinal._typing import FloatArray
from vicinal.fitted_model import MeasuredRows
from vicinal.reporting.findings import Direction, MetricFindings

FEATURES_SHOWN = 30


def feature_weights(M: FloatArray, scale: FloatArray) -> FloatArray:
    """(d,) M_ff σ_f² / Σ_g M_gg σ_g²: units of the features cancel, and 1/d is plain K-NN.

    Parameters
    ----------
    M : (d, d) metric
    scale : (d,) standard deviations σ of the features

    Examples
    --------
    >>> import numpy as np
    >>> feature_weights(np.diag([1.0, 4.0]), np.array([3.0, 0.5]))
    array([0.9, 0.1])
    """
    weights = np.diag(M) * scale**2
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def metric_findings(
    M: FloatArray,
    scale: FloatArray,
    axes: FloatArray,
    spreads: FloatArray,
    unfolded: MeasuredRows | None = None,
) -> MetricFindings:
    """The heaviest features, M among them, and the leading directions.

    Parameters
    ----------
    M : (d, d) metric
    scale : (d,) standard deviations of the features
    axes : (r, d) directions of largest variance of the transformed data, as linear functions of
        the features: row k is Lᵀ v_k
    spreads : (r,) fraction of that variance
    unfolded : what the metric is about, if not the features themselves: then M is only near to it
    """
    weights = feature_weights(M, scale)
    if unfolded is not None:
        weights = unfolded.mean_contributions()
    features = np.argsort(-weights, kind="stable")[:FEATURES_SHOWN]
    comparable = (M * np.outer(scale, scale))[np.ix_(features, features)]
    largest = float(np.abs(comparable).max())
    directions = []
    for axis, spread in zip(axes[spreads > 1e-9], spreads[spreads > 1e-9], strict=True):
        loadings = axis * scale
        size = float(np.linalg.norm(loadings)) or 1.0
        directions.append(Direction(float(spread), loadings[features] / size))
    return MetricFindings(
        features=features,
        weights=weights[features],
        matrix=comparable / (largest or 1.0),
        directions=tuple(directions),
        n_features=len(weights),
        unfolded=unfolded is not None,
    )
