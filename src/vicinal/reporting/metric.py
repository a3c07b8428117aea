"""Section 3: the metric itself, in units that make features comparable."""

from __future__ import annotations

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.fitted_model import MeasuredRows
from vicinal.reporting.feature_columns import FeatureColumns
from vicinal.reporting.findings import Direction, MetricFindings

FEATURES_SHOWN = 30


def column_weights(M: FloatArray, covariance: FloatArray, columns: FeatureColumns) -> FloatArray:
    """(p,) what each column alone adds to the mean squared distance, as a share of the total.

    Of a column of one feature that is M_ff σ_f²: units cancel, and plain K-NN has 1/d.

    Parameters
    ----------
    M : (d, d) metric
    covariance : (d, d) of the features
    columns : what the features were made of

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal.reporting.feature_columns import FeatureColumns
    >>> columns = FeatureColumns.named("ab", "ab")
    >>> column_weights(np.diag([1.0, 4.0]), np.diag([9.0, 0.25]), columns)
    array([0.9, 0.1])
    """
    of = columns.of_features
    inside = (M * covariance * (of[:, None] == of)).sum(axis=1)  # (d,)
    weights = np.maximum(columns.sums(inside[None])[0], 0.0)
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def column_matrix(
    M: FloatArray, covariance: FloatArray, columns: FeatureColumns, shown: IndexArray
) -> FloatArray:
    """(t, t) M between columns, in standard deviations.

    Between two columns of one feature each it is M_fg σ_f σ_g. A block of several has the size of
    C_A^½ M_AB C_B^½, and the sign of what it adds to the mean squared distance.

    Parameters
    ----------
    M : (d, d) metric
    covariance : (d, d) C of the features
    columns : what the features were made of
    shown : (t,) columns
    """
    members = [columns.members(column) for column in shown.tolist()]
    roots = [_root(covariance[np.ix_(rows, rows)]) for rows in members]
    found = np.empty((len(shown), len(shown)))
    for i, rows in enumerate(members):
        for j, others in enumerate(members):
            part = M[np.ix_(rows, others)]
            block = roots[i] @ part @ roots[j]
            if block.size == 1:
                found[i, j] = block.item()
                continue
            adds = float((part * covariance[np.ix_(rows, others)]).sum())
            found[i, j] = np.copysign(np.linalg.norm(block), adds)
    return found


def _root(covariance: FloatArray) -> FloatArray:
    """Symmetric square root of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def metric_findings(
    M: FloatArray,
    A: FloatArray,
    axes: FloatArray,
    spreads: FloatArray,
    columns: FeatureColumns,
    unfolded: MeasuredRows | None = None,
) -> MetricFindings:
    """The heaviest columns, M among them, and the leading directions.

    Parameters
    ----------
    M : (d, d) metric
    A : (n, d) training rows
    axes : (r, d) directions of largest variance of the transformed data, as linear functions of
        the features: row k is Lᵀ v_k
    spreads : (r,) fraction of that variance
    columns : what the features were made of
    unfolded : what the metric is about, if not the features themselves: then M is only near to it
    """
    covariance, scale = np.atleast_2d(np.cov(A, rowvar=False, bias=True)), A.std(axis=0)
    if unfolded is None:
        weights = column_weights(M, covariance, columns)
    else:
        weights = columns.sums(unfolded.mean_contributions()[None])[0]
    shown = np.argsort(-weights, kind="stable")[:FEATURES_SHOWN]
    matrix = column_matrix(M, covariance, columns, shown)
    largest = float(np.abs(matrix).max())
    return MetricFindings(
        features=shown,
        weights=weights[shown],
        plain=np.full(len(shown), 1 / len(weights)),
        matrix=matrix / (largest or 1.0),
        directions=tuple(
            _direction(axis * scale, spread, columns)
            for axis, spread in zip(axes[spreads > 1e-9], spreads[spreads > 1e-9], strict=True)
        ),
        n_features=len(weights),
        unfolded=unfolded is not None,
        summed=not columns.are_features,
    )


def _direction(loadings: FloatArray, spread: float, columns: FeatureColumns) -> Direction:
    """The features of the largest loadings (d,)."""
    order = np.argsort(-np.abs(loadings), kind="stable")[:FEATURES_SHOWN]
    size = float(np.linalg.norm(loadings)) or 1.0
    names = tuple(columns.features[feature] for feature in order)
    return Direction(float(spread), names, loadings[order] / size)
