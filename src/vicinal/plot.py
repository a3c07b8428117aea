"""The figures of a report for papers: each function takes findings and an Axes, and returns it.

``findings = vicinal.reporting.examine(model, X, y)`` computes once what all of them draw.
"""

from vicinal.reporting.metric_figures import (
    convergence,
    directions,
    feature_weights,
    metric_heatmap,
    tuning_surface,
)
from vicinal.reporting.row_figures import (
    calibration,
    confusion,
    effective_neighbors,
    maps,
    margins,
)

__all__ = [
    "calibration",
    "confusion",
    "convergence",
    "directions",
    "effective_neighbors",
    "feature_weights",
    "maps",
    "margins",
    "metric_heatmap",
    "tuning_surface",
]
