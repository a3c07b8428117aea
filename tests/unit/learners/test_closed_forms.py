"""Covariance, RCA and LFDA: their formulas by naive loops, hard data, scikit-learn's checks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.covariance import EmpiricalCovariance
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import check_estimator

import vicinal as vc
from vicinal.learners.lfda import local_scatters
from vicinal.supervision import chunks_from_labels

X, Y = load_wine(return_X_y=True)
X = scale(X)


@pytest.mark.parametrize(
    "learner", [vc.Covariance(), vc.RCA(), vc.LFDA(), vc.LFDA(embedding="plain")]
)
def test_scikit_learn_accepts_it(learner):
    check_estimator(learner, on_skip=None)


def test_covariance_is_mahalanobis():
    learner = vc.Covariance().fit(X)
    expected = EmpiricalCovariance().fit(X).mahalanobis(X) * (len(X) - 1) / len(X)
    assert_allclose(((learner.transform(X - X.mean(axis=0))) ** 2).sum(axis=1), expected)
    assert learner.stop_reason_ == "closed form"
    assert not hasattr(learner, "classes_")


def test_covariance_of_rank_two_is_a_pseudo_inverse():
    wide = np.c_[X[:, :2], X[:, :2] @ [[1.0, 2.0], [3.0, -1.0]]]
    M = vc.Covariance().fit(wide).get_mahalanobis_matrix()
    assert_allclose(M, np.linalg.pinv(np.cov(wide.T)), atol=1e-10)


def test_covariance_of_few_components_is_whitened_pca():
    Z, expected = vc.Covariance(3).fit_transform(X), PCA(3, whiten=True).fit_transform(X)
    assert_allclose(np.abs(Z - Z.mean(axis=0)), np.abs(expected), atol=1e-10)


def naive_within(X, chunks):
    kept = np.unique(chunks[chunks >= 0])
    total = sum(np.cov(X[chunks == c].T, bias=True) * (chunks == c).sum() for c in kept)
    return total / (chunks >= 0).sum()


@pytest.mark.parametrize("chunks", [Y, chunks_from_labels(Y, 60, random_state=0)])
def test_rca_whitens_the_chunks(chunks):
    learner = vc.RCA().fit_chunks(X, chunks)
    within = naive_within(X, chunks)
    assert_allclose(learner.get_mahalanobis_matrix(), np.linalg.inv(within), rtol=1e-8, atol=1e-9)
    assert not learner.regularized_
    few = vc.RCA(3).fit_chunks(X, chunks)
    assert_allclose(few.components_ @ within @ few.components_.T, np.eye(3), atol=1e-10)
    spread = few.transform(X[chunks >= 0]).var(axis=0)
    assert np.all(np.diff(spread) < 1e-9)  # three classes differ in two directions: ties at 1
    rest = learner.components_[3:]
    assert spread.min() > (X[chunks >= 0] @ rest.T).var(axis=0).max() - 1e-9


def test_rca_of_labels_takes_classes_as_chunks():
    labeled = vc.RCA().fit(X, Y)
    assert_allclose(labeled.components_, vc.RCA().fit_chunks(X, Y + 5).components_)
    assert_allclose(labeled.classes_, [0, 1, 2])


def test_rca_of_too_few_chunks_is_finite_and_says_so():
    chunks = chunks_from_labels(Y, 3, random_state=0)
    learner = vc.RCA().fit_chunks(X, chunks)
    assert learner.regularized_
    assert np.isfinite(learner.components_).all()
    with pytest.raises(ValueError, match="raise ridge"):
        vc.RCA(ridge=0.0).fit_chunks(X, chunks)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (np.zeros(5), "5 entries for 178"),
        (np.full(178, 0.5), "integers"),
        (np.arange(178), "no two samples"),
        (np.full(178, -1), "no two samples"),
    ],
)
def test_wrong_chunks_are_named(chunks, message):
    with pytest.raises(ValueError, match=message):
        vc.RCA().fit_chunks(X, chunks)


def naive_scatters(X, y, k):
    """The definition of Sugiyama, pair by pair."""
    n, d = X.shape
    within, between = np.zeros((d, d)), np.zeros((d, d))
    D = cdist(X, X)
    size = np.array([(y == label).sum() for label in y])
    sigma = np.array([np.sort(D[i, y == y[i]])[min(k, size[i] - 1)] for i in range(n)])
    for i in range(n):
        for j in range(n):
            outer = 0.5 * np.outer(X[i] - X[j], X[i] - X[j])
            if y[i] != y[j]:
                between += outer / n
                continue
            width = sigma[i] * sigma[j]
            A = np.exp(-(D[i, j] ** 2) / width) if width > 0 else 0.0
            within += A / size[i] * outer
            between += A * (1 / n - 1 / size[i]) * outer
    return within, between


@pytest.mark.parametrize("blocks", [1, 4])
def test_lfda_scatters_are_those_of_the_paper(monkeypatch, blocks):
    rng = np.random.RandomState(0)
    rows, y = rng.standard_normal((30, 3)), np.r_[np.zeros(14), np.ones(14), 2, 2].astype(int)
    rows[3] = rows[4] = rows[5]
    monkeypatch.setattr("vicinal.learners.lfda.MAX_ELEMENTS", 14 * 14 // blocks)
    for got, expected in zip(local_scatters(rows, y, 2), naive_scatters(rows, y, 2), strict=True):
        assert_allclose(got, expected, atol=1e-12)


def test_lfda_solves_its_eigenproblem():
    within, between = naive_scatters(X[::3], Y[::3], 7)
    plain = vc.LFDA(embedding="plain").fit(X[::3], Y[::3])
    V, values = plain.components_.T, plain.eigenvalues_
    assert_allclose(V.T @ within @ V, np.eye(13), atol=1e-8)
    assert_allclose(V.T @ between @ V, np.diag(values), atol=1e-8)
    assert np.all(np.diff(values) <= 0)
    weighted = vc.LFDA(4).fit(X[::3], Y[::3]).components_
    assert_allclose(weighted, np.sqrt(values[:4])[:, None] * V.T[:4], atol=1e-8)
    orthonormal = vc.LFDA(4, embedding="orthonormalized").fit(X[::3], Y[::3]).components_
    assert_allclose(orthonormal @ orthonormal.T, np.eye(4), atol=1e-10)
    assert np.linalg.matrix_rank(np.r_[orthonormal, weighted], tol=1e-8) == 4


def test_lfda_keeps_clusters_of_a_class_apart():
    """Two clusters of one class on both sides of the other: LDA sees nothing, LFDA does."""
    rng = np.random.RandomState(0)
    rows = rng.standard_normal((90, 2)) * [1.0, 4.0]
    rows[:, 0] += np.repeat([-8.0, 8.0, 0.0], 30)
    direction = vc.LFDA(1).fit(rows, np.repeat([0, 0, 1], 30)).components_[0]
    assert abs(direction[0]) > 3 * abs(direction[1])


def test_equal_samples_only_are_refused():
    rows = np.repeat(np.eye(3), 10, axis=0)
    labels = np.repeat([0, 1, 2], 10)
    with pytest.raises(ValueError, match="differ"):
        vc.LFDA().fit(rows, labels)
    with pytest.raises(ValueError, match="differ"):
        vc.RCA().fit(rows, labels)


@pytest.mark.parametrize("learner", [vc.Covariance(2), vc.RCA(2), vc.LFDA(2)])
def test_float32_and_two_dimensions(learner):
    rows, y = load_iris(return_X_y=True)
    Z = learner.fit(rows.astype(np.float32), y).transform(rows.astype(np.float32))
    assert Z.shape == (150, 2)
    assert Z.dtype == np.float32
