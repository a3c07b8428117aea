"""Entries of what surrounds an estimator: scikit-learn's steps and pipelines, models of tables."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from vicinal.features.column_codes import PERIODS
from vicinal.features.column_encoding import ColumnEncoding
from vicinal.features.table_encoder import TableEncoder
from vicinal.features.table_values import DATE_FORMATS, ISO_DATE
from vicinal.model_file.entry import Entry, Values, attributes
from vicinal.model_file.estimator_entries import FEATURES, LEARNERS
from vicinal.model_file.schema import (
    MIN_DIVISOR,
    Evidence,
    Field,
    FittedEstimator,
    Integer,
    ListOf,
    Names,
    Sizes,
    StoredArray,
    StoredLabels,
    StoredNumber,
    Text,
    Texts,
    anything,
    check_fields,
    flag,
    nothing,
)


def _check_scaler(model: BaseEstimator) -> None:
    if model.with_mean and model.mean_ is None:
        raise ValueError("with_mean=True needs mean_")
    if model.with_std and model.scale_ is None:
        raise ValueError("with_std=True needs scale_")


SCALER = Entry(
    "sklearn.preprocessing:StandardScaler",
    state=(
        *FEATURES,
        Field("mean_", StoredArray(("d",)), nullable=True),
        Field("scale_", StoredArray(("d",), low=MIN_DIVISOR), nullable=True),
        Field("var_", StoredArray(("d",)), nullable=True),
        Field("n_samples_seen_", anything),
    ),
    parameters=tuple(Field(name, flag) for name in ("with_mean", "with_std", "copy")),
    only=True,
    check=_check_scaler,
)

SVD_SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized")


def _check_pca(model: BaseEstimator) -> None:
    """Parameters that another fit takes."""
    k, m, d = model.n_components, model.n_components_, model.n_features_in_
    if not (k in (None, "mle", m) or (isinstance(k, float) and 0 < k < 1)) or m > d:
        raise ValueError(f"n_components = {k!r} does not lead to {m} of {d} features")
    check_random_state(model.random_state)


PCA = Entry(
    "sklearn.decomposition:PCA",
    state=(
        *FEATURES,
        Field("components_", StoredArray(("m", "d"))),
        Field("mean_", StoredArray(("d",))),
        Field("explained_variance_", StoredArray(("m",), low=0.0)),
        Field("explained_variance_ratio_", Evidence()),
        Field("singular_values_", Evidence()),
        Field("noise_variance_", StoredNumber(unlimited=True)),
        Field("n_components_", Integer(size="m")),
        Field("n_samples_", Integer()),
    ),
    parameters=(
        Field("n_components", anything),
        Field("whiten", flag),
        Field("copy", flag),
        Field("svd_solver", Text(SVD_SOLVERS)),
        Field("random_state", anything),
    ),
    only=True,
    check=_check_pca,
)


def _neighbors_state(model: Any, names: tuple[str, ...]) -> Values:
    """The training data; all else follows from them."""
    if not hasattr(model, "classes_"):
        return {}
    if issparse(model._fit_X) or model.outputs_2d_:
        raise TypeError("a KNeighborsClassifier of sparse data or several outputs is not supported")
    return {
        **attributes(model, names),
        "X": np.asarray(model._fit_X),
        "codes": model._y.astype(np.intp, copy=False),
    }


def _fit_neighbors(cls: type, parameters: Values, state: Values) -> Any:
    """Fit it again: scikit-learn's search trees are its own affair, and depend on its version."""
    X, codes, classes = state["X"], state["codes"], state["classes_"]
    if len(np.unique(codes)) != len(classes) or (np.sort(classes) != classes).any():
        raise ValueError("classes_ must be sorted and all have samples")
    if parameters["n_neighbors"] > len(X):
        raise ValueError(f"n_neighbors must not exceed the {len(X)} samples")
    model = cls(**parameters).fit(X, classes[codes])
    if "feature_names_in_" in state:
        model.feature_names_in_ = state["feature_names_in_"]
    return model


NEIGHBORS = Entry(
    "sklearn.neighbors:KNeighborsClassifier",
    state=(
        *FEATURES,
        Field("classes_", StoredLabels()),
        Field("X", StoredArray(("n", "d"), "fi")),
        Field("codes", StoredArray(("n",), "i", below="c")),
    ),
    parameters=(
        Field("n_neighbors", Integer(low=1)),
        Field("weights", Text(("uniform", "distance")), nullable=True),
        Field("algorithm", Text(("auto", "ball_tree", "kd_tree", "brute"))),
        Field("leaf_size", Integer(low=1, high=10**6)),
        Field("p", StoredNumber(low=0.1, high=100.0)),
        Field("metric", Text(("minkowski", "euclidean", "manhattan", "chebyshev"))),
        Field("metric_params", nothing),
    ),
    only=True,
    to_state=_neighbors_state,
    from_state=_fit_neighbors,
)


def _check_pipeline(model: BaseEstimator) -> None:
    """Every step takes what the step before gives."""
    names = [step[0] for step in model.steps]
    if len(set(names)) < len(names):
        raise ValueError("the names of the steps must differ")
    given: Any = None  # names of the features
    for name, step in model.steps:
        if not hasattr(step, "n_features_in_"):
            raise ValueError(f"step {name} is not fitted")
        taken = step.n_features_in_
        if given is not None and len(given) != taken:
            raise ValueError(f"step {name} takes {taken} features, but gets {len(given)}")
        if given is not None and list(getattr(step, "feature_names_in_", given)) != list(given):
            raise ValueError(f"step {name} expects features of other names")
        if hasattr(step, "transform"):
            given = step.get_feature_names_out()
        elif name != names[-1]:
            raise ValueError(f"step {name} does not transform, and is not the last")


def _steps(value: object, sizes: Sizes) -> None:
    """List of (name, estimator)."""
    ListOf("tuple")(value, sizes)
    for item in value if isinstance(value, list) else ():
        if len(item) != 2 or not isinstance(item[0], str) or not hasattr(item[1], "fit"):
            raise ValueError("must be pairs of a name and an estimator")


PIPELINE = Entry(
    "sklearn.pipeline:Pipeline",
    parameters=(Field("steps", _steps), Field("verbose", anything)),
    only=True,
    check=_check_pipeline,
)


def _check_statistics(code: Any) -> None:
    if code.statistics.shape[1] != len(code.labels):
        raise ValueError("statistics must have a column per label")


def _check_encoder(model: Any) -> None:
    if not hasattr(model, "columns_"):
        return
    if len(model.columns_) != model.n_features_in_:
        raise ValueError(f"columns_ must describe {model.n_features_in_} columns")
    if not len(model.feature_columns_):
        raise ValueError("columns_ must lead to at least one feature")


@dataclass(frozen=True)
class InstanceOf:
    """Object of one of these classes."""

    classes: tuple[str, ...]

    def __call__(self, value: object, sizes: Sizes) -> None:
        if type(value).__name__ not in self.classes:
            raise ValueError(f"must be a {' or '.join(self.classes)}")


CODES = "vicinal.features.column_codes"
STANDARDIZED = (
    Field("fill", StoredNumber()),
    Field("mean", StoredNumber()),
    Field("scale", StoredNumber(low=MIN_DIVISOR)),
)

COLUMN_CODES = {
    "NumberCode": Entry(
        f"{CODES}:NumberCode",
        parameters=(
            *STANDARDIZED,
            Field("decimal", Text((".", ","))),
            Field("unit", Text()),
            Field("is_text", flag),
        ),
    ),
    "OrderedCode": Entry(
        f"{CODES}:OrderedCode", parameters=(*STANDARDIZED, Field("levels", Texts(low=2)))
    ),
    "LevelCode": Entry(f"{CODES}:LevelCode", parameters=(Field("levels", Texts(low=2)),)),
    "TargetCode": Entry(
        "vicinal.features.target_statistics:TargetCode",
        parameters=(
            Field("levels", Names("l")),
            Field("statistics", StoredArray(("l+1", None))),
            Field("labels", Texts(low=1)),
        ),
        check=_check_statistics,
    ),
    "DateCode": Entry(
        f"{CODES}:DateCode",
        parameters=(
            *STANDARDIZED,
            Field("form", Text(("", ISO_DATE, *DATE_FORMATS))),
            Field("periods", Texts(choices=tuple(PERIODS))),
        ),
    ),
    "DroppedCode": Entry(f"{CODES}:DroppedCode", parameters=(Field("reason", Text()),)),
}

COLUMN_ENCODING = Entry(
    "vicinal.features.column_encoding:ColumnEncoding",
    parameters=(
        Field("name", Text()),
        Field("code", InstanceOf(tuple(COLUMN_CODES))),
        Field("n_rows", Integer()),
        Field("n_missing", Integer()),
        Field("has_indicator", flag),
        Field("weight", StoredNumber(low=MIN_DIVISOR)),
    ),
)

TABLE_ENCODER = Entry(
    "vicinal.features.table_encoder:TableEncoder",
    state=(*FEATURES, Field("columns_", ListOf("ColumnEncoding"))),
    check=_check_encoder,
)

TABLE_ESTIMATORS = ("ANNClassifier", "ANNRegressor", "Pipeline")
OLD_TABLE_ESTIMATORS = ("ANNClassifier", "ANNSearchCV", "ClassMeanKNN", "Pipeline")
"""Of files in which the columns are beside the estimator: it takes what they become."""
PLAN = ("name", "kind", "n_rows", "n_missing", "fill", "mean", "scale", "categories", "reason")
"""Of a column, in such files."""


def _table_estimator(value: object, sizes: Sizes) -> None:
    """An estimator that a table model can hold."""
    FittedEstimator((*OLD_TABLE_ESTIMATORS, "ANNRegressor"))(value, sizes)


def _check_table_model(model: Any) -> None:
    """The estimator begins with the columns, and ends with a vote."""
    estimator = model.estimator
    FittedEstimator(TABLE_ESTIMATORS)(estimator, {})
    if hasattr(estimator, "steps"):
        names = [type(step).__name__ for _, step in estimator.steps]
        is_learner = len(names) == 3 and names[1] in LEARNERS
        if names[:1] + names[1 + is_learner :] not in (
            ["TableEncoder", "ANNSearchCV"],
            ["TableEncoder", "ClassMeanKNN"],
        ):
            raise ValueError("must be a pipeline of an encoder, a learner and a ClassMeanKNN")


def _to_state(model: Any, names: tuple[str, ...]) -> Values:
    return model.to_state()


def _from_state(cls: Any, parameters: Values, state: Values) -> Any:
    state = dict(state)
    plans = state.pop("columns", None)
    if plans is not None:
        encoder = _encoder_of_plans(plans)
        state["estimator"] = _after_encoder(encoder, state["estimator"])
    return cls.from_state(state)


def _encoder_of_plans(plans: list[Values]) -> TableEncoder:
    """The encoder that does what the columns of an old file say."""
    encoder = TableEncoder()
    names = [plan.get("name") for plan in plans]
    Texts(low=1)(tuple(names), {})
    encoder.columns_ = [_encoding_of_plan(plan) for plan in plans]
    encoder.n_features_in_ = len(plans)
    encoder.feature_names_in_ = np.array(names, dtype=object)
    _check_encoder(encoder)
    return encoder


def _encoding_of_plan(plan: Values) -> ColumnEncoding:
    if set(plan) != set(PLAN) or not isinstance(plan["categories"], list):
        raise ValueError(f"a column has the entries {', '.join(PLAN)}")
    numbers = {name: plan[name] for name in ("fill", "mean", "scale")}
    read = {"decimal": ".", "unit": "", "is_text": False}
    name, values = {
        "number": ("NumberCode", {**numbers, **read}),
        "category": ("LevelCode", {"levels": tuple(plan["categories"])}),
        "dropped": ("DroppedCode", {"reason": plan["reason"]}),
    }.get(str(plan["kind"]), ("", {}))
    if not name:
        raise ValueError(f"the column kind {plan['kind']!r} is unknown")
    counts = {key: plan[key] for key in ("n_rows", "n_missing")}
    return _checked(
        COLUMN_ENCODING,
        {
            "name": plan["name"],
            "code": _checked(COLUMN_CODES[name], values),
            **counts,
            "has_indicator": False,
            "weight": 1.0,
        },
    )


def _checked(entry: Entry, values: Values) -> Any:
    check_fields(entry.parameters, values, {})
    return entry.load_class()(**values)


def _after_encoder(encoder: TableEncoder, estimator: Any) -> Any:
    """The estimator of an old file, as one of the columns themselves."""
    if hasattr(estimator, "oof_rows_"):
        whole = copy(estimator)
        whole.encoder_ = encoder
        for name, value in encoder.input_attributes.items():
            setattr(whole, name, value)
        return whole
    steps = estimator.steps if hasattr(estimator, "steps") else [("knn", estimator)]
    return Pipeline([("encoder", encoder), *steps])


TABLE_MODEL = Entry(
    "vicinal.tables.table_model:TableModel",
    state=(
        Field("columns", ListOf("dict"), optional=True),  # of old files
        Field("estimator", _table_estimator),
        Field("target", Text()),
        Field("ids", StoredLabels("n", distinct=False)),
        Field("rows", StoredArray(("n", "d")), nullable=True),
        Field("levels", StoredArray(("n", None), "i", low=0), optional=True, nullable=True),
        Field("id_column", Text(), nullable=True),
        Field("group_column", Text(), nullable=True),
        Field("provenance", anything),
    ),
    only=True,
    check=_check_table_model,
    to_state=_to_state,
    from_state=_from_state,
)

WRAPPERS = {
    **COLUMN_CODES,
    "ColumnEncoding": COLUMN_ENCODING,
    "TableEncoder": TABLE_ENCODER,
    "StandardScaler": SCALER,
    "PCA": PCA,
    "KNeighborsClassifier": NEIGHBORS,
    "Pipeline": PIPELINE,
    "TableModel": TABLE_MODEL,
}
