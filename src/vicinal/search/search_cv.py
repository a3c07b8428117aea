"""The paper's search for α, γ and K by cross-validation, without fitting anything twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from vicinal._typing import FloatArray, LabelArray, Seed
from vicinal.learners.descent import show_log
from vicinal.learners.fit_input import DTYPES, check_labeled, store_fit, take_fit_metadata
from vicinal.learners.labeled_data import encode_labels
from vicinal.learners.neighbor_learner import NeighborLearner
from vicinal.learners.parameters import (
    N_JOBS,
    FoldsGiven,
    OneOf,
    ParameterConstraints,
    check_parameters,
)
from vicinal.search.fold_search import (
    FoldSearch,
    SearchResults,
    SearchSetup,
    Trial,
    check_rows,
    each_warning_once,
    fit_at,
    scaler_of,
    search_folds,
)
from vicinal.search.grid import (
    Grid,
    Step,
    alpha_steps,
    check_learner,
    gamma_steps,
    grid_steps,
    make_grid,
    make_n_neighbors,
    warm_start_chain,
)
from vicinal.validation.folds import make_folds
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.neighbor_search import search_backend


class ANNSearchCV(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator
):
    r"""Choose α, γ and K by cross-validation, and classify with them.

    The error of a setting is its mean over the folds,

    .. math:: re(\alpha, \gamma, K) = \frac{1}{F} \sum_{f=1}^{F}
              \text{share of the test rows of fold } f \text{ that K-NN misclassifies}

    with the metric that the estimator learns at (α, γ) from the fold's training rows, which are
    also the neighbors. All settings see the same folds; one neighbor search per metric serves every
    K; and a fit starts from the solution of its neighbor on the grid: along α from 0 outward, each
    sign for itself, along γ outward from the estimator's own.

    Parameters
    ----------
    estimator : NeighborLearner with ``alpha``, default=None
        ``vc.ANN(...)`` or ``vc.PNCA(...)``; None is ``vc.ANN()``. Everything but α and γ, such as
        ``max_iter``, is taken from it; its ``backend`` is also where neighbors are looked for.
    alphas : array-like of shape (a,), default=None
        Values of α of any sign; None is 2⁻⁴, 2⁻³, …, 2⁴ with the sign of the estimator's α.
    gammas : array-like of shape (g,), default=None
        Values of γ; None is 2⁻³, …, 2³. PNCA has none.
    n_neighbors : array-like of int, default=None
        Values of K; None is 1, 4, …, 46, as far as the folds have so many voters.
    search : {"separate", "grid"}, default="separate"
        "separate": first α at the estimator's γ, then γ at the best α, a + g fits per fold instead
        of the a·g of "grid".
    rule : {"vote", "class_mean"}, default="vote"
        How K neighbors decide, as in :class:`~vicinal.voting.class_mean.ClassMeanKNN`.
    warm_start : bool, default=True
        Start fits from the neighbor's solution. False starts each as the estimator does: then the
        scores are exactly those of ``GridSearchCV`` over a pipeline of estimator and K-NN. Where
        the objective is not convex (α > 0), or ``max_iter`` ends a fit, the two differ a little.
    standardize : bool, default=False
        Divide every feature by its standard deviation in the training part of the fold.
    cv : int, splitter or iterable of (train, test), default=5
        A number: stratified folds, shuffled; with groups, these stay together. At most as many
        folds as the largest class has members; classes may have fewer.
    refit : bool, default=True
        Fit the best setting to all data, along the path that led to it.
    n_jobs : int, default=None
        Folds that are worked on at the same time, in threads; the results do not depend on it.
    random_state : int, RandomState or None, default=None
        Shuffles the rows into folds. The estimator has its own.
    verbose : int, default=0
        1 logs every fit on the logger "vicinal".

    Attributes
    ----------
    best_params_ : dict of "alpha", "gamma" and "n_neighbors"
        The least error. Of equal ones the smallest α, then the smallest γ, then the smallest K.
    best_score_, best_index_
        Its mean accuracy over the folds, and its row in ``cv_results_``.
    cv_results_ : dict of arrays, one row for every setting that was tried, sorted by (α, γ, K)
        As in scikit-learn: param_alpha, param_gamma, param_n_neighbors, params, mean_test_score,
        std_test_score, split0_test_score …, rank_test_score, mean_fit_time; and mean_n_iter.
    alphas_, gammas_, n_neighbors_ : arrays (a,), (g,), (number of K,)
        The values, ascending; a separate search adds the estimator's γ.
    error_alpha_k_, error_gamma_k_, error_alpha_gamma_ : arrays of two dimensions
        re(α, K), re(γ, K) and re(α, γ): the least error over the third parameter. A separate
        search leaves NaN in re(α, γ) where it has not been.
    n_splits_ : int
        The number of folds.
    best_estimator_, classifier_ : the learner, and the K-NN on what it embeds; if ``refit``
    scaler_ : StandardScaler, or None; if ``refit``
    components_ : array (m, d), L in the units of X; if ``refit``
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from vicinal.search.search_cv import ANNSearchCV
    >>> import vicinal as vc
    >>> X, y = load_wine(return_X_y=True)
    >>> search = ANNSearchCV(
    ...     vc.PNCA(), alphas=[0.5, 1, 2], n_neighbors=[1, 5, 9], standardize=True, random_state=0
    ... )
    >>> search.fit(X, y).score(X, y) > 0.95
    True
    >>> search.error_alpha_k_.shape
    (3, 3)
    """

    # Not in the signature of fit, for the reason given in NeighborLearner.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None, "groups": None}

    _constraints: ClassVar[ParameterConstraints] = {
        "search": OneOf(("separate", "grid")),
        "rule": OneOf(("vote", "class_mean")),
        "cv": FoldsGiven(),
        "n_jobs": N_JOBS,
    }

    best_estimator_: NeighborLearner
    classifier_: ClassMeanKNN
    components_: FloatArray
    scaler_: StandardScaler | None

    def __init__(
        self,
        estimator: NeighborLearner | None = None,
        *,
        alphas: ArrayLike | None = None,
        gammas: ArrayLike | None = None,
        n_neighbors: ArrayLike | None = None,
        search: Literal["separate", "grid"] = "separate",
        rule: Literal["vote", "class_mean"] = "vote",
        warm_start: bool = True,
        standardize: bool = False,
        cv: object = 5,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.alphas = alphas
        self.gammas = gammas
        self.n_neighbors = n_neighbors
        self.search = search
        self.rule = rule
        self.warm_start = warm_start
        self.standardize = standardize
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: object, y: object, **metadata: ArrayLike | None) -> Self:
        """Search, and fit the best setting to all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels of any type that scikit-learn takes.
        sample_weight : array-like of shape (n_samples,), optional
            For the estimator. Scores count every sample alike.
        groups : array-like of shape (n_samples,), optional
            For the folds, which keep a group together, and for the estimator.

        Returns
        -------
        self
        """
        check_parameters(self)
        estimator = check_learner(self.estimator)
        separate = self.search == "separate"
        grid = make_grid(estimator, self.alphas, self.gammas, separate=separate)
        given = check_labeled(self, X, y)
        classes, codes = encode_labels(given.y)
        rows = check_rows(given.X, given.y, codes, *take_fit_metadata(self, metadata))
        folds = make_folds(self.cv, rows.X, rows.y, rows.groups, self.random_state)
        ks = make_n_neighbors(self.n_neighbors, self.rule, folds)
        setup = SearchSetup(estimator, rows, ks, self.rule, self.standardize)
        with each_warning_once():
            steps, trials = self._search([FoldSearch(setup, fold) for fold in folds], grid)
        results = SearchResults.of(trials, ks)
        found = {**_found(results, grid), "classes_": classes, "n_splits_": len(folds)}
        if self.refit:
            i, j = results.best()
            point = results.points[i]
            path = warm_start_chain(steps, point) if self.warm_start else [Step(point, None)]
            found |= self._refit(setup, path, int(ks[j]))
        store_fit(self, {**given.attributes, **found})
        return self

    def predict(self, X: ArrayLike) -> LabelArray:
        """Predict the class of every row of X (n, d)."""
        Z = self._embed(X)
        return self.classifier_.predict(Z)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Weigh the classes, (n, c), as :meth:`ClassMeanKNN.predict_proba` does."""
        Z = self._embed(X)
        return self.classifier_.predict_proba(Z)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Embed X (n, d) so that Euclidean distances are the learned ones, (n, m)."""
        return self._embed(X)

    def get_mahalanobis_matrix(self) -> FloatArray:
        """M = LᵀL, the (d, d) matrix of the squared distance, in the units of X."""
        self._check_refitted()
        return np.asarray(self.components_.T @ self.components_)

    def _embed(self, X: ArrayLike) -> FloatArray:
        self._check_refitted()
        rows = validate_data(self, X, dtype=DTYPES, reset=False)
        scaled = rows if self.scaler_ is None else self.scaler_.transform(rows)
        return self.best_estimator_._embed(scaled)

    def _check_refitted(self) -> None:
        check_is_fitted(self, "cv_results_")
        if not (self.refit and hasattr(self, "best_estimator_")):
            raise NotFittedError("refit=False: only the search was made; use refit=True for this")

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _search(
        self, searches: list[FoldSearch], grid: Grid
    ) -> tuple[list[Step], list[list[Trial]]]:
        """All steps taken, and the trials of every fold in their order."""
        options: dict[str, Any] = {
            "warm": self.warm_start,
            "n_jobs": self.n_jobs,
            "log": bool(self.verbose),
        }
        if self.verbose:
            show_log()
        if self.search == "grid":
            steps = list(grid_steps(grid.alphas.tolist(), grid.gammas.tolist(), grid.gamma))
            return steps, search_folds(searches, steps, **options)
        steps = list(alpha_steps(grid.alphas.tolist(), grid.gamma))
        trials = search_folds(searches, steps, **options)
        results = SearchResults.of(trials, searches[0].setup.ks)
        alpha = results.points[results.best()[0]].alpha
        more = list(gamma_steps(alpha, grid.gammas.tolist(), grid.gamma))
        added = search_folds(searches, more, **options)
        return steps + more, [a + b for a, b in zip(trials, added, strict=True)]

    def _refit(self, setup: SearchSetup, path: list[Step], n_neighbors: int) -> dict[str, object]:
        """Fit the best setting to all rows, along the same path as on the folds."""
        rows, estimator = setup.rows, setup.estimator
        scaler = scaler_of(rows.X) if self.standardize else None
        scaled = rows if scaler is None else replace(rows, X=scaler.transform(rows.X))
        learner = fit_at(estimator, path[0].point, scaled, None)
        for step in path[1:]:
            learner = fit_at(estimator, step.point, scaled, learner.components_)
        backend = search_backend(estimator.backend)
        knn = ClassMeanKNN(n_neighbors, rule=self.rule, backend=backend)
        L = learner.components_ if scaler is None else learner.components_ / scaler.scale_
        return {
            "best_estimator_": learner,
            "scaler_": scaler,
            "classifier_": knn.fit(learner._embed(scaled.X), rows.y),
            "components_": L.astype(rows.X.dtype, copy=False),  # (m, d)
        }


def _found(results: SearchResults, grid: Grid) -> dict[str, object]:
    """The attributes that tell what was tried, and what was best."""
    i, j = results.best()
    best, table = i * len(results.ks) + j, results.table()
    errors = results.errors(grid.alphas, grid.gammas)  # (a, g, number of K)
    return {
        "cv_results_": table,
        "best_index_": best,
        "best_params_": table["params"][best],
        "best_score_": float(results.means[i, j]),
        "alphas_": grid.alphas,
        "gammas_": grid.gammas,
        "n_neighbors_": results.ks,
        # fmin: a number where there is one
        "error_alpha_k_": np.fmin.reduce(errors, axis=1),
        "error_gamma_k_": np.fmin.reduce(errors, axis=0),
        "error_alpha_gamma_": np.fmin.reduce(errors, axis=2),
    }
