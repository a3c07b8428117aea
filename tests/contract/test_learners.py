"""Every learner through the same properties."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal as vc
from vicinal.exceptions import ConvergenceWarning, ExcludedRowsWarning, SaturatedStartWarning
from vicinal.learners.parameters import InvalidParameter

LEARNERS = {
    "ANN+": vc.ANN(1.0, max_iter=20),
    "ANN-": vc.ANN(-1.0, max_iter=20),
    "ANN logistic": vc.ANN(loss="logistic", max_iter=20),
    "ANN pgd": vc.ANN(-1.0, solver="pgd", max_iter=20),
    "ANN apg": vc.ANN(-1.0, solver="apg", max_iter=20),
    "ANN sgd": vc.ANN(solver="sgd", max_iter=5, random_state=0),
    "PNCA": vc.PNCA(2.0, max_iter=20),
    "NCA": vc.NCA(max_iter=20),
}
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@pytest.fixture(params=LEARNERS)
def learner(request):
    return clone(LEARNERS[request.param])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([vc.ANN(), vc.ANN(-1.0), vc.PNCA(), vc.NCA()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_evidence_of_the_run(learner, iris):
    learner.fit(*iris)
    assert learner.components_.shape == (4, 4)
    assert np.isfinite(learner.components_).all()
    assert learner.history_[0] >= learner.objective_
    assert learner.objective_ == learner.history_.min()
    assert 0 < learner.n_iter_ <= learner.max_iter
    assert learner.converged_ == (learner.stop_reason_ in ("gradient", "decrease", "step"))
    assert learner.n_excluded_ == 0
    np.testing.assert_array_equal(learner.classes_, [0, 1, 2])


def test_the_metric_is_one(learner, iris):
    """Matrix, function, pair distance and embedding are the same distance."""
    X, y = iris
    learner.fit(X, y)
    M = learner.get_mahalanobis_matrix()
    eigenvalues = np.linalg.eigvalsh(M)
    assert eigenvalues.min() >= -1e-9 * eigenvalues.max()
    difference = X[0] - X[99]
    expected = np.sqrt(difference @ M @ difference)
    Z = learner.transform(X)
    pair = np.stack([X[0], X[99]])[None]
    assert learner.get_metric()(X[0], X[99]) == pytest.approx(expected)
    assert learner.get_metric()(X[0], X[99], squared=True) == pytest.approx(expected**2)
    assert learner.pair_distance(pair)[0] == pytest.approx(expected)
    assert learner.pair_score(pair)[0] == pytest.approx(-expected)
    assert np.linalg.norm(Z[0] - Z[99]) == pytest.approx(expected)


def test_same_seed_same_result(learner, iris):
    first = clone(learner).fit(*iris).components_
    np.testing.assert_array_equal(first, learner.fit(*iris).components_)


def test_pickling_and_cloning(learner, iris):
    learner.fit(*iris)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.transform(iris[0]), learner.transform(iris[0]))
    assert not hasattr(clone(learner), "components_")


def test_float32_stays_float32(learner, iris):
    X, y = iris
    narrow = clone(learner).fit(X.astype(np.float32), y)
    assert narrow.components_.dtype == np.float32
    assert narrow.transform(X.astype(np.float32)).dtype == np.float32
    wide = learner.fit(X, y)
    assert narrow.objective_ <= 1.5 * wide.objective_ + 3.0


def test_translation_changes_nothing(learner, iris):
    X, y = iris
    M = clone(learner).fit(X, y).get_mahalanobis_matrix()
    shifted = clone(learner).fit(X + 8.0, y).get_mahalanobis_matrix()
    if learner.solver != "sgd" and learner.max_iter <= 20 and not _has_kinks(learner):
        np.testing.assert_allclose(shifted, M, rtol=1e-5, atol=1e-6 * np.abs(M).max())
    else:
        assert np.isfinite(shifted).all()


def _has_kinks(learner):
    """Hinge iterations amplify rounding: the same path is not to be expected."""
    return getattr(learner, "loss", None) == "hinge"


def test_labels_may_be_renamed_and_of_any_type(learner, iris):
    X, y = iris
    M = clone(learner).fit(X, y).get_mahalanobis_matrix()
    for names in (np.array(["a", "b", "c"]), np.array([10, 20, 30]), np.array([-1.0, 0.0, 1.0])):
        renamed = clone(learner).fit(X, names[y])
        np.testing.assert_array_equal(renamed.classes_, names)
        np.testing.assert_allclose(renamed.get_mahalanobis_matrix(), M)
    boolean = clone(learner).fit(X, y == 0)
    np.testing.assert_array_equal(boolean.classes_, [False, True])


def test_order_of_rows_does_not_matter_for_smooth_deterministic_solvers(iris):
    X, y = iris
    order = np.random.RandomState(0).permutation(len(X))
    for learner in (vc.NCA(max_iter=10), vc.ANN(loss="logistic", max_iter=10)):
        M = clone(learner).fit(X, y).get_mahalanobis_matrix()
        shuffled = clone(learner).fit(X[order], y[order]).get_mahalanobis_matrix()
        np.testing.assert_allclose(shuffled, M, rtol=1e-7)


def test_rotation_rotates_the_metric(iris):
    X, y = iris
    Q = np.linalg.qr(np.random.RandomState(0).standard_normal((4, 4)))[0]
    for learner in (vc.NCA(max_iter=8), vc.ANN(-1.0, solver="pgd", max_iter=8)):
        M = clone(learner).fit(X, y).get_mahalanobis_matrix()
        rotated = clone(learner).fit(X @ Q, y).get_mahalanobis_matrix()
        np.testing.assert_allclose(rotated, Q.T @ M @ Q, rtol=1e-5, atol=1e-7 * np.abs(M).max())


@pytest.mark.parametrize("units", [1e-12, 1e-3, 1e12])
def test_units_do_not_matter(iris, units):
    X, y = iris
    Z = vc.NCA(max_iter=10).fit(X, y).transform(X)
    scaled = vc.NCA(max_iter=10).fit(X * units, y).transform(X * units)
    np.testing.assert_allclose(scaled, Z, rtol=1e-5, atol=1e-6 * np.abs(Z).max())


def test_pipeline_and_grid_search(iris):
    X, y = iris
    model = make_pipeline(StandardScaler(), vc.ANN(max_iter=10), KNeighborsClassifier())
    search = GridSearchCV(model, {"ann__alpha": [-1.0, 1.0], "ann__n_components": [1, 2]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.9


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_frames(learner, iris, frame):
    library = pytest.importorskip(frame)
    X, y = iris
    table = library.DataFrame(X, columns=None) if frame == "pandas" else library.DataFrame(X)
    table.columns = ["a", "b", "c", "d"]
    out = learner.set_output(transform=frame).fit(table, y).transform(table)
    assert isinstance(out, library.DataFrame)
    name = type(learner).__name__.lower()
    assert list(out.columns) == [f"{name}{i}" for i in range(4)]
    if frame == "pandas":  # scikit-learn 1.6 does not read the names of polars frames
        np.testing.assert_array_equal(learner.feature_names_in_, ["a", "b", "c", "d"])


def test_fewer_components(iris):
    X, y = iris
    for m in (1, 2, 3):
        nca = vc.NCA(n_components=m, max_iter=20).fit(X, y)
        assert nca.components_.shape == (m, 4)
        assert np.linalg.matrix_rank(nca.get_mahalanobis_matrix()) == m


@pytest.mark.parametrize("init", ["auto", "identity", "pca", "lda", "random", "paper"])
@pytest.mark.parametrize("n_components", [None, 2])
def test_every_start_descends(iris, init, n_components):
    nca = vc.NCA(init=init, n_components=n_components, max_iter=15, random_state=0).fit(*iris)
    assert nca.objective_ < 0.8 * nca.history_[0]


def test_a_given_start_is_used(iris):
    X, y = iris
    L = np.diag([1.0, 2.0, 0.5, 1.5])
    nca = vc.NCA(init=L, max_iter=1).fit(X, y)
    D = ((X[:, None] - X[None]) ** 2 @ (L.T @ L).diagonal()).astype(float)
    np.fill_diagonal(D, np.inf)
    P = np.exp(-D)
    p = (P * (y[:, None] == y)).sum(axis=1) / P.sum(axis=1)
    assert nca.history_[0] == pytest.approx((1 - p).sum())


def test_warm_start_goes_on(iris):
    nca = vc.NCA(max_iter=5, warm_start=True).fit(*iris)
    reached = nca.objective_
    nca.fit(*iris)
    assert nca.history_[0] == pytest.approx(reached, rel=1e-8)
    assert nca.objective_ < reached


def test_callback_sees_everything_and_can_stop(learner, iris):
    seen = []

    def callback(progress):
        seen.append((progress.n_iter, progress.objective, progress.components.copy()))
        return progress.n_iter >= 3

    learner.set_params(callback=callback).fit(*iris)
    assert [n for n, *_ in seen] == [1, 2, 3]
    assert learner.stop_reason_ == "callback"
    assert learner.n_iter_ == 3
    if learner.solver in ("auto", "pgd"):
        M = seen[-1][2].T @ seen[-1][2]
        np.testing.assert_allclose(learner.get_mahalanobis_matrix(), M, atol=1e-9)


def test_an_interrupt_keeps_what_was_learned(learner, iris):
    def interrupt(progress):
        if progress.n_iter == 2:
            raise KeyboardInterrupt

    learner.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="kept"):
        learner.fit(*iris)
    assert learner.stop_reason_ == "interrupted"
    assert learner.objective_ <= learner.history_[0]
    assert learner.transform(iris[0]).shape == (150, 4)


def test_verbosity_goes_to_the_log(iris, caplog):
    with caplog.at_level("INFO", logger="vicinal"):
        vc.NCA(max_iter=3, verbose=2).fit(*iris)
    assert caplog.records[0].getMessage() == "NCA uses solver lbfgs"
    assert [r.getMessage().split(":")[0] for r in caplog.records if "iteration" in r.message] == [
        f"NCA iteration {i}" for i in (1, 2, 3)
    ]


def test_sample_weight_weighs_the_losses(iris):
    X, y = iris
    start = {"max_iter": 1, "init": "identity"}
    base = vc.NCA(**start).fit(X, y).history_[0]
    twice = vc.NCA(**start).fit(X, y, sample_weight=np.full(150, 2.0)).history_[0]
    assert twice == pytest.approx(2 * base)
    parts = [
        vc.NCA(**start).fit(X, y, sample_weight=(y == c).astype(float)).history_[0]
        for c in range(3)
    ]
    assert sum(parts) == pytest.approx(base)


def test_class_weight(iris):
    X, y = iris
    X, y = X[:120], y[:120]
    start = {"max_iter": 1, "init": "identity"}
    balanced = vc.NCA(class_weight="balanced", **start).fit(X, y)
    by_hand = vc.NCA(**start).fit(X, y, sample_weight=(120 / 3) / np.bincount(y)[y])
    assert balanced.history_[0] == pytest.approx(by_hand.history_[0])
    as_dict = vc.NCA(class_weight={0: 2.0, 1: 1.0, 2: 0.0}, **start).fit(X, y)
    weights = np.array([2.0, 1.0, 0.0])[y]
    by_hand = vc.NCA(**start).fit(X, y, sample_weight=weights)
    assert as_dict.history_[0] == pytest.approx(by_hand.history_[0])


@pytest.mark.parametrize(
    "class_weight", [[], "even", 2.0, {0: np.nan}, {0: -1.0}, {0: np.inf}, {0: "2"}]
)
def test_class_weights_that_are_not_possible(iris, class_weight):
    with pytest.raises(InvalidParameter, match="class_weight"):
        vc.NCA(class_weight=class_weight).fit(*iris)


@pytest.mark.parametrize("name", ["alpha", "gamma"])
def test_exponents_that_no_float_can_hold(iris, name):
    with pytest.raises(ValueError, match=f"{name} is too large"):
        vc.ANN(**{name: 10**400}).fit(*iris)


def test_groups_are_never_neighbors():
    """Every subject measured twice: with groups, the twin says nothing; without, it says all."""
    rng = np.random.RandomState(0)
    X = np.repeat(rng.standard_normal((40, 3)), 2, axis=0)
    y = np.repeat(rng.randint(2, size=40), 2)
    start = {"max_iter": 1, "init": 30 * np.eye(3)}
    leaking = vc.NCA(**start).fit(X, y).history_[0]
    honest = vc.NCA(**start).fit(X, y, groups=np.repeat(np.arange(40), 2)).history_[0]
    assert leaking < 1
    assert honest > 20
    named = vc.NCA(**start).fit(X, y, groups=[f"s{i // 2}" for i in range(80)])
    assert named.history_[0] == pytest.approx(honest)


def test_refreshed_neighbors(iris):
    fixed = vc.ANN(-1.0, similar=3, max_iter=30).fit(*iris)
    fresh = vc.ANN(-1.0, similar=3, max_iter=30, refresh_every=5).fit(*iris)
    assert fresh.n_iter_ <= 30
    assert len(fresh.history_) >= 2
    assert not np.allclose(fresh.components_, fixed.components_)


def test_given_neighbors(iris):
    X, y = iris
    similar = [np.flatnonzero((y == y[i]) & (np.arange(150) != i)) for i in range(150)]
    dissimilar = [np.flatnonzero(y != y[i]) for i in range(150)]
    listed = vc.ANN(similar=similar, dissimilar=dissimilar, max_iter=1).fit(X, y)
    complete = vc.ANN(max_iter=1).fit(X, y)
    assert listed.history_[0] == pytest.approx(complete.history_[0])


def test_own_loss(iris):
    pair = (lambda z: np.logaddexp(0, z), lambda z: 1 / (1 + np.exp(-z)))
    own = vc.ANN(loss=pair, max_iter=5).fit(*iris)
    named = vc.ANN(loss="logistic", max_iter=5).fit(*iris)
    np.testing.assert_allclose(own.components_, named.components_, rtol=1e-8)


def test_backends_agree(iris):
    for learner in (vc.NCA(max_iter=10), vc.ANN(-0.5, loss="logistic", max_iter=10)):
        numpy, numba = (
            clone(learner).set_params(backend=backend).fit(*iris) for backend in ("numpy", "numba")
        )
        np.testing.assert_allclose(numpy.history_, numba.history_, rtol=1e-7)


def test_solver_auto_says_what_it_chose(iris, monkeypatch):
    assert vc.ANN(max_iter=2).fit(*iris).solver_ == "lbfgs"
    monkeypatch.setattr("vicinal.learners.neighbor_fit.MAX_EXACT_PAIRS", 100)
    assert vc.ANN(max_iter=2).fit(*iris).solver_ == "sgd"


def test_references_may_be_a_sample():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    nca = vc.NCA(solver="sgd", n_references=60, batch_size=32, max_iter=15, random_state=0)
    Z = nca.fit(X, y).transform(X)
    assert KNeighborsClassifier(1).fit(Z[::2], y[::2]).score(Z[1::2], y[1::2]) > 0.9


def test_a_lucky_draw_at_the_start_does_not_end_a_stochastic_run():
    """The start is judged by the same kind of estimate as the epochs are."""
    rng = np.random.RandomState(0)
    y = np.arange(3000) % 3
    X = rng.standard_normal((3000, 4)) + 2.0 * np.eye(3, 4)[y]
    for seed in range(3):
        ann = vc.ANN(-1.0, solver="sgd", n_references=64, batch_size=64, random_state=seed)
        ann.set_params(max_iter=5).fit(X, y)
        start = vc.ANN(-1.0, max_iter=1).fit(X, y).history_[0]
        end = vc.ANN(-1.0, max_iter=1, init=ann.components_).fit(X, y).history_[0]
        assert end < 0.7 * start


def test_short_legs_of_refreshing_end(iris):
    ann = vc.ANN(-1.0, solver="pgd", refresh_every=5, max_iter=3000, tol=1e-3).fit(*iris)
    assert ann.n_iter_ < 3000
    assert ann.converged_


def test_warnings_that_are_due(iris):
    X, y = iris
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        vc.NCA(max_iter=1).fit(X, y)
    with pytest.warns(SaturatedStartWarning, match="flat at the start"):
        vc.NCA(init=1e4 * np.eye(4)).fit(X, y)
    lonely = y.copy()
    lonely[0] = 7
    with pytest.warns(ExcludedRowsWarning, match="1 of 150"):
        assert vc.NCA(max_iter=50).fit(X, lonely).n_excluded_ == 1


BAD = {
    "n_components": [0, 5, 1.5, "two"],
    "init": ["nca", None, np.eye(3), np.full((4, 4), np.nan)],
    "perplexity": [1.0, -3, "many"],
    "solver": ["newton", None],
    "max_iter": [0, 2.5],
    "tol": [-1.0, "small"],
    "backend": ["cuda0", None],
    "callback": [3],
    "batch_size": [0],
    "n_references": [1, "some"],
    "alpha": [np.nan, "one"],
    "gamma": [0.0, -1.0, np.inf, np.nan],
    "loss": ["hing", 3, (abs,)],
    "similar": ["some", 0, None, 2.5],
    "dissimilar": ["none", -1],
    "regularization": [-1.0, "much", np.inf, np.nan],
    "refresh_every": [0],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in BAD.items() for v in vs])
def test_bad_parameters_are_named(iris, name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        vc.ANN(**{name: value}).fit(*iris)


def test_impossible_combinations_name_the_way_out(iris):
    with pytest.raises(ValueError, match="lbfgs"):
        vc.ANN(solver="pgd", n_components=2).fit(*iris)
    with pytest.raises(ValueError, match="alpha=0"):
        vc.ANN(alpha=0.0, plain=True).fit(*iris)
    with pytest.raises(TypeError, match="sample_weight and groups"):
        vc.ANN().fit(*iris, weights=np.ones(150))


def test_bad_weights_and_groups(iris):
    X, y = iris
    for weight in (-np.ones(150), np.zeros(150), np.ones(10), np.full(150, np.nan)):
        with pytest.raises(ValueError, match="sample_weight|NaN"):
            vc.NCA().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="inconsistent|groups"):
        vc.NCA().fit(X, y, groups=np.zeros(10))
    with pytest.raises(ValueError, match="groups"):
        vc.NCA().fit(X, y, groups=np.zeros((150, 2)))
    lonely = y.copy()
    lonely[0] = 7
    with pytest.raises(ValueError, match="weight 0"):
        vc.NCA().fit(X, lonely, sample_weight=(lonely == 7).astype(float))


def test_pairs_of_the_wrong_shape(iris):
    nca = vc.NCA(max_iter=2).fit(*iris)
    with pytest.raises(ValueError, match=r"\(n_pairs, 2, 4\)"):
        nca.pair_distance(np.zeros((3, 2, 5)))


def test_verification_of_pairs(iris):
    X, y = iris
    nca = vc.NCA(max_iter=20).fit(X, y)
    rng = np.random.RandomState(0)
    i, j = rng.randint(150, size=(2, 400))
    pairs, same = np.stack([X[i], X[j]], axis=1), y[i] == y[j]
    with pytest.raises(ValueError, match="calibrate_threshold"):
        nca.predict_pairs(pairs)
    predicted = nca.calibrate_threshold(pairs, same).predict_pairs(pairs)
    accuracies = [
        (nca.set_threshold(d).predict_pairs(pairs) == same).mean() for d in nca.pair_distance(pairs)
    ]
    assert (predicted == same).mean() == pytest.approx(max(accuracies))
    nca.calibrate_threshold(pairs, same, strategy="max_tpr", min_rate=0.99)
    wrong = nca.predict_pairs(pairs)[~same].mean()
    assert wrong <= 0.01
