"""The figures of a report for papers: each function takes findings and an Axes, and returns it.

``findings = vicinal.reporting.examine(model, X, y)`` computes once what all of them draw.
"""

from vicinal.plot.errors import calibration, confusion, effective_neighbors, margins
from vicinal.plot.maps import maps
from vicinal.plot.metric import directions, feature_weights, metric_heatmap
from vicinal.plot.tuning import convergence, tuning_surface

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
