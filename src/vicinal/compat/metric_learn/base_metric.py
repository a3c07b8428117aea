"""Base classes of metric-learn's estimators: input, learned metric, and three classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from vicinal._typing import FloatArray, LabelArray
from vicinal.compat.metric_learn.tuple_input import (
    Preprocessor,
    TupleInput,
    check_pair_labels,
    make_preprocessor,
)
from vicinal.exceptions import warn_user
from vicinal.learners.base import MetricLearner, Strategy, best_threshold
from vicinal.learners.fit_input import store_fit

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The same ``fit``, which leaves the estimator as it was where it raises an error."""

    @wraps(fit)
    def checked(self: object, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **options)
        except BaseException:
            self.__dict__ = before
            raise

    return checked


class BaseMetricLearner(BaseEstimator):
    """Base of all estimators: how they read samples and tuples.

    Parameters
    ----------
    preprocessor : array-like of shape (n_samples, n_features) or callable, default=None
        Where samples are given as indicators: the array that has them as rows, or a function
        that returns (n, n_features) samples for n indicators.
    """

    _tuple_size: ClassVar[int | None] = None
    _needs_labels: ClassVar[bool] = False

    preprocessor: ArrayLike | Preprocessor | None
    preprocessor_: Preprocessor | None
    n_features_in_: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = all_or_nothing(vars(cls)["fit"])

    def __init__(self, preprocessor: ArrayLike | Preprocessor | None = None) -> None:
        self.preprocessor = preprocessor

    def _check_preprocessor(self) -> None:
        self.preprocessor_ = make_preprocessor(self.preprocessor)

    @property
    def _input(self) -> TupleInput:
        return TupleInput(self.preprocessor_, type(self).__name__)

    def _prepare_inputs(
        self, X: object, y: object = None, type_of_inputs: str = "classic", **checks: Any
    ) -> Any:
        """Samples ("classic") or tuples ("tuples") for ``fit``, and their labels if given."""
        if type_of_inputs not in ("classic", "tuples"):
            raise ValueError(
                f"Unknown value {type_of_inputs} for type_of_inputs. Valid values are 'classic' or "
                "'tuples'."
            )
        self._check_preprocessor()
        numeric = checks.pop("y_numeric", False)
        if type_of_inputs == "tuples":
            samples = self._input.tuples(X, self._tuple_size, **checks)
        else:
            samples = self._input.samples(X, **checks)
            given = X if hasattr(X, "columns") else samples
            # Only for what scikit-learn keeps of the input of fit: its width, its columns' names.
            validate_data(self, given, skip_check_array=True)
        self.n_features_in_ = int(samples.shape[-1])
        if y is None and not self._needs_labels:
            return samples
        return samples, self._labels(samples, y, numeric=numeric)

    def _labels(self, samples: LabelArray, y: object, *, numeric: bool = False) -> LabelArray:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        labels = _check_y(y, y_numeric=numeric, estimator=self)
        check_consistent_length(samples, labels)
        if samples.ndim == 3 and samples.shape[1] == 2:
            check_pair_labels(labels)
        return np.asarray(labels)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_labels
        return tags


class MahalanobisMixin(BaseMetricLearner):
    """A metric learner whose distance is that of samples embedded by ``components_``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L; the distance of u and v is ‖L(u − v)‖.
    """

    components_: FloatArray

    def _learn(
        self, learner: MetricLearner, learn: Callable[[], object], **attributes: object
    ) -> None:
        """Let one of vicinal's learners learn, and take over what it has found.

        Parameters
        ----------
        learner : what ``learn`` fits
        learn : to be called without arguments
        **attributes : what this estimator has beyond that
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learn()
        found = {"components_": learner.components_, **attributes}
        if hasattr(learner, "n_iter_"):
            found.setdefault("n_iter_", learner.n_iter_)
        self._store(found)
        name = type(self).__name__
        for each in caught:
            text = str(each.message)
            if issubclass(each.category, ConvergenceWarning):
                text = f"[{name}] {name} did not converge: {text}"
            warn_user(text, each.category)

    def _store(self, attributes: Mapping[str, object]) -> None:
        """Set what was learned, all at once."""
        kept = {name: getattr(self, name) for name in ("feature_names_in_",) if hasattr(self, name)}
        store_fit(self, {**kept, **attributes})

    def transform(self, X: object) -> FloatArray:
        """Embed samples: X Lᵀ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or indicators (n_samples,)

        Returns
        -------
        embedded : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, ["preprocessor_", "components_"])
        samples = self._input.samples(X, accept_sparse=True)
        if hasattr(self, "n_features_in_"):
            given = X if hasattr(X, "columns") else samples
            validate_data(self, given, reset=False, skip_check_array=True)
        return np.asarray(samples @ self.components_.T)

    def pair_distance(self, pairs: object) -> FloatArray:
        """The distance within each pair (n_pairs,).

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or indicators (n_pairs, 2)
        """
        check_is_fitted(self, "preprocessor_")
        given = self._input.tuples(pairs, 2)
        check_is_fitted(self, "components_")
        embedded = (given[:, 1] - given[:, 0]) @ self.components_.T
        return np.asarray(np.sqrt(np.sum(embedded**2, axis=-1)))

    def pair_score(self, pairs: object) -> FloatArray:
        """The negative distance within each pair (n_pairs,)."""
        return -1 * self.pair_distance(pairs)

    def score_pairs(self, pairs: object) -> FloatArray:
        """The distance within each pair; deprecated, it is ``pair_distance``."""
        check_is_fitted(self, "preprocessor_")
        warn_user(
            "score_pairs will be deprecated in release 0.7.0. Use pair_score to compute similarity "
            "scores, or pair_distances to compute distances.",
            FutureWarning,
        )
        return self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """The distance as a function of two vectors, ``metric(u, v, squared=False)``.

        A later fit does not change it.
        """
        check_is_fitted(self, "components_")
        L = self.components_.copy()

        def metric(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            difference = _vector(u) - _vector(v)
            embedded = difference.dot(L.T)
            distance = np.dot(embedded, embedded.T)
            return float(distance if squared else np.sqrt(distance))

        return metric

    def get_mahalanobis_matrix(self) -> FloatArray:
        """M = LᵀL, the matrix of the squared distance."""
        check_is_fitted(self, "components_")
        return np.asarray(self.components_.T @ self.components_)


def _vector(given: ArrayLike) -> FloatArray:
    vector: FloatArray = np.atleast_1d(np.asarray(given).squeeze())
    if vector.ndim > 1:
        raise ValueError("Input vector should be 1-D.")
    return vector


class _PairsClassifierMixin(ClassifierMixin, BaseMetricLearner):
    """Calls pairs similar (+1) up to the distance ``threshold_``, else dissimilar (−1)."""

    classes_ = np.array([0, 1])
    _tuple_size = 2
    _needs_labels = True

    threshold_: float

    def _fit_pairs(
        self,
        pairs: object,
        y: object,
        calibration_params: Mapping[str, Any] | None,
        learn: Callable[[FloatArray, LabelArray], None],
    ) -> Self:
        """Learn from pairs and their labels, and choose the threshold on the same pairs."""
        calibration = dict(calibration_params or {})
        self._validate_calibration_params(**calibration)
        tuples, labels = self._prepare_inputs(pairs, y, "tuples")
        learn(tuples, labels)
        return self.calibrate_threshold(tuples, labels, **calibration)

    def predict(self, pairs: object) -> NDArray[np.intp]:
        """+1 or −1 for each pair (n_pairs,)."""
        check_is_fitted(self, "preprocessor_")
        if not hasattr(self, "threshold_"):
            raise AttributeError(
                "A threshold for this estimator has not been set, call its set_threshold or "
                "calibrate_threshold method."
            )
        return 2 * (-self.decision_function(pairs) <= self.threshold_) - 1

    def decision_function(self, pairs: object) -> FloatArray:
        """The negative distance within each pair (n_pairs,)."""
        check_is_fitted(self, "preprocessor_")
        return self.pair_score(self._input.tuples(pairs, self._tuple_size))

    def score(self, pairs: object, y: ArrayLike) -> float:
        """The area under the ROC curve of pairs by falling distance, given their labels ±1."""
        return float(roc_auc_score(y, self.decision_function(pairs)))

    def set_threshold(self, threshold: float) -> Self:
        """Call pairs similar up to this distance."""
        check_is_fitted(self, "preprocessor_")
        try:
            self.threshold_ = float(threshold)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Parameter threshold must be a real number. Got {type(threshold)} instead."
            ) from error
        return self

    def calibrate_threshold(
        self,
        pairs_valid: object,
        y_valid: object,
        strategy: Strategy = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose the threshold on validation pairs.

        Parameters
        ----------
        pairs_valid : array-like of shape (n_pairs, 2, n_features), or indicators (n_pairs, 2)
        y_valid : array-like of shape (n_pairs,)
            Labels +1 and −1.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}, default="accuracy"
            What is maximized: "max_tpr" is the true positive rate where the true negative rate is
            at least ``min_rate``, "max_tnr" the reverse.
        min_rate : float in [0, 1], default=None
        beta : float, default=1.0
            Of the F-beta score.

        Returns
        -------
        self
        """
        check_is_fitted(self, "preprocessor_")
        self._validate_calibration_params(strategy, min_rate, beta)
        pairs = self._input.tuples(pairs_valid, self._tuple_size)
        similar = self._labels(pairs, y_valid) > 0
        distances = -self.decision_function(pairs)
        self.threshold_ = _lowest_accepted(distances, similar, strategy, min_rate, beta)
        return self

    @staticmethod
    def _validate_calibration_params(
        strategy: str = "accuracy", min_rate: float | None = None, beta: float = 1.0
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(
                'Strategy can either be "accuracy", "f_beta" or "max_tpr" or "max_tnr". Got '
                f'"{strategy}" instead.'
            )
        possible = isinstance(min_rate, Real) and 0 <= min_rate <= 1
        if strategy in ("max_tpr", "max_tnr") and not possible:
            raise ValueError(
                f"Parameter min_rate must be a number in[0, 1]. Got {min_rate} instead."
            )
        if strategy == "f_beta" and not isinstance(beta, Real):
            raise ValueError(f"Parameter beta must be a real number. Got {type(beta)} instead.")


def _lowest_accepted(
    distances: FloatArray,
    similar: NDArray[np.bool_],
    strategy: Strategy,
    min_rate: float | None,
    beta: float,
) -> float:
    """The best threshold, lowered to the largest distance that it accepts.

    Where it accepts none it is the smallest distance less 1. Of pairs of one kind only, all are
    accepted, or none.
    """
    if similar.all() or not similar.any():
        threshold = np.inf if similar.all() else -np.inf
    else:
        threshold = best_threshold(distances, similar, strategy, beta, min_rate)
    accepted = distances[distances <= threshold]
    return float(accepted.max() if len(accepted) else distances.min() - 1.0)


class _TripletsClassifierMixin(ClassifierMixin, BaseMetricLearner):
    """Says whether the first sample is nearer to the second (+1) or to the third (−1)."""

    classes_ = np.array([0, 1])
    _tuple_size = 3

    def decision_function(self, triplets: object) -> FloatArray:
        """How much farther the third sample is than the second (n_triplets,)."""
        check_is_fitted(self, "preprocessor_")
        given = self._input.tuples(triplets, self._tuple_size)
        return np.asarray(self.pair_score(given[:, :2]) - self.pair_score(given[:, [0, 2]]))

    def predict(self, triplets: object) -> NDArray[np.intp]:
        """+1 or −1 for each triplet (n_triplets,)."""
        return 2 * (self.decision_function(triplets) > 0) - 1

    def score(self, triplets: object) -> float:
        """The share of triplets that hold."""
        return float(self.predict(triplets).mean() / 2 + 0.5)


class _QuadrupletsClassifierMixin(ClassifierMixin, BaseMetricLearner):
    """Says whether the first two samples are nearer than the last two (+1) or not (−1)."""

    classes_ = np.array([0, 1])
    _tuple_size = 4

    def decision_function(self, quadruplets: object) -> FloatArray:
        """How much farther the last two samples are than the first two (n_quadruplets,)."""
        check_is_fitted(self, "preprocessor_")
        given = self._input.tuples(quadruplets, self._tuple_size)
        return np.asarray(self.pair_score(given[:, :2]) - self.pair_score(given[:, 2:]))

    def predict(self, quadruplets: object) -> FloatArray:
        """+1, −1 or, for equal distances, 0 for each quadruplet (n_quadruplets,)."""
        return np.asarray(np.sign(self.decision_function(quadruplets)))

    def score(self, quadruplets: object) -> float:
        """The share of quadruplets that hold."""
        return float(self.predict(quadruplets).mean() / 2 + 0.5)
