"""The interface of metric-learn over our learners: one import must be the whole migration."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import vicinal as vc
import vicinal.compat.metric_learn as ml
from vicinal.compat.metric_learn.starts import starting_components, starting_metric

X, Y = load_iris(return_X_y=True)
X = np.unique(X, axis=0)  # no two samples are equal
Y = np.repeat([0, 1, 2], [50, 50, 49])[np.argsort(np.random.RandomState(0).rand(len(X)))]
X = X[np.argsort(np.random.RandomState(0).rand(len(X)))] + 2.0 * Y[:, None] * [1, 0, 1, 0]
RNG = np.random.RandomState(0)
PAIRS = np.array([RNG.choice(len(X), 2, replace=False) for _ in range(120)])
SIGNS = np.where(Y[PAIRS[:, 0]] == Y[PAIRS[:, 1]], 1, -1)
TRIPLETS = ml.Constraints(Y).generate_knntriplets(X, 2, 2)
QUADRUPLETS = np.column_stack(
    ml.Constraints(Y).positive_negative_pairs(60, same_length=True, random_state=0)
)

PAIR_LEARNERS = [
    ml.ITML(),
    ml.MMC(),
    ml.MMC(diagonal=True),
    ml.SDML(balance_param=1e-5),
]
OF_LABELS = [
    ml.NCA(),
    ml.LMNN(),
    ml.LFDA(),
    ml.MLKR(),
    ml.Covariance(),
    ml.RCA(),
    ml.RCA_Supervised(n_chunks=10),
    ml.ITML_Supervised(n_constraints=30),
    ml.LSML_Supervised(n_constraints=30),
    ml.MMC_Supervised(n_constraints=30),
    ml.SDML_Supervised(balance_param=1e-5),
    ml.SCML_Supervised(n_basis=40),
]
TUPLE_LEARNERS = [*PAIR_LEARNERS, ml.SCML(n_basis=40), ml.LSML()]
ALL = [*OF_LABELS, *TUPLE_LEARNERS]


def name_of(estimator):
    return type(estimator).__name__


def seeded(estimator):
    estimator = clone(estimator)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    return estimator


def indicators_for(estimator):
    """The arguments of ``fit`` as row indices of X."""
    if name_of(estimator) in ("ITML", "MMC", "SDML"):
        return PAIRS, SIGNS
    if name_of(estimator) == "SCML":
        return (TRIPLETS,)
    if name_of(estimator) == "LSML":
        return (QUADRUPLETS,)
    return np.arange(len(X)), Y


def fitted(estimator):
    tuples, *labels = indicators_for(estimator)
    return seeded(estimator).fit(X[tuples], *labels)


pytestmark = pytest.mark.filterwarnings(
    "ignore:As no value for `n_basis`:UserWarning",
    "ignore:The number of bases with nonzero weight:UserWarning",
    "ignore:.*did not converge:sklearn.exceptions.ConvergenceWarning",
)


# ------------------------------------------------------------------------------------- the door

ADDED = ("Constraints", "NonPSDError", "PreprocessorError", "__version__")
SIGNATURES = {
    "Covariance": "preprocessor=None",
    "ITML": "gamma=1.0, max_iter=1000, tol=0.001, prior='identity', verbose=False, "
    "preprocessor=None, random_state=None, convergence_threshold='deprecated'",
    "ITML_Supervised": "gamma=1.0, max_iter=1000, tol=0.001, n_constraints=None, "
    "prior='identity', verbose=False, preprocessor=None, random_state=None, "
    "num_constraints='deprecated', convergence_threshold='deprecated'",
    "LFDA": "n_components=None, k=None, embedding_type='weighted', preprocessor=None",
    "LMNN": "init='auto', n_neighbors=3, min_iter=50, max_iter=1000, learn_rate=1e-07, "
    "regularization=0.5, convergence_tol=0.001, verbose=False, preprocessor=None, "
    "n_components=None, random_state=None, k='deprecated'",
    "LSML": "tol=0.001, max_iter=1000, prior='identity', verbose=False, preprocessor=None, "
    "random_state=None",
    "LSML_Supervised": "tol=0.001, max_iter=1000, prior='identity', n_constraints=None, "
    "weights=None, verbose=False, preprocessor=None, random_state=None, "
    "num_constraints='deprecated'",
    "MLKR": "n_components=None, init='auto', tol=None, max_iter=1000, verbose=False, "
    "preprocessor=None, random_state=None",
    "MMC": "max_iter=100, max_proj=10000, tol=0.001, init='identity', diagonal=False, "
    "diagonal_c=1.0, verbose=False, preprocessor=None, random_state=None, "
    "convergence_threshold='deprecated'",
    "MMC_Supervised": "max_iter=100, max_proj=10000, tol=1e-06, n_constraints=None, "
    "init='identity', diagonal=False, diagonal_c=1.0, verbose=False, preprocessor=None, "
    "random_state=None, num_constraints='deprecated', convergence_threshold='deprecated'",
    "NCA": "init='auto', n_components=None, max_iter=100, tol=None, verbose=False, "
    "preprocessor=None, random_state=None",
    "RCA": "n_components=None, preprocessor=None",
    "RCA_Supervised": "n_components=None, n_chunks=100, chunk_size=2, preprocessor=None, "
    "random_state=None, num_chunks='deprecated'",
    "SCML": "beta=1e-05, basis='triplet_diffs', n_basis=None, gamma=0.005, max_iter=10000, "
    "output_iter=500, batch_size=10, verbose=False, preprocessor=None, random_state=None",
    "SCML_Supervised": "k_genuine=3, k_impostor=10, beta=1e-05, basis='lda', n_basis=None, "
    "gamma=0.005, max_iter=10000, output_iter=500, batch_size=10, verbose=False, "
    "preprocessor=None, random_state=None",
    "SDML": "balance_param=0.5, sparsity_param=0.01, prior='identity', verbose=False, "
    "preprocessor=None, random_state=None",
    "SDML_Supervised": "balance_param=0.5, sparsity_param=0.01, prior='identity', "
    "n_constraints=None, verbose=False, preprocessor=None, random_state=None, "
    "num_constraints='deprecated'",
}


def test_names_are_those_of_metric_learn():
    assert set(ml.__all__) == {*SIGNATURES, *ADDED}
    assert ml.__version__ == "0.7.0"


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_have_their_order_and_defaults(name):
    parameters = list(inspect.signature(getattr(ml, name)).parameters.values())
    assert ", ".join(f"{p.name}={p.default!r}" for p in parameters) == SIGNATURES[name]


def test_submodules_have_the_names_that_code_imports_from():
    for name in SIGNATURES:
        module = importlib.import_module(
            f"vicinal.compat.metric_learn.{name.partition('_')[0].lower()}"
        )
        assert getattr(module, name) is getattr(ml, name)
    from vicinal.compat.metric_learn.constraints import Constraints
    from vicinal.compat.metric_learn.exceptions import NonPSDError, PreprocessorError

    assert Constraints is ml.Constraints
    assert issubclass(NonPSDError, np.linalg.LinAlgError)
    assert not issubclass(PreprocessorError, ValueError)


def test_an_alias_in_sys_modules_serves_unchanged_code():
    code = """
import sys
import vicinal.compat.metric_learn as compat

for name, module in list(sys.modules.items()):
    if name.startswith("vicinal.compat.metric_learn"):
        sys.modules[name.removeprefix("vicinal.compat.")] = module

import metric_learn
from metric_learn import ITML
from metric_learn.base_metric import MahalanobisMixin
from metric_learn.exceptions import PreprocessorError

assert isinstance(ITML(), MahalanobisMixin)
try:
    ITML(preprocessor=lambda indices: 1 / 0).fit([[0, 1]], [1])
except PreprocessorError as error:
    print(type(error) is metric_learn.PreprocessorError)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


OF_FEW_SAMPLES = {"RCA_Supervised": {"n_chunks": 2}, "LMNN": {"n_neighbors": 1}}
OF_FEW_SAMPLES["SCML_Supervised"] = {"n_basis": 4}


@pytest.mark.parametrize("estimator", OF_LABELS, ids=name_of)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*renamed:FutureWarning")
def test_scikit_learn_accepts_it(estimator):
    if isinstance(estimator, ml.RCA):
        pytest.skip("fit(X, chunks) has no y, in metric-learn neither")
    estimator = clone(estimator).set_params(**OF_FEW_SAMPLES.get(name_of(estimator), {}))
    check_estimator(seeded(estimator), on_skip=None)


# ------------------------------------------------------------------------------ input and output


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_samples_indices_and_callables_are_the_same(estimator):
    indicators, *labels = indicators_for(estimator)
    given = fitted(estimator)
    names = np.array([f"row {i}" for i in range(len(X))])
    by_index = seeded(estimator).set_params(preprocessor=X).fit(indicators, *labels)
    by_name = seeded(estimator).set_params(
        preprocessor=lambda rows: X[[int(row.split()[1]) for row in rows]]
    )
    by_name.fit(names[indicators], *labels)
    for other in (by_index, by_name):
        assert_array_equal(given.components_, other.components_)
    assert_array_equal(given.transform(X), by_index.transform(np.arange(len(X))))
    assert_array_equal(given.pair_distance(X[PAIRS]), by_index.pair_distance(PAIRS))
    if hasattr(estimator, "decision_function"):
        expected = given.decision_function(X[indicators])
        assert_array_equal(expected, by_name.decision_function(names[indicators]))
        assert_array_equal(given.predict(X[indicators]), by_index.predict(indicators))
    assert by_index.n_features_in_ == given.n_features_in_ == 4


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_distances_are_those_of_the_matrix(estimator):
    model = fitted(estimator)
    M, metric = model.get_mahalanobis_matrix(), model.get_metric()
    gaps = X[PAIRS[:, 0]] - X[PAIRS[:, 1]]
    naive = np.sqrt([gap @ M @ gap for gap in gaps])
    assert_allclose(model.pair_distance(X[PAIRS]), naive, atol=1e-7 * naive.max())
    assert_array_equal(model.pair_score(X[PAIRS]), -model.pair_distance(X[PAIRS]))
    assert_allclose([metric(*X[pair]) for pair in PAIRS], naive, atol=1e-7 * naive.max())
    assert_allclose(metric(X[0], X[1], squared=True), metric(X[0], X[1]) ** 2)
    assert_allclose(model.transform(X), X @ model.components_.T)
    assert_allclose(model.transform(csr_array(X)), model.transform(X), atol=1e-9)
    with pytest.warns(FutureWarning, match="pair_score"):
        assert_array_equal(model.score_pairs(X[PAIRS]), model.pair_distance(X[PAIRS]))
    before = metric(X[0], X[1])
    model.components_ = np.zeros((4, 4))
    assert metric(X[0], X[1]) == before
    with pytest.raises(ValueError, match="1-D"):
        metric(X[:2], X[:2])


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_estimators_are_cloned_pickled_and_refitted(estimator):
    model = fitted(estimator)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.components_, model.components_)
    tuples, *labels = indicators_for(estimator)
    assert again.fit(X[tuples], *labels) is again
    assert_array_equal(again.components_, model.components_)
    parameters = {name for name in vars(model) if not name.endswith("_")}
    assert parameters == set(model.get_params())


@pytest.mark.parametrize("estimator", ALL, ids=name_of)
def test_not_fitted_is_an_error(estimator):
    estimator = clone(estimator)
    for ask in (estimator.transform, estimator.pair_distance, estimator.score_pairs):
        with pytest.raises(NotFittedError):
            ask(X)
    with pytest.raises(NotFittedError):
        estimator.get_metric()
    with pytest.raises(NotFittedError):
        estimator.get_mahalanobis_matrix()


def test_wrong_shapes_are_named():
    nca, itml = fitted(ml.NCA()), fitted(ml.ITML())
    with pytest.raises(ValueError, match=r"2D array of formed points expected by NCA\. Found 1D"):
        nca.transform(X[0])
    with pytest.raises(ValueError, match="Found 2D array instead(.|\n)*use a preprocessor"):
        itml.predict(X)
    with pytest.raises(ValueError, match=r"2 element\(s\) expected by ITML\. Got tuples of 3"):
        itml.fit(X[TRIPLETS], np.ones(len(TRIPLETS)))
    with pytest.raises(ValueError, match="only values in"):
        itml.fit(X[PAIRS], SIGNS > 0)
    with pytest.raises(ValueError, match="Invalid type for the preprocessor"):
        ml.NCA(preprocessor=4).fit(X, Y)
    with pytest.raises(ValueError, match="1D array of indicators or 2D array of formed points"):
        ml.NCA(preprocessor=X).fit(X[None], Y)
    with pytest.raises(ValueError, match="after the preprocessor has been applied"):
        ml.NCA(preprocessor=lambda rows: np.ones(len(rows))).fit(np.arange(len(X)), Y)
    with pytest.raises(ml.PreprocessorError, match="IndexError"):
        ml.ITML(preprocessor=X).fit(PAIRS + 1000, SIGNS)
    with pytest.raises(ValueError, match="must be in \\[1, 4\\]"):
        ml.NCA(n_components=5).fit(X, Y)


# ------------------------------------------------------------------------- classifiers of tuples


@pytest.mark.parametrize("estimator", PAIR_LEARNERS, ids=name_of)
def test_pairs_are_classified(estimator):
    model = fitted(estimator)
    scores = model.decision_function(X[PAIRS])
    assert_array_equal(model.classes_, [0, 1])
    assert_array_equal(scores, model.pair_score(X[PAIRS]))
    assert_array_equal(model.predict(X[PAIRS]), np.where(-scores <= model.threshold_, 1, -1))
    assert_allclose(model.score(X[PAIRS], SIGNS), roc_auc_score(SIGNS, scores))
    assert model.set_threshold(0.5).threshold_ == 0.5
    with pytest.raises(ValueError, match="real number"):
        model.set_threshold("near")
    assert np.isfinite(cross_val_score(model, X[PAIRS], SIGNS, scoring="roc_auc")).all()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"strategy": "f_beta", "beta": 0.0},
        {"strategy": "f_beta", "beta": 2.0},
        {"strategy": "max_tpr", "min_rate": 0.8},
        {"strategy": "max_tnr", "min_rate": 1.0},
    ],
)
def test_threshold_is_the_largest_accepted_distance(how):
    """The best of all thresholds; of equally good ones the smallest, on a pair's own distance."""
    model = fitted(ml.ITML())
    model.calibrate_threshold(X[PAIRS], SIGNS, **how)
    distances, truth = model.pair_distance(X[PAIRS]), SIGNS > 0

    def score(threshold):
        called = distances <= threshold
        tp, fp = (called & truth).sum(), (called & ~truth).sum()
        tpr, tnr = tp / truth.sum(), 1 - fp / (~truth).sum()
        if how.get("strategy") == "f_beta":
            b = how["beta"] ** 2
            return (1 + b) * tp / max(b * truth.sum() + called.sum(), 1e-300)
        if "min_rate" in how:
            goal, bound = (tpr, tnr) if how["strategy"] == "max_tpr" else (tnr, tpr)
            return goal if bound >= how["min_rate"] else -1.0
        return ((called == truth).sum()) / len(truth)

    tried = np.r_[distances.min() - 1.0, np.sort(distances)]
    assert model.threshold_ == tried[np.argmax([score(t) for t in tried])]
    fresh = clone(model).fit(X[PAIRS], SIGNS, calibration_params=how)
    assert fresh.threshold_ == model.threshold_


def test_thresholds_of_one_kind_accept_all_or_none():
    model = fitted(ml.ITML())
    distances = model.pair_distance(X[PAIRS])
    assert model.calibrate_threshold(X[PAIRS], np.ones(120)).threshold_ == distances.max()
    assert model.calibrate_threshold(X[PAIRS], -np.ones(120)).threshold_ == distances.min() - 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"strategy": "youden"}, 'Got "youden" instead'),
        ({"strategy": "max_tpr"}, "Got None instead"),
        ({"strategy": "max_tnr", "min_rate": 1.5}, "Got 1.5 instead"),
        ({"strategy": "f_beta", "beta": None}, "must be a real number"),
    ],
)
def test_wrong_calibration_is_named_before_any_work(how, message):
    with pytest.raises(ValueError, match=message):
        ml.ITML().fit("not looked at", None, calibration_params=how)
    with pytest.raises(ValueError, match=message):
        fitted(ml.MMC()).calibrate_threshold(X[PAIRS], SIGNS, **how)


def test_a_learner_of_ones_own_has_no_threshold_until_it_is_set():
    from vicinal.compat.metric_learn.base_metric import MahalanobisMixin, _PairsClassifierMixin

    class Euclidean(MahalanobisMixin, _PairsClassifierMixin):
        def fit(self, pairs, y):
            pairs, y = self._prepare_inputs(pairs, y, type_of_inputs="tuples")
            self.components_ = np.eye(pairs.shape[2])
            return self

    model = Euclidean().fit(X[PAIRS], SIGNS)
    with pytest.raises(AttributeError, match="set_threshold or calibrate_threshold"):
        model.predict(X[PAIRS])
    lengths = np.linalg.norm(X[PAIRS[:, 0]] - X[PAIRS[:, 1]], axis=1)
    assert_allclose(model.pair_distance(X[PAIRS]), lengths)
    assert_array_equal(model.set_threshold(2).predict(X[PAIRS]), np.where(lengths <= 2, 1, -1))


def test_triplets_and_quadruplets_are_classified():
    scml, lsml = fitted(ml.SCML(n_basis=40)), fitted(ml.LSML())
    d = [scml.pair_distance(X[TRIPLETS[:, [0, k]]]) for k in (1, 2)]
    assert_allclose(scml.decision_function(X[TRIPLETS]), d[1] - d[0])
    assert_array_equal(scml.predict(X[TRIPLETS]), np.where(d[0] < d[1], 1, -1))
    assert_allclose(scml.score(X[TRIPLETS]), np.mean(d[0] < d[1]))
    near, far = (lsml.pair_distance(X[QUADRUPLETS[:, part]]) for part in ([0, 1], [2, 3]))
    assert_allclose(lsml.decision_function(X[QUADRUPLETS]), far - near)
    assert_array_equal(lsml.predict(X[QUADRUPLETS]), np.sign(far - near))
    assert_allclose(lsml.score(X[QUADRUPLETS]), np.mean(near < far))
    assert scml.predict(X[[[0, 1, 1]]]) == -1  # never 0


def test_searches_and_pipelines():
    search = GridSearchCV(ml.ITML(preprocessor=X), {"gamma": [0.1, 1.0]}).fit(PAIRS, SIGNS)
    assert search.best_score_ > 0.5
    model = make_pipeline(ml.LMNN(), KNeighborsClassifier()).fit(X, Y)
    assert model.score(X, Y) > 0.9


# -------------------------------------------------------------------------------- what is learned


def test_itml_is_our_itml_with_their_bounds():
    model = fitted(ml.ITML(tol=1e-8))
    rows = X[np.unique(PAIRS)]
    D = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    assert_allclose(model.bounds_, np.percentile(D, (5, 95)))
    native = vc.ITML(bounds=tuple(model.bounds_), max_iter=1000, tol=1e-8)
    native.fit_pairs(X, PAIRS, SIGNS)
    assert_allclose(
        model.get_mahalanobis_matrix(), native.get_mahalanobis_matrix(), rtol=1e-6, atol=1e-12
    )
    given = ml.ITML().fit(X[PAIRS], SIGNS, bounds=[[1.0], [9.0]])
    assert_array_equal(given.bounds_, [1.0, 9.0])
    with pytest.raises(ValueError, match="two elements"):
        ml.ITML().fit(X[PAIRS], SIGNS, bounds=[1.0, 2.0, 3.0])


def test_pairs_of_equal_samples_are_allowed():
    pairs = np.concatenate([X[PAIRS], X[[[0, 0], [1, 1]]]])
    signs = np.r_[SIGNS, 1, 1]
    for estimator in (ml.ITML(), ml.MMC(), ml.SDML(balance_param=1e-5)):
        expected = clone(estimator).fit(X[PAIRS], SIGNS).get_mahalanobis_matrix()
        found = clone(estimator).fit(pairs, signs).get_mahalanobis_matrix()
        assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    triplets = np.concatenate([X[TRIPLETS], X[[[0, 0, 1], [0, 1, 0], [2, 2, 2]]]])
    assert np.isfinite(ml.SCML(n_basis=40, random_state=0).fit(triplets).components_).all()


def test_nca_and_mlkr_go_down_from_metric_learns_start():
    def nca_loss(L):
        D = ((X @ L.T)[:, None] - (X @ L.T)[None]) ** 2
        P = np.exp(-D.sum(axis=2) + 1e-300)
        np.fill_diagonal(P, 0)
        return -np.sum(P * (Y[:, None] == Y) / P.sum(axis=1, keepdims=True))

    for init in ("identity", "pca", 0.1 * np.eye(2, 4)):
        model = ml.NCA(init, n_components=2, max_iter=30).fit(X, Y)
        assert nca_loss(model.components_) < nca_loss(starting_components(init, 2, X, Y, None))
    start = 0.1 * np.eye(4)
    kept = ml.NCA(init=start).fit(X[Y == 0], Y[Y == 0])  # one class: nothing to learn
    assert_array_equal(kept.components_, start)
    mlkr = ml.MLKR(init=start).fit(X, X[:, 0] ** 2)
    native = vc.MLKR(4, init=start, tol=1e-9, max_iter=1000).fit(X, X[:, 0] ** 2)
    assert_allclose(mlkr.components_, native.components_)


def test_nca_ends_where_its_sum_of_probabilities_settles():
    two, y = X[Y < 2], Y[Y < 2]  # separable: J = n − Σ p falls to zero, and no decrease is small
    steps = [ml.NCA(max_iter=1000, tol=tol).fit(two, y).n_iter_ for tol in (1e-2, 1e-6, None)]
    assert 1 <= steps[0] < steps[1] < steps[2] < 40
    native = vc.NCA(init="identity", max_iter=1000, tol=1e-12).fit(two, y)
    assert native.n_iter_ > 2 * steps[2]
    assert native.history_[steps[2]] < 1e-5


def test_automatic_starts_are_metric_learns():
    start = starting_components
    assert_array_equal(start("auto", 4, X, Y, None), np.eye(4))
    assert_array_equal(start("auto", 2, X, Y, None), start("lda", 2, X, Y, None))
    assert_array_equal(start("auto", 3, X, Y, 0), start("pca", 3, X, Y, 0))
    assert_array_equal(start("auto", 2, X, None, 0), start("pca", 2, X, None, 0))
    assert_array_equal(start("random", 2, X, Y, 3), np.random.RandomState(3).randn(2, 4))
    for init, message in [
        (np.ones((2, 5)), r"\(5\) of the given linear transformation"),
        (np.ones((5, 4)), r"output dimensionality \(5\)"),
        (np.ones((3, 4)), r"`n_components` \(2\) does not"),
        ("lda", "must be 'auto', 'pca', 'identity', 'random' or"),
        (1, "must be 'auto'"),
    ]:
        with pytest.raises(ValueError, match=message):
            start(init, 2, X, None, None)


def test_lmnn_counts_the_pull_where_metric_learn_does():
    native = vc.LMNN(3, push_weight=0.8, init=np.eye(4), n_components=4, max_iter=1000).fit(X, Y)
    model = ml.LMNN(regularization=0.2).fit(X, Y)
    assert_allclose(model.components_, native.components_)
    with pytest.raises(ValueError, match="smallest class has 49"):
        ml.LMNN(n_neighbors=50).fit(X, Y)


def test_mmc_has_metric_learns_scale():
    similar = X[PAIRS[SIGNS > 0]]
    gaps = similar[:, 0] - similar[:, 1]
    for init, A0 in (("identity", np.eye(4)), (np.diag([1.0, 2, 3, 4]),) * 2):
        M = ml.MMC(init=init).fit(X[PAIRS], SIGNS).get_mahalanobis_matrix()
        assert_allclose(np.vdot(gaps @ M, gaps), np.vdot(gaps @ A0, gaps) / 100)
    model = ml.MMC(diagonal=True, diagonal_c=3.0).fit(X[PAIRS], SIGNS)
    # Where s·w − c ln Σ √… is smallest, s·w = c/2.
    assert_allclose((gaps**2).sum(axis=0) @ np.diag(model.A_), 1.5)
    assert_array_equal(model.A_, model.get_mahalanobis_matrix())


def test_sdml_solves_the_problem_in_absolute_parameters():
    model = ml.SDML(balance_param=2e-4, sparsity_param=0.02).fit(X[PAIRS], SIGNS)
    gaps = X[PAIRS[:, 0]] - X[PAIRS[:, 1]]
    K = np.eye(4) + 2e-4 * (gaps.T * SIGNS) @ gaps
    inverse = np.linalg.inv(model.get_mahalanobis_matrix())
    assert_allclose(np.diag(inverse), np.diag(K), rtol=1e-3)
    assert np.abs(inverse - K - np.diag(np.diag(inverse - K))).max() < 0.02 + 1e-3


def test_sdml_without_a_solution_is_a_clear_error():
    with (
        pytest.warns(ConvergenceWarning, match="not positive semi-definite"),
        pytest.raises(RuntimeError, match="no solution(.|\n)*`balance_param`"),
    ):
        ml.SDML(balance_param=100.0).fit(X[PAIRS], SIGNS)
    with pytest.raises(ValueError, match="1 feature"):
        ml.SDML().fit(X[PAIRS][..., :1], SIGNS)


def test_priors_are_checked():
    singular = np.c_[X, X[:, :1] + X[:, 1:2]]
    for estimator in (ml.ITML(prior="covariance"), ml.SDML(prior="covariance")):
        with pytest.raises(np.linalg.LinAlgError, match="strictly positive definite"):
            estimator.fit(singular[PAIRS], SIGNS)
    with pytest.warns(UserWarning, match="pseudo-inverse"):
        ml.MMC(init="covariance").fit(singular[PAIRS], SIGNS)
    with pytest.raises(np.linalg.LinAlgError, match="not definite"):
        ml.ITML(prior=np.diag([1.0, 1, 1, 0])).fit(X[PAIRS], SIGNS)
    with pytest.raises(ml.NonPSDError, match="not positive semidefinite"):
        ml.LSML(prior=np.diag([1.0, 1, 1, -1])).fit(X[QUADRUPLETS])
    for prior, message in [
        (np.eye(3), r"dimensionality \(3, 3\)"),
        (np.triu(np.ones((4, 4))), "not symmetric"),
        (1, "must be 'identity'"),
    ]:
        with pytest.raises(ValueError, match=message):
            ml.ITML(prior=prior).fit(X[PAIRS], SIGNS)
    drawn = [ml.ITML(prior="random", random_state=s, tol=1e3, max_iter=1) for s in (0, 0, 1)]
    first, again, other = (m.fit(X[PAIRS], SIGNS).components_ for m in drawn)
    assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_covariance_prior_is_that_of_the_distinct_samples():
    model = ml.ITML(prior="covariance").fit(X[PAIRS], SIGNS, bounds=(1e9, 1e9))
    rows = X[np.unique(PAIRS[SIGNS < 0])]  # bounds that similar pairs keep: few constraints
    assert len(rows) > 4
    alone = ml.ITML(prior="covariance").fit(X[PAIRS[SIGNS > 0]], SIGNS[SIGNS > 0], (1e9, 1e9))
    expected = np.linalg.inv(np.cov(X[np.unique(PAIRS[SIGNS > 0])].T))
    assert_allclose(alone.get_mahalanobis_matrix(), expected, rtol=1e-6)
    assert model.n_iter_ >= 1
    repeated = starting_metric(
        "covariance", X[[0, 0, 0, *range(len(X))]], None, "init", definite=True
    )
    assert_allclose(repeated, np.linalg.inv(np.cov(np.unique(X, axis=0).T)))


def test_scml_reaches_the_minimum_of_metric_learns_objective():
    model = ml.SCML(n_basis=60, random_state=0).fit(X[TRIPLETS])
    native = vc.SCML(basis="triplets", n_basis=60, rescale=False, max_iter=10000, random_state=0)
    native.fit_triplets(X, TRIPLETS)

    def objective(M):
        i, j, l = X[TRIPLETS].transpose(1, 0, 2)  # noqa: E741
        near, far = (np.einsum("td,td->t", v @ M, v) for v in (i - j, i - l))
        return np.maximum(1 + near - far, 0).mean()

    found, expected = (objective(m.get_mahalanobis_matrix()) for m in (model, native))
    assert abs(found - expected) < 1e-2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 1.0}, "max_iter should be an integer"),
        ({"batch_size": 2.0}, "batch_size should be"),
        ({"max_iter": 2, "output_iter": 3}, "equal or smaller than max_iter"),
        ({"n_basis": 4.0}, "n_basis should be"),
        ({"basis": "best"}, "must be one of the options 'triplet_diffs'"),
        ({"basis": np.eye(3)}, r"dimensionality \(3\) of the provided bases"),
    ],
)
def test_wrong_scml_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        ml.SCML(**parameters).fit(X[TRIPLETS])
    with pytest.raises(ValueError, match=message):
        ml.SCML_Supervised(**parameters).fit(X, Y)


def test_scml_bases_have_metric_learns_defaults():
    with pytest.warns(UserWarning, match="n_basis= 320"):
        ml.SCML(max_iter=500, random_state=0).fit(X[TRIPLETS])
    with pytest.warns(UserWarning, match="n_basis= 80"):
        ml.SCML_Supervised(max_iter=500, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"number of triplets\(2\)"):
        ml.SCML(n_basis=9).fit(X[TRIPLETS[:2]])
    with pytest.raises(ValueError, match="Not enough samples to generate 596"):
        ml.SCML_Supervised(n_basis=596).fit(X, Y)
    with pytest.warns(UserWarning, match="less than the number of classes"):
        ml.SCML_Supervised(n_basis=2, random_state=0).fit(X, Y)
    given = ml.SCML(basis=np.eye(4)[:2]).fit(X[TRIPLETS])
    assert len(given.components_) <= 2


def test_rca_says_where_it_had_to_help():
    dependent = np.c_[X[:, :3], X[:, 0] + X[:, 1]]
    with pytest.warns(UserWarning, match="inner covariance matrix is not invertible"):
        model = ml.RCA().fit(dependent, Y)
    assert np.isfinite(model.components_).all()
    with pytest.warns(UserWarning, match="invertible") as caught:
        ml.RCA_Supervised(n_chunks=2, random_state=0).fit(X, Y)
    assert "Increase the number or size of the chunks" in str(caught[0].message)


def test_lfda_takes_no_more_neighbors_than_features():
    with pytest.warns(UserWarning, match="using 3 instead"):
        model = ml.LFDA(k=9).fit(X, Y)
    assert_allclose(model.components_, vc.LFDA(n_neighbors=3).fit(X, Y).components_)
    with pytest.raises(ValueError, match="Invalid embedding_type"):
        ml.LFDA(embedding_type="best").fit(X, Y)


@pytest.mark.parametrize("estimator", OF_LABELS[6:], ids=name_of)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_unknown_labels_are_left_out(estimator):
    rows = np.concatenate([X, X[:20] + 100.0])
    labels = np.r_[Y, np.full(20, -1)]
    known = seeded(estimator).fit(X, Y)
    some = seeded(estimator).fit(rows, labels)
    if isinstance(estimator, ml.RCA_Supervised):
        assert_array_equal(known.components_, some.components_)
    near = np.linalg.norm(some.components_, axis=1).max()
    assert near < 10 * np.linalg.norm(known.components_, axis=1).max()
    assert near > 0.1 * np.linalg.norm(known.components_, axis=1).max()


# ------------------------------------------------------------------- constraints and old arguments


def test_constraints_are_pairs_of_known_labels():
    labels = np.r_[Y, -1, -1]
    a, b, c, d = ml.Constraints(labels).positive_negative_pairs(40, random_state=0)
    assert len(a) == len(b) == len(c) == len(d) == 40
    assert_array_equal(labels[a], labels[b])
    assert (labels[c] != labels[d]).all()
    assert (a != b).all()
    assert labels[np.r_[a, b, c, d]].min() == 0
    again = ml.Constraints(labels).positive_negative_pairs(40, random_state=0)
    assert_array_equal(again, [a, b, c, d])
    assert not (np.diff(a) >= 0).all()  # in random order
    few = ml.Constraints([0, 0, 1])
    with pytest.warns(UserWarning, match="Only generated") as caught:
        a, b, c, d = few.positive_negative_pairs(5)
    assert [str(each.message) for each in caught] == [
        "Only generated 1 positive constraints (requested 5)",
        "Only generated 2 negative constraints (requested 5)",
    ]
    assert (len(a), len(c)) == (1, 2)
    with pytest.warns(UserWarning, match="Only generated"):
        a, b, c, d = few.positive_negative_pairs(5, same_length=True)
    assert len(a) == len(c) == 1
    tuples, signs = ml.constraints.wrap_pairs(X, ([0, 1], [1, 2], [3], [4]))
    assert_array_equal(tuples, X[[[0, 1], [1, 2], [3, 4]]])
    assert_array_equal(signs, [1, 1, -1])


def test_knn_triplets_and_chunks():
    points = np.array([[0.0], [1.0], [2.5], [10.0], [11.0], [12.5], [99.0]])
    labels = np.array([0, 0, 0, 1, 1, 1, -1])
    found = ml.Constraints(labels).generate_knntriplets(points, 1, 2)
    assert sorted(map(tuple, found)) == [
        (0, 1, 3), (0, 1, 4), (1, 0, 3), (1, 0, 4), (2, 1, 3), (2, 1, 4),
        (3, 4, 1), (3, 4, 2), (4, 3, 1), (4, 3, 2), (5, 4, 1), (5, 4, 2),
    ]  # fmt: skip
    with pytest.warns(UserWarning, match="elements") as caught:
        all_of_them = ml.Constraints(labels).generate_knntriplets(points, 3, 4)
    assert len(all_of_them) == 6 * 2 * 3
    assert "The class 0 has 3 elements, which is not sufficient to generate 4 genuine" in str(
        caught[0].message
    )
    assert "3 elements of other classes" in str(caught[1].message)
    chunks = ml.Constraints(labels).chunks(2, 3, random_state=0)
    assert sorted(chunks[:6]) == [0, 0, 0, 1, 1, 1]
    assert chunks[6] == -1
    with pytest.raises(ValueError, match="maximum number of chunks is 2"):
        ml.Constraints(labels).chunks(3, 3)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ml.ITML(convergence_threshold=0.5), "tol"),
        (lambda: ml.MMC(convergence_threshold=0.5), "tol"),
        (lambda: ml.ITML_Supervised(num_constraints=0.5), "n_constraints"),
        (lambda: ml.MMC_Supervised(num_constraints=0.5), "n_constraints"),
        (lambda: ml.LSML_Supervised(num_constraints=0.5), "n_constraints"),
        (lambda: ml.SDML_Supervised(num_constraints=0.5), "n_constraints"),
        (lambda: ml.RCA_Supervised(num_chunks=0.5), "n_chunks"),
        (lambda: ml.LMNN(k=0.5), "n_neighbors"),
    ],
)
def test_old_arguments_warn_and_count(make, name):
    with pytest.warns(FutureWarning, match=f'renamed to "{name}"'):
        estimator = make()
    assert estimator.get_params()[name] == 0.5
    assert clone(estimator).get_params() == estimator.get_params()


def test_old_arguments_of_constraints():
    constraints = ml.Constraints(Y)
    with pytest.warns(FutureWarning, match="n_constraints"):
        found = constraints.positive_negative_pairs(1, random_state=0, num_constraints=7)
    assert len(found[0]) == 7
    with pytest.warns(FutureWarning, match="n_chunks"):
        assert constraints.chunks(num_chunks=5).max() == 4


def test_verbose_prints_and_silence_does_not(capsys):
    for estimator in (ml.NCA(max_iter=3), ml.MLKR(max_iter=3), ml.LMNN(max_iter=3), ml.SDML()):
        estimator = estimator.set_params(verbose=False)
        arguments = (X[PAIRS], SIGNS) if isinstance(estimator, ml.SDML) else (X, Y)
        if isinstance(estimator, ml.SDML):
            estimator.set_params(balance_param=1e-5)
        estimator.fit(*arguments)
        assert capsys.readouterr().out == ""
        estimator.set_params(verbose=True).fit(*arguments)
        printed = capsys.readouterr().out
        expected = {
            "NCA": "Objective Value",
            "MLKR": "Training took",
            "LMNN": "objective difference",
            "SDML": "scikit-learn's graphical lasso solver",
        }
        assert expected[name_of(estimator)] in printed


def test_what_did_not_converge_is_named():
    with pytest.warns(ConvergenceWarning, match=r"\[NCA\] NCA did not converge"):
        ml.NCA(max_iter=1).fit(X, Y)
