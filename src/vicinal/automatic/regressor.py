"""Automatic regressor: an average over nearest neighbors that needs no settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from vicinal._typing import FloatArray
from vicinal.automatic.automatic_fit import OutOfFold, TuningProgress
from vicinal.automatic.description import describe_numbers
from vicinal.automatic.intervals import residual_scales
from vicinal.automatic.number_rows import NumberRows, spreads
from vicinal.automatic.number_voting import NumberVotingModel
from vicinal.automatic.tuned_model import TunedModel
from vicinal.features.table_encoder import encode_samples
from vicinal.learners.fit_input import check_labeled, on_host, take_fit_metadata
from vicinal.learners.labeled_data import refuse_extreme, row_weights
from vicinal.learners.parameters import OneOf, ParameterConstraints, Several, check_parameters
from vicinal.validation.out_of_fold import gather_out_of_fold


class ANNRegressor(NumberVotingModel, RegressorMixin, TunedModel):
    r"""Nearest-neighbor regressor that learns its distance and chooses everything by itself.

    Short descents of MLKR's objective, from the Euclidean metric of the standardized, whitened
    and (if they are at most 30) expanded features, on each of F folds of the training data, give
    paths of metrics. Each iterate kept, and each start, is judged with several votes and every K
    on the rows that it was not learned from; so are the leaves of regression forests, boosted
    trees, local linear votes under the best metrics, averages that are moved along a line through
    all rows, and lines through all rows themselves. A committee of the best then predicts

    .. math:: \hat y(x) = \sum_j w_j(x) \, y_j, \qquad \sum_j w_j(x) = 1,

    an average over the training rows (and, where neighbors do not help, their mean), so that
    :meth:`vote_weights` and :meth:`explain` say which rows it was made of. Weights of local linear
    votes may be negative, and so may those of boosted trees and of lines through all rows, which
    give every training row a small weight.

    Parameters
    ----------
    mode : {"committee", "single"}, default="committee"
        The committee is the more accurate. "single" learns the best candidate again from all rows:
        one matrix of the features as they are, and the model is a transformer too (for maps and
        vector databases).
    members : sequence of {"linear", "hat", "forest"} or None, default=None
        Kinds of members that the committee may have; None allows all. "linear" are metrics of the
        features, "hat" metrics of their hat functions, "forest" decision trees, beside each
        other and boosted. For metrics only, use ``("linear", "hat")``.
    max_metrics : int or None, default=None
        Metrics that the committee may have, at most; fewer answer sooner. Each is learned once per
        fold, so that at least one per fold stays. None allows as many as it has members for.
    effort : float, default=1.0
        Up to ``4000 * effort`` rows, a sample stratified by the target, are tuned on; time grows
        with the square. All rows vote.
    max_time : float or None, default=None
        Seconds after which no further metric is learned; the best until then is returned, with a
        :class:`~vicinal.exceptions.TimeLimitWarning`.
    n_jobs : int or None, default=None
        Threads; None uses all that Numba may use. The outcome does not depend on it.
    callback : callable or None, default=None
        Called with a ``TuningProgress`` (``done``, ``total``, ``what``, ``seconds_left``) after
        every descent.
    verbose : int, default=0
        1 logs every descent, with the time left, on the logger "vicinal".
    random_state : int, RandomState or None, default=0
        Deals rows into folds. A number gives the same model every time.

    Attributes
    ----------
    chosen_ : list of Choice
        Members by weight: ``configuration``, ``iterate``, ``vote``, ``n_neighbors``, ``weight`` and
        their ``metrics``, indices into ``metrics_``.
    metrics_ : (q, m, d) array
        Factors L of the chosen metrics, as in :class:`ANNClassifier`; of d + h columns if features
        are expanded in h hat functions.
    knots_ : (d, k) array or None
        Where the hat functions of each feature have their peaks; None if no member needs them.
    forests_ : list of Forest or None
        Decision trees of the members whose vote is "leaves" or "boosted leaves".
    shrinkage_ : float
        The share of the mean target in every prediction, from 0 to 1, found out of fold.
    components_ : (m, d) array
        ``metrics_[0]``; only with mode="single".
    best_score_ : float
        Out-of-fold R² of the model. It is a little optimistic: the choice was made on it.
    cv_results_ : dict of arrays
        Every candidate with its out-of-fold squared error, in units of the variance.
    oof_rows_, oof_predictions_, oof_scales_ : arrays
        The rows tuned on, their out-of-fold predictions, and the scales of their residuals, by
        which :meth:`predict_interval` is calibrated.
    histories_ : dict
        For every configuration the mean objective per row, by iteration.
    encoder_ : TableEncoder or None
        What made numbers of the columns; None where they were numbers without gaps.
    X_fit_, y_fit_, row_weights_, prior_ : the voters, and the weighted mean of their targets
    n_samples_fit_, n_features_in_, feature_names_in_, fit_time_, timed_out_

    Notes
    -----
    ``sample_weight`` and ``groups`` are keywords of :meth:`fit`. Rows of one group are never
    neighbors while metrics are learned, and lie in the same fold. Columns need no scaling. If the
    target is skewed, metrics are learned from the normal scores of its ranks; predictions are
    averages of the target itself all the same. Several targets count equally, whatever their
    units.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import vicinal as vc
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = vc.ANNRegressor(effort=0.05).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.4)
    True
    >>> interval = model.predict_interval(X[300:], coverage=0.9)
    >>> interval.shape
    (142, 2)
    """

    _constraints: ClassVar[ParameterConstraints] = {
        **TunedModel._constraints,
        "members": OneOf((None,), Several(("linear", "hat", "forest"))),
    }

    def __init__(
        self,
        mode: Literal["committee", "single"] = "committee",
        *,
        members: Sequence[str] | None = None,
        max_metrics: int | None = None,
        effort: float = 1.0,
        max_time: float | None = None,
        n_jobs: int | None = None,
        callback: Callable[[TuningProgress], object] | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.mode = mode
        self.members = members
        self.max_metrics = max_metrics
        self.effort = effort
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, **metadata: ArrayLike | None) -> Self:
        """Choose metrics, K, votes and weights by cross-validation inside X, y.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or pyarrow table (n_samples, n_features)
            Numbers, with or without gaps (NaN), or columns of any kind:
            :class:`~vicinal.TableEncoder` makes numbers of them.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,), optional
            What each sample counts: as an anchor, as a voter, and in the choice.
        groups : array-like of shape (n_samples,), optional
            Rows of one group (one patient, say) are never judged by each other.

        Returns
        -------
        self
        """
        begin = time.monotonic()
        sample_weight, groups = take_fit_metadata(self, metadata)
        check_parameters(self)
        if y is not None:  # checked before the features, which may be computed from it
            y = np.asarray(
                check_array(on_host(y), ensure_2d=False, dtype=np.float64, input_name="y")
            )
            refuse_extreme(y, "a squared residual", "y")
        encoded = encode_samples(X, y, "number")
        checked = check_labeled(self, encoded.X, y, multi_output=True, y_numeric=True)
        given = self._described(encoded, checked)
        targets = given.y.reshape(len(given.y), -1)
        weights = row_weights(given.X, None, sample_weight, None)
        rows = NumberRows.standardized(targets, weights)
        outcome = self._tune(encoded, given.X, rows, groups)
        tuned, mean, spread = rows[outcome.oof_rows], targets.mean(axis=0), spreads(targets)
        predictions = outcome.oof.predictions
        scales = oof_scales(outcome.oof, tuned.targets - predictions)
        attributes = {
            "y_fit_": given.y,
            "prior_": mean + spread * rows.prior,
            "shrinkage_": outcome.oof.strength,
            "oof_predictions_": _shaped_like(given.y, mean + spread * predictions),
            "oof_scales_": _shaped_like(given.y, spread * scales),
            "best_score_": _r2(tuned, predictions),
        }
        self._store(begin, encoded, given, rows, outcome, attributes)
        return self

    def report(self) -> str:
        """Text about the candidates tried and the members chosen."""
        check_is_fitted(self)
        return describe_numbers(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def oof_scales(oof: OutOfFold, residuals: FloatArray) -> FloatArray:
    """(t, q) scales of the rows tuned on, by the row weights of the folds that tested them."""
    scales = [residual_scales(weights, residuals) for weights in oof.weights]
    everywhere = np.broadcast_to(np.abs(residuals).mean(axis=0), residuals.shape)
    everywhere = np.where(everywhere > 0, everywhere, 1.0)
    return np.asarray(gather_out_of_fold(scales, oof.folds, everywhere))


def _shaped_like(y: FloatArray, values: FloatArray) -> FloatArray:
    """Values (t, q), or (t,) if y is."""
    return values[:, 0] if y.ndim == 1 else values


def _r2(rows: NumberRows, predictions: FloatArray) -> float:
    """The mean over the targets; 0 where all are constant."""
    w = rows.weights
    error = w @ (rows.targets - predictions) ** 2
    total = w @ (rows.targets - w @ rows.targets / w.sum()) ** 2
    known = total > 0
    return float(np.mean(1.0 - error[known] / total[known])) if known.any() else 0.0
