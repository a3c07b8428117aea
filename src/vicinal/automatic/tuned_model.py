"""Base of the automatic models: one metric or a committee, and the steps of a fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if

from vicinal._typing import FloatArray
from vicinal.automatic.automatic_fit import MEMBERS, AutomaticFit, TuningOutcome, TuningProgress
from vicinal.automatic.tuning_rows import TuningRows
from vicinal.exceptions import TimeLimitWarning
from vicinal.features.identifiers import warn_of_identifiers
from vicinal.features.table_encoder import EncodedSamples
from vicinal.learners.base import MetricLearner
from vicinal.learners.blas_threads import single_threaded_blas
from vicinal.learners.descent import logger, show_log
from vicinal.learners.fit_input import FitInput, store_fit
from vicinal.learners.labeled_data import encode_groups
from vicinal.learners.parameters import (
    CALLBACK,
    N_JOBS,
    OPTIONAL_COUNT,
    POSITIVE,
    OneOf,
    ParameterConstraints,
    Several,
)
from vicinal.validation.schedule import Deadline, Schedule, thread_count


def _is_single(model: TunedModel) -> bool:
    return model.mode == "single"


class TunedModel(MetricLearner, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of the automatic models: a metric learner with mode="single", otherwise a committee.

    A committee has many metrics: it does not even have the methods of one metric, nor the
    attributes, ``set_output`` included, which scikit-learn offers where there is a
    ``get_feature_names_out``.
    """

    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None, "groups": None}

    _constraints: ClassVar[ParameterConstraints] = {
        "mode": OneOf(("committee", "single")),
        "members": OneOf((None,), Several(MEMBERS)),
        "max_metrics": OPTIONAL_COUNT,
        "effort": POSITIVE,
        "max_time": OneOf((None,), POSITIVE),
        "n_jobs": N_JOBS,
        "callback": CALLBACK,
    }

    mode: str
    members: Sequence[str] | None
    max_metrics: int | None
    effort: float
    max_time: float | None
    n_jobs: int | None
    callback: Callable[[TuningProgress], object] | None
    verbose: int
    random_state: int | np.random.RandomState | None
    metrics_: FloatArray

    transform = available_if(_is_single)(MetricLearner.transform)
    fit_transform = available_if(_is_single)(MetricLearner.fit_transform)
    get_feature_names_out = available_if(_is_single)(MetricLearner.get_feature_names_out)
    get_metric = available_if(_is_single)(MetricLearner.get_metric)
    pair_distance = available_if(_is_single)(MetricLearner.pair_distance)
    pair_score = available_if(_is_single)(MetricLearner.pair_score)
    predict_pairs = available_if(_is_single)(MetricLearner.predict_pairs)
    calibrate_threshold = available_if(_is_single)(MetricLearner.calibrate_threshold)
    set_threshold = available_if(_is_single)(MetricLearner.set_threshold)

    @property
    def components_(self) -> FloatArray:  # type: ignore[override]
        """(m, d) the one metric of mode="single"."""
        if not _is_single(self):
            raise AttributeError(
                "A committee has many metrics (metrics_), not one; use mode='single' for a model "
                "with components_ and transform"
            )
        return self.metrics_[0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not _is_single(self):
            tags.transformer_tags = None
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def _described(self, encoded: EncodedSamples, given: FitInput) -> FitInput:
        """The input with the user's own columns; a warning where one of them names the rows."""
        if encoded.encoder is not None:
            return replace(given, attributes=encoded.encoder.input_attributes)
        names: Any = given.attributes.get("feature_names_in_")
        warn_of_identifiers(given.X, names, stacklevel=3)
        return given

    def _tune(
        self, encoded: EncodedSamples, X: FloatArray, rows: TuningRows, groups: ArrayLike | None
    ) -> TuningOutcome:
        codes = None if groups is None else encode_groups(groups, X)
        rng = check_random_state(self.random_state)
        members = MEMBERS if self.members is None else self.members
        by_target = encoded.target_features
        work = AutomaticFit(
            self.mode, members, X.astype(np.float64), rows, codes, self.effort, rng, by_target,
            self.max_metrics,
        )  # fmt: skip
        # One thread per task: results do not depend on the number of tasks at a time.
        schedule = Schedule(
            Deadline.after(self.max_time), thread_count(self.n_jobs), kernel_threads=1
        )
        with single_threaded_blas():
            outcome = work.run(schedule, self._report_progress)
        if outcome.timed_out:
            warnings.warn(
                f"max_time={self.max_time} ended the search early; the best model found until "
                "then is returned. Give more time, or a smaller effort.",
                TimeLimitWarning,
                stacklevel=3,
            )
        return outcome

    def _report_progress(self, progress: TuningProgress) -> None:
        if self.verbose:
            show_log()
            logger.info(
                "%s %d/%d: %s; about %.0f s left", type(self).__name__,
                progress.done, progress.total, progress.what, progress.seconds_left,
            )  # fmt: skip
        if self.callback is not None:
            self.callback(progress)

    def _store(
        self,
        begin: float,
        encoded: EncodedSamples,
        given: FitInput,
        rows: TuningRows,
        outcome: TuningOutcome,
        attributes: Mapping[str, object],
    ) -> None:
        """Set all fitted attributes: those that all models have, and these."""
        hats, kernel = outcome.expansion.hats, outcome.expansion.kernel
        common = {
            "encoder_": encoded.encoder,
            "X_fit_": given.X,
            "row_weights_": rows.weights,
            "prior_": rows.prior,
            "n_samples_fit_": len(given.X),
            "metrics_": outcome.metrics,
            "chosen_": outcome.chosen,
            "knots_": None if hats is None else hats.knots,
            "landmarks_": None if kernel is None else kernel.landmarks,
            "kernel_scales_": None if kernel is None else kernel.scales,
            "cv_results_": outcome.cv_results,
            "histories_": outcome.histories,
            "oof_rows_": outcome.oof_rows,
            "timed_out_": outcome.timed_out,
            "forests_": outcome.forests,
            "fit_time_": time.monotonic() - begin,
        }
        store_fit(self, {**given.attributes, **common, **attributes})
