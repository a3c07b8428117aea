"""Automatic classifier: a nearest-neighbor model that needs no settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from vicinal._typing import FloatArray
from vicinal.automatic.automatic_fit import TuningOutcome, TuningProgress
from vicinal.automatic.class_rows import ClassRows, calibration_error
from vicinal.automatic.class_voting import ClassVotingModel
from vicinal.automatic.description import describe
from vicinal.automatic.tuned_model import TunedModel
from vicinal.features.table_encoder import encode_samples
from vicinal.learners.fit_input import check_labeled, take_fit_metadata
from vicinal.learners.labeled_data import encode_labels, row_weights
from vicinal.learners.parameters import check_parameters


class ANNClassifier(ClassVotingModel, ClassifierMixin, TunedModel):
    r"""Nearest-neighbor classifier that learns its distance and chooses everything by itself.

    Short descents of the neighbor objective, from the Euclidean metric of the features as they
    are, standardized, whitened, expanded in kernel functions, and (if they are at most 30) in hat
    functions at their quantiles, on each of F folds of the training data, give paths of metrics.
    Each iterate kept, and each start, is judged with several votes and every K on the rows that it
    was not learned from; so are the leaves of forests, boosted trees, and local linear votes under
    the best metrics. A committee of the best then predicts

    .. math:: p_c(x) = \sum_v \frac{w_v}{F} \sum_{f \le F}
              \frac{\sum_{j \in N_{vf}(x), y_j = c} v_j + \frac{1}{2} \pi_c}
                   {\sum_{j \in N_{vf}(x)} v_j + \frac{1}{2}}

    where :math:`N_{vf}(x)` are the K nearest training rows under member v's metric of fold f,
    :math:`v_j` their votes (:func:`~vicinal.voting.votes.vote_weights`) and :math:`\pi` the
    class shares. In local linear votes (:mod:`vicinal.voting.local_linear`), in leaves
    (:mod:`vicinal.voting.forest`) and in boosted trees (:mod:`vicinal.voting.boosting`) training
    rows have weights too. An exponent, found out of fold,
    makes the probabilities as confident as they should be
    (:func:`~vicinal.voting.row_weights.calibrate`). So a prediction is a weighted vote over
    training rows, and :meth:`explain` shows them.

    Parameters
    ----------
    mode : {"committee", "single"}, default="committee"
        The committee is the more accurate. "single" learns the best candidate again from all rows:
        one matrix of the features as they are, and the model is a transformer too (for maps and
        vector databases).
    members : sequence of {"linear", "hat", "kernel", "forest"} or None, default=None
        Kinds of members that the committee may have; None allows all. "linear" are metrics of the
        features, "hat" metrics of their hat functions, "kernel" metrics of their nearness to
        landmarks, "forest" decision trees, beside each other and boosted. For metrics only, use
        ``("linear", "hat", "kernel")``.
    max_metrics : int or None, default=None
        Metrics that the committee may have, at most; fewer answer sooner. Each is learned once per
        fold, so that at least one per fold stays. None allows as many as it has members for.
    effort : float, default=1.0
        Up to ``4000 * effort`` rows, a stratified sample, are tuned on; time grows with the
        square. All rows vote.
    max_time : float or None, default=None
        Seconds after which no further metric is learned; the best until then is returned, with a
        :class:`~vicinal.exceptions.TimeLimitWarning`.
    class_weight : dict, "balanced" or None, default=None
        What the samples of each class count, as neighbors too.
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
    classes_ : (c,) array
    chosen_ : list of Choice
        Members by weight: ``configuration``, ``iterate``, ``vote``, ``n_neighbors``, ``weight`` and
        their ``metrics``, indices into ``metrics_``.
    metrics_ : (q, m, d) array
        Factors L of the chosen metrics: squared distances are :math:`\|L(x - x')\|^2`. If the
        features are expanded, (q, m, p) and :math:`\|L(\phi(x) - \phi(x'))\|^2`, where
        :math:`\phi` (:meth:`unfold`) adds hat functions and kernel functions to the features.
    knots_ : (d, k) array or None
        Where the hat functions of each feature have their peaks; None if no member needs them.
    landmarks_, kernel_scales_ : (k, d) and (d,) arrays, or None
        The kernel functions :math:`e^{-\sum_f s_f^2 (x_f - l_{jf})^2}` that metrics are about,
        after features and hats; None if no member needs them. Landmarks are training rows.
    forests_ : list of Forest or None
        Decision trees of the members whose vote is "leaves" or "boosted leaves".
    exponent_ : float
        Exponent of the probabilities; 1 with mode="single".
    calibration_error_ : (2,) array or None
        Expected calibration error out of fold, with exponent 1 and with ``exponent_``.
    components_ : (m, d) array
        ``metrics_[0]``; only with mode="single".
    best_score_ : float
        Out-of-fold accuracy of the model. It is a little optimistic: the choice was made on it.
    cv_results_ : dict of arrays
        Every candidate with its out-of-fold error and log-loss.
    oof_rows_, oof_proba_ : (t,) rows tuned on, and (t, c) their out-of-fold probabilities
    histories_ : dict
        For every configuration the mean objective per row, by iteration.
    encoder_ : TableEncoder or None
        What made numbers of the columns; None where they were numbers without gaps.
    X_fit_, y_fit_, row_weights_, prior_ : the voters
    n_samples_fit_, n_features_in_, feature_names_in_, fit_time_, timed_out_

    Notes
    -----
    ``sample_weight`` and ``groups`` are keywords of :meth:`fit`. Rows of one group are never
    neighbors while metrics are learned, and lie in the same fold. Columns need no scaling.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> import vicinal as vc
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = vc.ANNClassifier().fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.95
    True
    >>> distances, rows = model.kneighbors(X_test[:1], 3)
    >>> y_train[rows]
    array([[0, 0, 0]])
    """

    def __init__(
        self,
        mode: Literal["committee", "single"] = "committee",
        *,
        members: Sequence[str] | None = None,
        max_metrics: int | None = None,
        effort: float = 1.0,
        max_time: float | None = None,
        class_weight: Mapping[object, float] | str | None = None,
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
        self.class_weight = class_weight
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
        y : array-like of shape (n_samples,)
            Class labels.
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
        encoded = encode_samples(X, y, "classes")
        given = self._described(encoded, check_labeled(self, encoded.X, y))
        classes, codes = encode_labels(given.y)
        weights = row_weights(given.X, given.y, sample_weight, self.class_weight)
        rows = ClassRows.of(codes, weights)
        outcome = self._tune(encoded, given.X, rows, groups)
        attributes = {
            "classes_": classes,
            "y_fit_": codes,
            **_out_of_fold(outcome, rows),
        }
        self._store(begin, encoded, given, rows, outcome, attributes)
        return self

    # ---------------------------------------------------------------------------- prediction

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """Predict the class of every row of X, the one with the largest probability."""
        winners = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[winners]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Mean of the members' probabilities, calibrated, (n, c); rows sum to 1."""
        X = self._queries(X)
        P = self._committee.predictions(self._expanded(X))
        return P.astype(X.dtype, copy=False)

    def report(self) -> str:
        """Text about the candidates tried and the members chosen."""
        check_is_fitted(self)
        return describe(self)


def _out_of_fold(outcome: TuningOutcome, rows: ClassRows) -> dict[str, object]:
    """The fitted attributes about predictions out of fold."""
    tuned, oof = rows[outcome.oof_rows], outcome.oof
    hits = oof.predictions.argmax(axis=1)
    errors = None
    if oof.before is not None:
        errors = np.array([calibration_error(P, tuned) for P in (oof.before, oof.predictions)])
    return {
        "oof_proba_": oof.predictions,
        "best_score_": float(np.average(hits == tuned.codes, weights=tuned.weights)),
        "exponent_": oof.strength,
        "calibration_error_": errors,
    }
