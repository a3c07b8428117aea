"""What every metric learner has in common, whatever its method (G1 to G9)."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

import vicinal as vc

LEARNERS = {
    "ANN": vc.ANN(loss="logistic", max_iter=15),
    "PNCA": vc.PNCA(max_iter=15),
    "NCA": vc.NCA(max_iter=15),
    "LMNN": vc.LMNN(max_iter=30),
    "ITML": vc.ITML(random_state=0),
    "LDML": vc.LDML(max_iter=30),
    "SCML": vc.SCML(random_state=0),
    "RVML": vc.RVML(),
    "GMML": vc.GMML(random_state=0),
    "BoostMetric": vc.BoostMetric(max_iter=20),
    "MCML": vc.MCML(max_iter=30),
    "LFDA": vc.LFDA(),
    "MMC": vc.MMC(random_state=0),
    "LSML": vc.LSML(random_state=0),
    "SDML": vc.SDML(sparsity=0.0),
    "RCA": vc.RCA(),
}
pytestmark = pytest.mark.filterwarnings("ignore")


def toy():
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    centers = np.array([[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1]])
    return rng.standard_normal((60, 4)) + centers[y], y


@pytest.fixture(params=LEARNERS)
def learner(request):
    return clone(LEARNERS[request.param])


def fit(learner, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(learner).fit(X, y)


def test_g1_the_matrix_is_a_metric(learner):
    M = fit(learner, *toy()).get_mahalanobis_matrix()
    eigenvalues = np.linalg.eigvalsh(M)
    np.testing.assert_allclose(M, M.T)
    assert eigenvalues.max() > 0
    assert eigenvalues.min() >= -1e-9 * eigenvalues.max()


def test_g2_deterministic(learner):
    first, second = (fit(learner, *toy()).components_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


# ITML, LSML and SCML draw pairs and centers by row: another order is another draw.
UNSEEDED = [name for name in LEARNERS if name not in ("ITML", "LSML", "SCML")]


@pytest.mark.parametrize("name", UNSEEDED)
def test_g3_order_of_rows_does_not_matter(name):
    X, y = toy()
    order = np.random.RandomState(3).permutation(60)
    M = fit(LEARNERS[name], X, y).get_mahalanobis_matrix()
    shuffled = fit(LEARNERS[name], X[order], y[order]).get_mahalanobis_matrix()
    np.testing.assert_allclose(shuffled, M, rtol=1e-6, atol=1e-8 * np.abs(M).max())


@pytest.mark.parametrize("name", UNSEEDED)
def test_g6_rotation_rotates_the_metric(name):
    X, y = toy()
    Q = np.linalg.qr(np.random.RandomState(4).standard_normal((4, 4)))[0]
    M = fit(LEARNERS[name], X, y).get_mahalanobis_matrix()
    rotated = fit(LEARNERS[name], X @ Q, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(rotated, Q.T @ M @ Q, rtol=1e-5, atol=1e-6 * np.abs(M).max())


def test_g4_names_of_classes_do_not_matter(learner):
    X, y = toy()
    M = fit(learner, X, y).get_mahalanobis_matrix()
    renamed = fit(learner, X, np.array(["p", "q", "r"])[y])
    np.testing.assert_allclose(renamed.get_mahalanobis_matrix(), M)
    np.testing.assert_array_equal(renamed.classes_, ["p", "q", "r"])


def test_g5_translation(learner):
    X, y = toy()
    Z, moved = (fit(learner, X + shift, y).transform(X) for shift in (0.0, 4.0))
    D, shifted = (np.linalg.norm(z[:20, None] - z[None, :20], axis=2) for z in (Z, moved))
    np.testing.assert_allclose(shifted, D, rtol=2e-3, atol=2e-3 * D.max())


def test_g7_neighbors_through_the_factor_are_those_of_the_matrix(learner):
    X, y = toy()
    fitted = fit(learner, X, y)
    M = fitted.get_mahalanobis_matrix()
    Z = fitted.transform(X)
    i, j = np.triu_indices(60, 1)
    direct = np.einsum("pi,ij,pj->p", X[i] - X[j], M, X[i] - X[j])
    embedded = ((Z[i] - Z[j]) ** 2).sum(axis=1)
    np.testing.assert_allclose(embedded, direct, rtol=1e-8, atol=1e-9 * direct.max())


HARD = {
    "duplicated column": lambda X, y: (np.c_[X, X[:, 0]], y),
    "constant column": lambda X, y: (np.c_[X, np.ones(len(X))], y),
    "fewer rows than columns": lambda X, y: (np.tile(X[:9], 4), y[:9]),
    "duplicated rows": lambda X, y: (np.repeat(X[:30], 2, axis=0), np.repeat(y[:30], 2)),
    "duplicates across classes": lambda X, y: (np.repeat(X[:30], 2, axis=0), y),
    "a one-sample class": lambda X, y: (X, np.r_[9, y[1:]]),
    "tiny": lambda X, y: (1e-6 * X, y),
    "huge": lambda X, y: (1e6 * X, y),
}


@pytest.mark.parametrize("case", HARD)
def test_g8_degenerate_data_give_no_nan(learner, case):
    X, y = HARD[case](*toy())
    assert np.isfinite(fit(learner, X, y).components_).all()


def test_g9_noise_is_learned_away(learner):
    """Six columns of loud noise: 3-NN, leave-one-out, must do better than with Euclid's 0.60."""
    X, y = toy()
    X = np.c_[X, 5 * np.random.RandomState(7).standard_normal((60, 6))]

    def error(Z):
        D = np.linalg.norm(Z[:, None] - Z[None], axis=2)
        np.fill_diagonal(D, np.inf)
        votes = y[np.argsort(D, axis=1, kind="stable")[:, :3]]
        return np.mean([np.bincount(v).argmax() for v in votes] != y)

    assert error(fit(learner, X, y).transform(X)) < error(X)


def test_one_class_is_refused(learner):
    X, _ = toy()
    with pytest.raises(ValueError, match="1 class"):
        clone(learner).fit(X, np.zeros(60))


def test_evidence_float32_and_pickling(learner):
    X, y = toy()
    fitted = fit(learner, X.astype(np.float32), y)
    assert fitted.components_.dtype == np.float32
    assert isinstance(fitted.converged_, bool)
    assert isinstance(fitted.stop_reason_, str)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_it_helps_a_neighbor_model(learner):
    X, y = toy()
    Z = fit(learner, X[::2], y[::2]).transform(X)
    assert KNeighborsClassifier(3).fit(Z[::2], y[::2]).score(Z[1::2], y[1::2]) > 0.5
