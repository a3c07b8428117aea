"""What is loaded is what was saved: every attribute, every bit of every prediction."""

from __future__ import annotations

import inspect
import warnings
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.automatic.classifier import ANNClassifier
from vicinal.model_file import load, save
from vicinal.model_file.documents import ENTRIES
from vicinal.model_file.entry import LEFT_OUT
from vicinal.model_file.estimator_entries import FOREST
from vicinal.search.search_cv import ANNSearchCV
from vicinal.voting.forest import Forest

X, CODES = load_iris(return_X_y=True)
X, CODES = X[::3], CODES[::3]
QUERIES = np.random.default_rng(0).normal(X.mean(axis=0), 2 * X.std(axis=0), (40, 4))
NAMES = np.array(["setosa", "versicolor", "virginica"])[CODES]

SEARCH = {"alphas": [1.0, 2.0], "n_neighbors": [1, 3], "cv": 2, "random_state": 0}
MODELS = {
    "ANN": vc.ANN(max_iter=10),
    "PNCA": vc.PNCA(n_components=2, max_iter=10),
    "NCA": vc.NCA(n_components=3, max_iter=10),
    "MLKR": vc.MLKR(max_iter=10),
    "LMNN": vc.LMNN(max_iter=10),
    "MCML": vc.MCML(max_iter=10),
    "LDML": vc.LDML(max_iter=10),
    "ITML": vc.ITML(max_iter=10, random_state=0),
    "GMML": vc.GMML(),
    "SCML": vc.SCML(max_iter=10, random_state=0),
    "BoostMetric": vc.BoostMetric(max_iter=5),
    "MMC": vc.MMC(max_iter=10, random_state=0),
    "LSML": vc.LSML(max_iter=10, random_state=0),
    "SDML": vc.SDML(),
    "RCA": vc.RCA(),
    "LFDA": vc.LFDA(),
    "Covariance": vc.Covariance(),
    "RVML": vc.RVML(),
    "RVML, kernel": vc.RVML(kernel="rbf"),
    "ClassMeanKNN": vc.ClassMeanKNN(3),
    "ClassMeanKNN, vote": vc.ClassMeanKNN(3, rule="vote"),
    "ANNClassifier": ANNClassifier(),
    "ANNClassifier, single": ANNClassifier(mode="single"),
    "ANNRegressor": vc.ANNRegressor(effort=0.02),
    "ANNRegressor, single": vc.ANNRegressor("single"),
    "NeighborRegressor": vc.NeighborRegressor(3, vote="soft"),
    "ANNSearchCV": ANNSearchCV(vc.PNCA(max_iter=5), standardize=True, **SEARCH),
    "ANNSearchCV, class means": ANNSearchCV(vc.ANN(max_iter=5), rule="class_mean", **SEARCH),
    "pipeline, K-NN": make_pipeline(
        StandardScaler(), vc.NCA(n_components=2, max_iter=10), KNeighborsClassifier(3)
    ),
    "pipeline, PCA": make_pipeline(
        StandardScaler(with_std=False), PCA(3, whiten=True), vc.GMML(), vc.ClassMeanKNN(3)
    ),
    "pipeline, distance weights": make_pipeline(
        PCA(2), KNeighborsClassifier(5, weights="distance", p=1, algorithm="kd_tree")
    ),
    "pipeline in a pipeline": make_pipeline(
        make_pipeline(StandardScaler(), PCA(2)), make_pipeline(vc.GMML(), vc.ClassMeanKNN(2))
    ),
    "StandardScaler": StandardScaler(with_mean=False),
    "TableEncoder": vc.TableEncoder(),
}


def fit(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        return model.fit(X, y)


def ignore(progress: object) -> None:
    """A callback."""


def pass_through(model: Any, path: Path) -> Any:
    save(model, path)
    return load(path)


def assert_same(a: Any, b: Any) -> None:
    """The same type and value, down to dtype, order of memory and bits."""
    assert type(a) is type(b) or isinstance(a, np.generic)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.flags.f_contiguous == b.flags.f_contiguous or not a.flags.forc
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            assert np.array_equal(np.signbit(a), np.signbit(b))
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, KNeighborsClassifier):  # fitted again: what it predicts is compared below
        assert_same(a.get_params(), b.get_params())
    elif isinstance(a, BaseEstimator):
        assert_same(*({k: v for k, v in sorted(vars(m).items()) if public(k)} for m in (a, b)))
    elif isinstance(a, float) and np.isnan(a):
        assert np.isnan(b)
    else:
        assert a == b


def is_regressor(model: Any) -> bool:
    return isinstance(model, RegressorMixin)


def public(name: str) -> bool:
    return not name.startswith("_")


def assert_same_outcome(a: Any, b: Any, X: np.ndarray) -> None:
    methods = ("transform", "predict", "predict_proba", "decision_function", "kneighbors")
    there = [name for name in methods if hasattr(a, name)]
    assert there
    for name in there:
        assert_same(getattr(a, name)(X), getattr(b, name)(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_comes_back_bit_for_bit(name, dtype, tmp_path):
    labels = CODES if is_regressor(MODELS[name]) or name == "MLKR" else NAMES
    model = fit(MODELS[name], X.astype(dtype), labels)
    loaded = pass_through(model, tmp_path / "model.vicinal")
    assert_same(model, loaded)
    for queries in (QUERIES, QUERIES.astype(np.float32)):
        assert_same_outcome(model, loaded, queries)


def test_every_public_estimator_is_among_the_models():
    public = [getattr(vc, name) for name in vc.__all__]
    estimators = {c.__name__ for c in public if inspect.isclass(c) and issubclass(c, BaseEstimator)}
    assert estimators <= {type(model).__name__ for model in MODELS.values()} & set(ENTRIES)


@pytest.mark.parametrize(
    "labels",
    [
        CODES.astype(np.int64) - 1,
        CODES.astype(np.uint8),
        CODES == 1,
        CODES - 1.0,
        CODES.astype(np.float32),
        np.array(["a", "Ω", '日本\n\0"\\'])[CODES],
        np.array(["x", "", "long" * 20], dtype="U200")[CODES],
        np.array(["α", "b", "c"], dtype=object)[CODES],
    ],
    ids=lambda labels: str(labels.dtype),
)
@pytest.mark.parametrize("model", [vc.ClassMeanKNN(), vc.GMML(), KNeighborsClassifier()])
def test_labels_of_every_type_come_back(model, labels, tmp_path):
    fit(model, X, labels)
    loaded = pass_through(model, tmp_path / "model.vicinal")
    assert_same(model.classes_, loaded.classes_)
    assert_same_outcome(model, loaded, QUERIES)


def test_many_string_labels_leave_the_header(tmp_path):
    labels = np.array([f"class {i // 2}\U0001f600" for i in range(6000)])
    knn = vc.ClassMeanKNN(1).fit(np.arange(6000.0)[:, None], labels)
    path = tmp_path / "model.vicinal"
    loaded = pass_through(knn, path)
    assert_same(knn, loaded)
    assert int.from_bytes(path.read_bytes()[:8], "little") < 3000


def test_parameters_come_back(tmp_path):
    L = np.asfortranarray(np.random.default_rng(0).normal(size=(2, 4)))
    model = vc.ANN(
        alpha=-np.inf,
        gamma=np.float32(2.5),
        init=L,
        n_components=2,
        max_iter=np.int64(1),
        class_weight={0: 1.0, 1: 2, 2: 0.5},
        random_state=7,
    )
    fit(model, X, CODES)
    before = model.get_params()
    after = pass_through(model, tmp_path / "model.vicinal").get_params()
    assert_same(before.pop("init"), after.pop("init"))
    assert after == before
    assert (type(after["max_iter"]), type(after["gamma"])) == (int, float)


def test_what_belongs_to_a_run_is_not_stored(tmp_path):
    model = make_pipeline(
        vc.NCA(max_iter=3, callback=ignore),
        KNeighborsClassifier(n_jobs=2),
        memory=str(tmp_path / "cache"),
    )
    loaded = pass_through(fit(model, X, CODES), tmp_path / "model.vicinal")
    parameters = loaded.get_params()
    names = [name for name in parameters if name.rpartition("__")[2] in LEFT_OUT]
    assert len(names) == 3
    assert all(parameters[name] is None for name in names)


def test_feature_names_come_back_in_every_step(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["width", "höhe", "x<script>", "d"])
    model = make_pipeline(StandardScaler(), vc.GMML(), vc.ClassMeanKNN()).fit(frame, NAMES)
    loaded = pass_through(model, tmp_path / "model.vicinal")
    assert_same(model.feature_names_in_, loaded.feature_names_in_)
    assert_same(model[:2].get_feature_names_out(), loaded[:2].get_feature_names_out())
    assert_same(model.predict_proba(frame), loaded.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"d": "e"}))


def test_frames_go_through_a_pipeline(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), PCA(2), vc.GMML()).set_output(transform="pandas")
    model.fit(frame, NAMES)
    loaded = pass_through(model, tmp_path / "model.vicinal")
    pd.testing.assert_frame_equal(loaded.transform(frame), model.transform(frame))


def test_metrics_learned_from_pairs_have_no_classes(tmp_path):
    rows = np.random.default_rng(0).integers(len(X), size=(40, 2))
    similar, pairs = CODES[rows[:, 0]] == CODES[rows[:, 1]], X[rows]
    model = vc.ITML(max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_pairs(X, rows, similar)
    model.calibrate_threshold(pairs, similar)
    loaded = pass_through(model, tmp_path / "model.vicinal")
    assert not hasattr(loaded, "classes_")
    assert_same(model, loaded)
    assert_same(model.predict_pairs(pairs), loaded.predict_pairs(pairs))


def test_the_order_of_the_memory_is_kept(tmp_path):
    """A matrix product of transposed memory rounds differently."""
    model = fit(vc.GMML(), X, CODES)
    model.components_ = np.asfortranarray(model.components_)
    loaded = pass_through(model, tmp_path / "model.vicinal")
    assert loaded.components_.flags.f_contiguous
    assert_same(model, loaded)


def test_a_loaded_model_can_be_saved_fitted_and_cloned_again(tmp_path):
    model = fit(vc.NCA(max_iter=5), X, CODES)
    loaded = pass_through(model, tmp_path / "a.vicinal")
    save(loaded, tmp_path / "b.vicinal")
    assert (tmp_path / "a.vicinal").read_bytes() == (tmp_path / "b.vicinal").read_bytes()
    assert_same(fit(loaded, X, CODES).components_, model.components_)


def test_other_software_reads_the_arrays(tmp_path):
    model = fit(vc.NCA(max_iter=5), X, CODES)
    save(model, tmp_path / "model.vicinal")
    arrays = load_file(tmp_path / "model.vicinal")
    assert_same(arrays["components_"], model.components_)


@pytest.mark.parametrize("method", ["plain", "gmml", "auto"])
def test_table_models_come_back(method, tmp_path):
    pd = pytest.importorskip("pandas")
    from vicinal.tables.selection import FitSettings
    from vicinal.tables.table_model import TableModel

    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        kind=np.where(X[:, 0] > 5.5, "long", "short"),
        name=[f"row {i}" for i in range(len(X))],
        y=NAMES,
    )
    frame.loc[3, "a"] = np.nan
    model = TableModel.fit(frame, "y", id_column="name", settings=FitSettings(method=method))
    loaded = pass_through(model, tmp_path / "model.vicinal")
    assert [str(c) for c in loaded.columns] == [str(c) for c in model.columns]
    assert loaded.provenance == model.provenance
    assert_same(loaded.ids, model.ids)
    assert_same(loaded.predict_proba(frame), model.predict_proba(frame))
    rows = model.prepare(frame)
    assert_same(list(loaded.nearest(rows, 3)), list(model.nearest(rows, 3)))


def test_a_committee_that_sees_kernel_functions(tmp_path):
    X = np.random.default_rng(1).normal(size=(200, 2))
    model = ANNClassifier(members=("kernel",)).fit(X, np.linalg.norm(X, axis=1) > 1.2)
    restored = pass_through(model, tmp_path / "model.vicinal")
    assert_same(restored.landmarks_, model.landmarks_)
    assert_same(restored.predict_proba(X), model.predict_proba(X))
    assert str(restored.explain(X[:1])[0]) == str(model.explain(X[:1])[0])
    landmarks, scales = model.landmarks_, model.kernel_scales_
    for changes, message in (
        ({"landmarks_": None}, "belong together"),
        ({"landmarks_": landmarks[1:].copy()}, "metrics_ must have 151 columns"),
        ({"landmarks_": np.repeat(landmarks, 2, axis=0)}, "up to 150 rows"),
        ({"landmarks_": landmarks[:, :1].copy()}, "landmarks_"),
        ({"kernel_scales_": -scales}, "kernel_scales_"),
        ({"kernel_scales_": scales * np.inf}, "kernel_scales_"),
        ({"mode": "single"}, "belong to a committee"),
    ):
        broken = copy(model)
        vars(broken).update(changes)
        with pytest.raises(ValueError, match=message):
            save(broken, tmp_path / "broken.vicinal")


def test_forests_of_features_that_an_encoder_has_made(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(list("abcdef"), 150), "x": rng.normal(size=150)})
    model = ANNClassifier(members=("forest",)).fit(frame, frame["kind"].isin(["a", "f"]))
    assert max(forest.features.max() for forest in model.forests_) >= 2
    restored = pass_through(model, tmp_path / "model.vicinal")
    assert_same(restored.predict_proba(frame), model.predict_proba(frame))


def test_a_committee_that_unfolds_features(tmp_path):
    X = np.random.default_rng(1).integers(0, 6, size=(300, 3)).astype(float)
    model = ANNClassifier(members=("linear", "hat")).fit(X, (X % 2).sum(axis=1) > 1.5)
    restored = pass_through(model, tmp_path / "model.vicinal")
    assert_same(restored.knots_, model.knots_)
    assert_same(restored.predict_proba(X), model.predict_proba(X))
    knots, metrics = model.knots_, model.metrics_
    for attribute, value, message in (
        ("knots_", knots[:, ::-1].copy(), "ascending"),
        ("knots_", None, "metrics_ must have 3 columns"),
        ("knots_", np.repeat(knots, 2, axis=1), "up to 30 rows and 8 columns"),
        ("metrics_", metrics[:, :, 1:].copy(), f"must have {metrics.shape[2]} columns"),
        ("mode", "single", "belong to a committee"),
    ):
        broken = copy(model)
        setattr(broken, attribute, value)
        with pytest.raises(ValueError, match=message):
            save(broken, tmp_path / "broken.vicinal")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"roots": [3, 0]}, "ascending"),
        ({"roots": [0, 0]}, "ascending"),
        ({"roots": [0, 6]}, "ascending"),
        ({"roots": [1, 3]}, "ascending"),
        ({"children": [[1, 4], [-1, -1], [-1, -1], [4, 5], [-1, -1], [-1, -1]]}, "in its tree"),
        ({"children": [[0, 2], [-1, -1], [-1, -1], [4, 5], [-1, -1], [-1, -1]]}, "in its tree"),
    ],
)
def test_trees_that_run_into_each_other_are_refused(changed, said):
    forest = Forest(
        roots=np.array([0, 3]),
        features=np.array([0, -1, -1, 1, -1, -1]),
        thresholds=np.zeros(6),
        children=np.array([[1, 2], [-1, -1], [-1, -1], [4, 5], [-1, -1], [-1, -1]]),
    )
    FOREST.check(forest)
    with pytest.raises(ValueError, match=said):
        FOREST.check(replace(forest, **{k: np.array(v) for k, v in changed.items()}))
