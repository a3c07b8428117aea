"""Entries of the metric learners."""

from __future__ import annotations

from typing import Any

from vicinal.model_file.entry import Entry
from vicinal.model_file.schema import (
    Array,
    Evidence,
    Field,
    Flag,
    Integer,
    Labels,
    Names,
    Number,
    Output,
    Text,
)

FEATURES = (
    Field("n_features_in_", Integer(low=1, size="d")),
    Field("feature_names_in_", Names("d"), optional=True),
    Field("_sklearn_output_config", Output(), optional=True),
)
METRIC = (
    *FEATURES,
    Field("components_", Array(("m", "d"))),
    Field("classes_", Labels(), optional=True),  # absent after fit_pairs and fit_triplets
    Field("threshold_", Number(), optional=True),
)
OUTCOME = (Field("converged_", Flag()), Field("stop_reason_", Text()))
RUN = (
    *OUTCOME,
    Field("objective_", Number(unlimited=True)),
    Field("history_", Evidence()),
    Field("n_iter_", Integer()),
)
EXCLUDED = (Field("n_excluded_", Integer()),)
NEIGHBOR = (*METRIC, *RUN, *EXCLUDED, Field("solver_", Text()))
COMPOSITION = (
    *METRIC,
    *RUN,
    *EXCLUDED,
    Field("weights_", Evidence()),
    Field("bases_", Evidence(axes=2)),
    Field("scale_", Number()),
)


def _check_rvml(model: Any) -> None:
    """L is applied to x, or in the kernel form to k(x), which needs the samples."""
    linear = model.kernel == "linear"
    if linear != (model.X_fit_ is None) or linear != (model.gamma_ is None):
        raise ValueError("X_fit_ and gamma_ belong to kernel='rbf', and only to it")
    inputs = model.n_features_in_ if linear else len(model.X_fit_)
    if model.components_.shape[1] != inputs:
        raise ValueError(f"components_ must have {inputs} columns")


RVML = Entry(
    "vicinal.learners.rvml:RVML",
    state=(
        *FEATURES,
        Field("components_", Array(("m", None))),
        Field("classes_", Labels()),
        Field("threshold_", Number(), optional=True),
        Field("X_fit_", Array(("n", "d")), nullable=True),
        Field("gamma_", Number(low=0.0), nullable=True),
        Field("virtual_points_", Array(("n", "m"))),
        Field("objective_", Number(unlimited=True)),
        *OUTCOME,
    ),
    parameters=(Field("kernel", Text(("linear", "rbf"))),),
    check=_check_rvml,
)

LEARNERS = {
    "ANN": Entry("vicinal.learners.ann:ANN", NEIGHBOR),
    "PNCA": Entry("vicinal.learners.pnca:PNCA", NEIGHBOR),
    "NCA": Entry("vicinal.learners.nca:NCA", NEIGHBOR),
    "LMNN": Entry("vicinal.learners.lmnn:LMNN", (*METRIC, *RUN, *EXCLUDED)),
    "MCML": Entry("vicinal.learners.mcml:MCML", (*METRIC, *RUN, *EXCLUDED)),
    "LDML": Entry("vicinal.learners.ldml:LDML", (*METRIC, *RUN, Field("bias_", Number()))),
    "ITML": Entry(
        "vicinal.learners.itml:ITML",
        (*METRIC, *RUN, Field("n_pairs_", Integer()), Field("bounds_", Array((2,)))),
    ),
    "GMML": Entry("vicinal.learners.gmml:GMML", (*METRIC, *OUTCOME, Field("regularized_", Flag()))),
    "SCML": Entry("vicinal.learners.scml:SCML", COMPOSITION),
    "BoostMetric": Entry(
        "vicinal.learners.boostmetric:BoostMetric",
        (*COMPOSITION, Field("eigenvalues_", Evidence())),
    ),
    "RVML": RVML,
}
