"""Entries of the estimators of vicinal: metric learners, searches and classifiers."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from sklearn.utils import check_random_state

from vicinal._typing import FloatArray
from vicinal.features.hat_basis import MAX_EXPANDED, MAX_KNOTS, HatBasis
from vicinal.features.kernel_basis import LANDMARKS
from vicinal.learners.parameters import check_n_components, check_parameters
from vicinal.model_file.entry import Entry
from vicinal.model_file.schema import (
    Columns,
    Evidence,
    Field,
    FittedEstimator,
    Integer,
    ListOf,
    Names,
    StoredArray,
    StoredLabels,
    StoredNumber,
    StoredTargets,
    Text,
    anything,
    flag,
    indices,
    output_container,
)
from vicinal.voting.votes import FADING, OF_TREES, VoteName

FEATURES = (
    Field("n_features_in_", Integer(low=1, size="d")),
    Field("feature_names_in_", Names("d"), optional=True),
    Field("_sklearn_output_config", output_container, optional=True),
)
METRIC = (
    *FEATURES,
    Field("components_", StoredArray(("m", "d"))),
    Field("classes_", StoredLabels(), optional=True),  # absent after fit_pairs and fit_triplets
    Field("threshold_", StoredNumber(), optional=True),
)
OUTCOME = (Field("converged_", flag), Field("stop_reason_", Text()))
RUN = (
    *OUTCOME,
    Field("objective_", StoredNumber(unlimited=True)),
    Field("history_", Evidence()),
    Field("n_iter_", Integer()),
)
REGULARIZED = Field("regularized_", flag)
EXCLUDED = (Field("n_excluded_", Integer()),)
NEIGHBOR = (*METRIC, *RUN, *EXCLUDED, Field("solver_", Text()))
COMPOSITION = (
    *METRIC,
    *RUN,
    *EXCLUDED,
    Field("weights_", Evidence()),
    Field("bases_", Evidence((None, None))),
    Field("scale_", StoredNumber()),
)


def _check_learner(model: Any) -> None:
    """Parameters that another fit takes: a report fits learners again, for cross-validation."""
    check_parameters(model)
    d = model.n_features_in_
    check_n_components(getattr(model, "n_components", None), d)
    check_random_state(getattr(model, "random_state", None))
    init = getattr(model, "init", "auto")
    if not isinstance(init, str) and np.shape(init)[1:] != (d,):
        raise ValueError(f"init must have {d} columns")


def _check_rvml(model: Any) -> None:
    """L is applied to x, or in the kernel form to k(x), which needs the samples."""
    _check_learner(model)
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
        Field("components_", StoredArray(("m", None))),
        Field("classes_", StoredLabels()),
        Field("threshold_", StoredNumber(), optional=True),
        Field("X_fit_", StoredArray(("n", "d")), nullable=True),
        Field("gamma_", StoredNumber(low=0.0), nullable=True),
        Field("virtual_points_", StoredArray(("n", "m"))),
        Field("objective_", StoredNumber(unlimited=True)),
        *OUTCOME,
    ),
    parameters=(Field("kernel", Text(("linear", "rbf"))),),
    check=_check_rvml,
)


STATES = {
    "ANN": NEIGHBOR,
    "PNCA": NEIGHBOR,
    "NCA": NEIGHBOR,
    "MLKR": NEIGHBOR,
    "LMNN": (*METRIC, *RUN, *EXCLUDED),
    "MCML": (*METRIC, *RUN, *EXCLUDED),
    "LDML": (*METRIC, *RUN, Field("bias_", StoredNumber())),
    "ITML": (*METRIC, *RUN, Field("n_pairs_", Integer()), Field("bounds_", StoredArray((2,)))),
    "GMML": (*METRIC, *OUTCOME, REGULARIZED),
    "MMC": (*METRIC, *RUN, REGULARIZED),
    "LSML": (*METRIC, *RUN),
    "SDML": (
        *METRIC,
        *OUTCOME,
        Field("sparse_matrix_", StoredArray(("d", "d"))),
        Field("objective_", StoredNumber(unlimited=True)),
        Field("n_iter_", Integer()),
    ),
    "RCA": (*METRIC, *OUTCOME, REGULARIZED),
    "LFDA": (*METRIC, *OUTCOME, REGULARIZED, Field("eigenvalues_", Evidence())),
    "Covariance": (*METRIC, *OUTCOME),
    "SCML": COMPOSITION,
    "BoostMetric": (*COMPOSITION, Field("eigenvalues_", Evidence())),
}

LEARNERS = {
    name: Entry(f"vicinal.learners.{name.lower()}:{name}", state, check=_check_learner)
    for name, state in STATES.items()
} | {"RVML": RVML}

MOST_VOTERS = 64  # the classifier may ask for more neighbors than a tiny training set has

REFITTED = ("scaler_", "best_estimator_", "classifier_", "components_")  # of ANNSearchCV

SAMPLES = (
    *FEATURES,
    Field("n_samples_fit_", Integer(low=1, size="n")),
    Field("classes_", StoredLabels()),
)


def _check_class_mean(model: Any) -> None:
    offsets, n = model.offsets_, model.n_samples_fit_
    if offsets[0] != 0 or offsets[-1] != n or not (np.diff(offsets) > 0).all():
        raise ValueError("offsets_ must rise from 0 to the number of samples")
    if not (np.bincount(model.rows_, minlength=n) == 1).all():
        raise ValueError("rows_ must name every sample once")
    if model.rule == "vote" and model.n_neighbors > n:
        raise ValueError(f"n_neighbors must not exceed the {n} samples")


CLASS_MEAN = Entry(
    "vicinal.voting.class_mean:ClassMeanKNN",
    state=(
        *SAMPLES,
        Field("references_", StoredArray(("n", "d"))),
        Field("rows_", StoredArray(("n",), "i", below="n")),
        Field("offsets_", StoredArray(("c+1",), "i", low=0)),
        Field("scale_", StoredNumber(low=1e-300)),
    ),
    parameters=(
        Field("n_neighbors", Integer(low=1)),
        Field("rule", Text(("class_mean", "vote"))),
    ),
    only=True,  # where it searches is a matter of the machine
    check=_check_class_mean,
)

CHOICE = Entry(
    "vicinal.automatic.committee:Choice",
    parameters=(
        Field("configuration", Text()),
        Field("iterate", Integer()),
        Field("vote", Text(get_args(VoteName))),
        Field("n_neighbors", Integer(low=1)),
        Field("weight", StoredNumber(low=0.0, high=1.0)),
        Field("metrics", indices),
    ),
)


TRIED = {"configuration": "U", "iterate": "iu", "vote": "U", "n_neighbors": "iu"}
"""The columns that name a candidate of ANNClassifier."""


def _check_forest(forest: Any) -> None:
    """Trees follow each other; children follow their parent in its tree, so that ways down end."""
    v, roots = len(forest.features), forest.roots
    if not len(roots) or roots[0] != 0 or np.any(np.diff(roots) <= 0) or roots[-1] >= v:
        raise ValueError("roots must be nodes in ascending order, from 0")
    inner = forest.features >= 0
    parents, children = np.flatnonzero(inner)[:, None], forest.children[inner]
    ends = np.append(roots[1:], v)[np.searchsorted(roots, parents, side="right") - 1]
    if (
        np.any(children <= parents)
        or np.any(children >= ends)
        or np.any(forest.children[~inner] != -1)
    ):
        raise ValueError("children must follow their parent in its tree, and leaves have none")


FOREST = Entry(
    "vicinal.voting.forest:Forest",
    parameters=(
        Field("roots", StoredArray(("t",), "i", low=0)),
        Field("features", StoredArray(("v",), "i", low=-1)),
        Field("thresholds", StoredArray(("v",))),
        Field("children", StoredArray(("v", 2), "i", low=-1)),
    ),
    check=_check_forest,
)


def _check_automatic(model: Any) -> None:
    if np.any(np.diff(model.oof_rows_) <= 0):
        raise ValueError("oof_rows_ must be ascending")
    if model.mode == "single" and not (model.knots_ is None and model.landmarks_ is None):
        raise ValueError("knots_ and landmarks_ belong to a committee, and only to it")
    encoder, d = model.encoder_, model.n_features_in_
    if encoder is not None and encoder.n_features_in_ != d:
        raise ValueError(f"encoder_ must take {d} columns, not {encoder.n_features_in_}")
    features = d if encoder is None else len(encoder.feature_columns_)
    if model.X_fit_.shape[1] != features:
        raise ValueError(f"X_fit_ must have {features} columns, not {model.X_fit_.shape[1]}")
    expected = features if model.knots_ is None else _unfolded_columns(model.knots_)
    expected += _kernel_columns(model.landmarks_, model.kernel_scales_)
    if model.metrics_.shape[2] != expected:
        raise ValueError(f"metrics_ must have {expected} columns, not {model.metrics_.shape[2]}")
    forests, n = model.forests_ or (), model.n_samples_fit_
    if any(forest.features.max() >= features for forest in forests):
        raise ValueError(f"forests_ must be about the {features} features")
    results = model.cv_results_
    if 1 not in results["rank_test_score"] or "euclid" not in results["configuration"]:
        raise ValueError("cv_results_ must have a best candidate, and one named euclid")
    tried = set(zip(*(results[name].tolist() for name in TRIED), strict=True))
    for member in model.chosen_:
        if tuple(getattr(member, name) for name in TRIED) not in tried:
            raise ValueError("chosen_ has a member that is not among cv_results_")
        q = len(forests if member.vote in OF_TREES else model.metrics_)
        if max(member.metrics) >= q:
            raise ValueError(f"chosen_ refers to metrics or forests beyond the {q} there are")
        most = n - 1 if member.vote in FADING else max(n, MOST_VOTERS)
        if member.n_neighbors > most:
            raise ValueError(f"chosen_ asks for {member.n_neighbors} neighbors of {n} samples")


def _unfolded_columns(knots: FloatArray) -> int:
    d, k = knots.shape
    if not (d <= MAX_EXPANDED and 1 <= k <= MAX_KNOTS):  # else a small file fills the memory
        raise ValueError(f"knots_ may have up to {MAX_EXPANDED} rows and {MAX_KNOTS} columns")
    if np.any(np.diff(knots, axis=1) < 0):
        raise ValueError("knots_ must be ascending")
    return len(HatBasis(knots).owners)


def _kernel_columns(landmarks: FloatArray | None, scales: FloatArray | None) -> int:
    if (landmarks is None) != (scales is None):
        raise ValueError("landmarks_ and kernel_scales_ belong together")
    if landmarks is not None and not 1 <= len(landmarks) <= LANDMARKS:
        raise ValueError(f"landmarks_ may have up to {LANDMARKS} rows")
    return 0 if landmarks is None else len(landmarks)


AUTOMATIC_STATE = (
    Field("encoder_", FittedEstimator(("TableEncoder",)), optional=True, nullable=True),
    Field("X_fit_", StoredArray(("n", "e"))),  # e features of d columns
    Field("row_weights_", StoredArray(("n",), low=0.0)),
    Field("metrics_", StoredArray(("q", "m", "p"))),
    # Absent in files that were written before features could be unfolded.
    Field("knots_", StoredArray(("e", None)), optional=True, nullable=True),
    Field("chosen_", ListOf("Choice")),
    Field("histories_", Columns(others="fiu", equal=False)),
    Field("oof_rows_", StoredArray(("t",), "i", below="n")),
    Field("best_score_", StoredNumber()),
    Field("fit_time_", StoredNumber()),
    Field("timed_out_", flag),
    # Absent in files that were written before there were forests.
    Field("forests_", ListOf("Forest"), optional=True, nullable=True),
    # Absent in files that were written before there were kernel functions.
    Field("landmarks_", StoredArray((None, "e")), optional=True, nullable=True),
    Field("kernel_scales_", StoredArray(("e",), low=0.0), optional=True, nullable=True),
)

AUTOMATIC = Entry(
    "vicinal.automatic.classifier:ANNClassifier",
    state=(
        *SAMPLES,
        *AUTOMATIC_STATE,
        Field("y_fit_", StoredArray(("n",), "i", below="c")),
        Field("prior_", StoredArray(("c",), low=0.0)),
        Field("cv_results_", Columns({**TRIED, "mean_test_error": "f", "rank_test_score": "iu"})),
        Field("oof_proba_", StoredArray(("t", "c"))),
        # Absent in files that were written before there was calibration.
        Field("exponent_", StoredNumber(low=0.1, high=10.0), optional=True),
        Field("calibration_error_", Evidence((2,)), optional=True, nullable=True),
    ),
    parameters=(Field("mode", Text(("committee", "single"))),),
    check=_check_automatic,
)


def _check_regressor(model: Any) -> None:
    _check_automatic(model)
    axes = {getattr(model, name).ndim for name in ("y_fit_", "oof_predictions_", "oof_scales_")}
    if len(axes) > 1:
        raise ValueError("y_fit_, oof_predictions_ and oof_scales_ must have as many axes")


REGRESSOR = Entry(
    "vicinal.automatic.regressor:ANNRegressor",
    state=(
        *FEATURES,
        Field("n_samples_fit_", Integer(low=2, size="n")),
        *AUTOMATIC_STATE,
        Field("y_fit_", StoredTargets("n")),
        Field("prior_", StoredArray(("targets",))),
        Field(
            "cv_results_",
            Columns({**TRIED, "mean_test_squared_error": "f", "rank_test_score": "iu"}),
        ),
        Field("shrinkage_", StoredNumber(low=0.0, high=1.0)),
        Field("oof_predictions_", StoredTargets("t")),
        Field("oof_scales_", StoredTargets("t", low=1e-300)),
    ),
    parameters=(Field("mode", Text(("committee", "single"))),),
    check=_check_regressor,
)


TUNED = {"alpha": "alphas_", "gamma": "gammas_", "n_neighbors": "n_neighbors_"}
"""The settings that ANNSearchCV chooses, and where it keeps the values tried."""


def _check_search(model: Any) -> None:
    if not isinstance(model.best_params_, dict) or set(model.best_params_) != set(TUNED):
        raise ValueError(f"best_params_ must be values of {', '.join(TUNED)}")
    for name, values in TUNED.items():
        best, tried = model.best_params_[name], model.cv_results_[f"param_{name}"].tolist()
        if best not in tried or best not in getattr(model, values).tolist():
            raise ValueError(f"best_params_ has a value of {name} that was not tried")
    refitted = [name in vars(model) for name in REFITTED]
    if any(refitted) != model.refit or not (all(refitted) or not any(refitted)):
        raise ValueError(f"refit=True leads to all of {', '.join(REFITTED)}, else to none")
    if not model.refit:
        return
    learner, knn, scaler = model.best_estimator_, model.classifier_, model.scaler_
    inputs = {model.n_features_in_, learner.n_features_in_, model.components_.shape[1]}
    inputs |= set() if scaler is None else {scaler.n_features_in_}
    outputs = {len(learner.components_), knn.n_features_in_, len(model.components_)}
    if len(inputs) > 1 or len(outputs) > 1:
        raise ValueError(
            "scaler_, best_estimator_, classifier_ and components_ do not fit together"
        )
    if knn.classes_.tolist() != model.classes_.tolist():
        raise ValueError("classes_ must be those of classifier_")


SEARCH = Entry(
    "vicinal.search.search_cv:ANNSearchCV",
    state=(
        *FEATURES,
        Field("classes_", StoredLabels()),
        Field("n_splits_", Integer()),
        Field(
            "cv_results_",
            Columns({"mean_test_score": "f", **{f"param_{name}": "fiu" for name in TUNED}}),
        ),
        Field("best_index_", Integer()),
        Field("best_params_", anything),
        Field("best_score_", StoredNumber()),
        Field("alphas_", Evidence(("a",))),
        Field("gammas_", Evidence(("g",))),
        Field("n_neighbors_", Evidence(("k",))),
        Field("error_alpha_k_", Evidence(("a", "k"))),
        Field("error_gamma_k_", Evidence(("g", "k"))),
        Field("error_alpha_gamma_", Evidence(("a", "g"))),
        Field("scaler_", FittedEstimator(("StandardScaler",)), optional=True, nullable=True),
        Field("best_estimator_", FittedEstimator(("ANN", "PNCA", "NCA")), optional=True),
        Field("classifier_", FittedEstimator(("ClassMeanKNN",)), optional=True),
        Field("components_", StoredArray(("m", "d")), optional=True),
    ),
    parameters=(Field("refit", flag),),
    check=_check_search,
)


def _check_neighbor_regressor(model: Any) -> None:
    check_parameters(model)
    if model.n_neighbors > model.n_samples_fit_:
        raise ValueError(f"n_neighbors must not exceed the {model.n_samples_fit_} samples")


NEIGHBOR_REGRESSOR = Entry(
    "vicinal.voting.neighbor_regressor:NeighborRegressor",
    state=(
        *FEATURES,
        Field("n_samples_fit_", Integer(low=1, size="n")),
        Field("references_", StoredArray(("n", "d"))),
        Field("targets_", StoredTargets("n")),
    ),
    parameters=(
        Field("n_neighbors", Integer(low=1)),
        Field("vote", Text(("mean", "epanechnikov", "soft"))),
    ),
    check=_check_neighbor_regressor,
)

ESTIMATORS = {
    **LEARNERS,
    "ClassMeanKNN": CLASS_MEAN,
    "ANNClassifier": AUTOMATIC,
    "ANNRegressor": REGRESSOR,
    "NeighborRegressor": NEIGHBOR_REGRESSOR,
    "Choice": CHOICE,
    "Forest": FOREST,
    "ANNSearchCV": SEARCH,
}
