"""Methods of the contests: vicinal's, and its rivals as a careful user would run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TUNING_ROWS = 1500
"""Rows of the training part that settings are tuned on, by 5-fold cross-validation."""
COVERAGE = 0.9
"""Of the intervals that are compared."""


@dataclass(frozen=True)
class Method:
    """A model of frames; `fit(X, y, seed)` returns what predicts."""

    fit: Callable[[Any, np.ndarray, int], Any]
    numbers: bool
    about: str


def text_columns(X: Any) -> list[str]:
    return list(X.select_dtypes(object).columns)


def as_numbers(X: Any) -> Any:
    """Transformer: gaps to medians with indicators, categories one-hot, everything standardized."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    text = text_columns(X)
    rest = [column for column in X.columns if column not in set(text)]
    one_hot = OneHotEncoder(handle_unknown="ignore", max_categories=30, sparse_output=False)
    columns = make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), rest),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), one_hot), text),
    )
    return make_pipeline(columns, StandardScaler())


def with_categories(X: Any, *, for_catboost: bool) -> Any:
    """The frame with its text columns as CatBoost or LightGBM want them."""
    X = X.copy()
    for column in text_columns(X):
        filled = X[column].map(lambda value: "?" if value is None else str(value))
        X[column] = filled if for_catboost else filled.astype("category")
    return X


class WithCategories:
    """A boosting model that is shown the frame, categories as categories."""

    def __init__(self, model: Any, X: Any, y: np.ndarray, *, for_catboost: bool) -> None:
        self._for_catboost = for_catboost
        text = text_columns(X)
        frame = with_categories(X, for_catboost=for_catboost)
        self._categories = {} if for_catboost else {c: frame[c].cat.categories for c in text}
        self._model = model.fit(frame, y, **({"cat_features": text} if for_catboost else {}))
        if hasattr(self._model, "classes_"):
            self.classes_ = self._model.classes_

    def _frame(self, X: Any) -> Any:
        frame = with_categories(X, for_catboost=self._for_catboost)
        for column, categories in self._categories.items():
            frame[column] = frame[column].cat.set_categories(categories)
        return frame

    def predict(self, X: Any) -> Any:
        return np.ravel(self._model.predict(self._frame(X)))

    def predict_proba(self, X: Any) -> Any:
        return self._model.predict_proba(self._frame(X))


def _tuned(
    model: Any, grid: dict[str, list[Any]], X: Any, y: np.ndarray, seed: int, *, numbers: bool
) -> Any:
    """The best setting of a grid, fitted to all rows."""
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline

    rows = np.random.RandomState(seed).permutation(len(y))[:TUNING_ROWS]
    folds = (KFold if numbers else StratifiedKFold)(5, shuffle=True, random_state=seed)
    encoder = as_numbers(X).fit(X, y)
    Z = encoder.transform(X)
    scoring = "neg_root_mean_squared_error" if numbers else "accuracy"
    search = GridSearchCV(model, grid, cv=folds, scoring=scoring, refit=False, n_jobs=1)
    search.fit(Z[rows], y[rows])
    return make_pipeline(as_numbers(X), clone(model).set_params(**search.best_params_)).fit(X, y)


NEIGHBORS = [1, 3, 5, 7, 9, 13, 19, 27, 37]


def _knn(X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    grid = {"n_neighbors": NEIGHBORS, "weights": ["uniform", "distance"]}
    return _tuned(KNeighborsClassifier(), grid, X, y, seed, numbers=False)


def _knn_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    grid = {"n_neighbors": NEIGHBORS, "weights": ["uniform", "distance"]}
    return _tuned(KNeighborsRegressor(), grid, X, y, seed, numbers=True)


def _svm(X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    d = as_numbers(X).fit_transform(X, y).shape[1]
    grid = {"C": [0.3, 1, 3, 10, 30, 100], "gamma": [g / d for g in (0.1, 0.3, 1, 3, 10)]}
    best = _tuned(SVC(), grid, X, y, seed, numbers=False)
    calibrated = CalibratedClassifierCV(best[-1], ensemble=False, cv=min(5, np.bincount(y).min()))
    return _Twice(best, make_pipeline(as_numbers(X), calibrated).fit(X, y))


class _Twice:
    """Classes of one model, probabilities of another: an SVM's own, and calibrated ones."""

    def __init__(self, decides: Any, estimates: Any) -> None:
        self.predict, self.predict_proba = decides.predict, estimates.predict_proba
        self.classes_ = estimates.classes_


def _svr(X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    d = as_numbers(X).fit_transform(X, y).shape[1]
    grid = {
        "regressor__C": [0.3, 1, 3, 10, 30, 100],
        "regressor__gamma": [g / d for g in (0.1, 0.3, 1, 3)],
    }
    model = TransformedTargetRegressor(SVR(epsilon=0.05), transformer=StandardScaler())
    return _tuned(model, grid, X, y, seed, numbers=True)


def _ridge(X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline

    return make_pipeline(as_numbers(X), RidgeCV(np.logspace(-2, 4, 13))).fit(X, y)


def _forest(X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    return make_pipeline(as_numbers(X), RandomForestClassifier(500, random_state=seed)).fit(X, y)


def _forest_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline

    forest = RandomForestRegressor(500, max_features=1 / 3, random_state=seed)
    return make_pipeline(as_numbers(X), forest).fit(X, y)


def _catboost(X: Any, y: np.ndarray, seed: int) -> Any:
    from catboost import CatBoostClassifier

    options = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    model = CatBoostClassifier(random_seed=seed, **options)
    return WithCategories(model, X, y, for_catboost=True)


def _catboost_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    from catboost import CatBoostRegressor

    options = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    model = CatBoostRegressor(random_seed=seed, **options)
    return WithCategories(model, X, y, for_catboost=True)


def _lightgbm(X: Any, y: np.ndarray, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)
    return WithCategories(model, X, y, for_catboost=False)


def _lightgbm_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    """LightGBM, with two more models for the interval."""
    from lightgbm import LGBMRegressor

    def fitted(**options: Any) -> Any:
        model = LGBMRegressor(random_state=seed, n_jobs=1, verbose=-1, **options)
        return WithCategories(model, X, y, for_catboost=False)

    tails = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
    bounds = [fitted(objective="quantile", alpha=alpha) for alpha in tails]
    return _Between(fitted(), bounds)


class _Between:
    """A regressor, and models of the ends of its interval."""

    def __init__(self, center: Any, bounds: Sequence[Any]) -> None:
        self.predict, self._bounds = center.predict, bounds

    def predict_interval(self, X: Any, coverage: float) -> np.ndarray:
        return np.column_stack([bound.predict(X) for bound in self._bounds])


def _nca(X: Any, y: np.ndarray, seed: int) -> Any:
    import vicinal as vc

    return _metric(vc.NCA(init="identity", max_iter=50), {}, X, y, seed)


def _lmnn(X: Any, y: np.ndarray, seed: int) -> Any:
    import vicinal as vc

    return _metric(vc.LMNN(max_iter=50), {"push_weight": [0.3, 0.7]}, X, y, seed)


def _metric(learner: Any, grid: dict[str, list[Any]], X: Any, y: np.ndarray, seed: int) -> Any:
    """A metric learner, on at most 150 principal components, and K-NN in its space."""
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import Pipeline

    many = as_numbers(X).fit_transform(X, y).shape[1] > 150
    steps = [("reduce", PCA(150) if many else "passthrough"), ("learn", learner)]
    settings = {f"learn__{name}": values for name, values in grid.items()}
    settings["vote__n_neighbors"] = [1, 3, 9, 27]
    return _tuned(
        Pipeline([*steps, ("vote", KNeighborsClassifier())]), settings, X, y, seed, numbers=False
    )


def _ebm(X: Any, y: np.ndarray, seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier
    from sklearn.pipeline import make_pipeline

    return make_pipeline(
        as_numbers(X), ExplainableBoostingClassifier(random_state=seed, n_jobs=1)
    ).fit(X, y)


def _realmlp(X: Any, y: np.ndarray, seed: int) -> Any:
    from pytabkit import RealMLP_TD_S_Classifier
    from sklearn.pipeline import make_pipeline

    model = RealMLP_TD_S_Classifier(random_state=seed, device="cpu", n_threads=1)
    return make_pipeline(as_numbers(X), model).fit(X, y)


def _realmlp_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    from pytabkit import RealMLP_TD_S_Regressor
    from sklearn.pipeline import make_pipeline

    model = RealMLP_TD_S_Regressor(random_state=seed, device="cpu", n_threads=1)
    return make_pipeline(as_numbers(X), model).fit(X, y)


def _xrfm(X: Any, y: np.ndarray, seed: int) -> Any:
    from pytabkit import XRFM_D_Classifier
    from sklearn.pipeline import make_pipeline

    model = XRFM_D_Classifier(random_state=seed, device="cpu", n_threads=1)
    return make_pipeline(as_numbers(X), model).fit(X, y)


def _xrfm_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    from pytabkit import XRFM_D_Regressor
    from sklearn.pipeline import make_pipeline

    model = XRFM_D_Regressor(random_state=seed, device="cpu", n_threads=1)
    return make_pipeline(as_numbers(X), model).fit(X, y)


def _automatic(X: Any, y: np.ndarray, seed: int) -> Any:
    import vicinal as vc

    return vc.ANNClassifier(n_jobs=1).fit(X, y)


def _before(X: Any, y: np.ndarray, seed: int) -> Any:
    """An ANNClassifier that knows no tables (0.1); PYTHONPATH says which source is imported."""
    from sklearn.pipeline import make_pipeline

    import vicinal as vc

    return make_pipeline(as_numbers(X), vc.ANNClassifier(n_jobs=1)).fit(X, y)


def _single(X: Any, y: np.ndarray, seed: int) -> Any:
    import vicinal as vc

    return vc.ANNClassifier("single", n_jobs=1).fit(X, y)


def _deep(X: Any, y: np.ndarray, seed: int) -> Any:
    from vicinal.deep import DeepANN

    return DeepANN(random_state=seed, device="cpu").fit(X, y)


def _deep_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    from vicinal.deep import DeepANNRegressor

    return DeepANNRegressor(random_state=seed, device="cpu").fit(X, y)


def _automatic_regressor(X: Any, y: np.ndarray, seed: int) -> Any:
    import vicinal as vc

    return vc.ANNRegressor(n_jobs=1).fit(X, y)


ONE_HOT = "gaps to medians with indicators, one-hot, standardized"
METHODS = {
    "ANNClassifier": Method(_automatic, False, "no setting, raw frame"),
    "single": Method(_single, False, 'mode="single", raw frame'),
    "ANNClassifier 0.1": Method(_before, False, f"version 0.1, {ONE_HOT}"),
    "K-NN": Method(_knn, False, f"K and weights tuned, {ONE_HOT}"),
    "NCA": Method(_nca, False, f"50 iterations, then K-NN, K tuned, {ONE_HOT}"),
    "LMNN": Method(_lmnn, False, f"push weight tuned, then K-NN, K tuned, {ONE_HOT}"),
    "RBF-SVM": Method(_svm, False, f"30 settings of C and gamma tuned, {ONE_HOT}"),
    "forest": Method(_forest, False, f"500 trees, {ONE_HOT}"),
    "CatBoost": Method(_catboost, False, "defaults, native categories"),
    "LightGBM": Method(_lightgbm, False, "defaults, native categories"),
    "EBM": Method(_ebm, False, f"defaults, {ONE_HOT}"),
    "RealMLP": Method(_realmlp, False, f"RealMLP-TD-S of pytabkit, {ONE_HOT}"),
    "xRFM": Method(_xrfm, False, f"defaults of pytabkit, {ONE_HOT}"),
    "DeepANN": Method(_deep, False, "no setting, raw frame"),
    "DeepANNRegressor": Method(_deep_regressor, True, "no setting, raw frame"),
    "ANNRegressor": Method(_automatic_regressor, True, "no setting, raw frame"),
    "K-NN regression": Method(_knn_regressor, True, f"K and weights tuned, {ONE_HOT}"),
    "ridge": Method(_ridge, True, f"penalty tuned, {ONE_HOT}"),
    "SVR": Method(_svr, True, f"24 settings of C and gamma tuned, {ONE_HOT}"),
    "forest regression": Method(_forest_regressor, True, f"500 trees, {ONE_HOT}"),
    "CatBoost regression": Method(_catboost_regressor, True, "defaults, native categories"),
    "LightGBM regression": Method(
        _lightgbm_regressor, True, "defaults, native categories; interval by quantile loss"
    ),
    "RealMLP regression": Method(_realmlp_regressor, True, f"RealMLP-TD-S, {ONE_HOT}"),
    "xRFM regression": Method(_xrfm_regressor, True, f"defaults of pytabkit, {ONE_HOT}"),
}
