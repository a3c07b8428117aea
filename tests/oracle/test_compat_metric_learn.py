"""The compatible classes against metric-learn 0.7.0 itself: the same metric from the same call.

The numbers are those of ``python benchmarks/metric_learn/compat.py`` with metric-learn 0.7.0, NumPy
2.2.6 and scikit-learn 1.5.2.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import vicinal.compat.metric_learn as ml

PAIRS = np.array([(i, (i + s) % 60) for s in (1, 3, 6, 7) for i in range(60)])
EXPECTED = {
    "ITML": [
        [0.1732069619, 0.0025897019, -0.0225901639, -0.0174022498],
        [0.0025897019, 0.2396649988, -0.1163120988, 0.0458003266],
        [-0.0225901639, -0.1163120988, 0.2423542874, 0.0401074266],
        [-0.0174022498, 0.0458003266, 0.0401074266, 0.345345305],
    ],
    "ITML, covariance": [
        [0.149277774, -0.0132353834, -0.0038712372, -0.0189977895],
        [-0.0132353834, 0.2165349925, -0.1078153951, 0.0528318093],
        [-0.0038712372, -0.1078153951, 0.199977713, 0.0333836787],
        [-0.0189977895, 0.0528318093, 0.0333836787, 0.2879573827],
    ],
    "MLKR": [
        [10.5728671828, 1.0802481491, 0.0095519433, 0.5669323309],
        [1.0802481491, 1.5634589536, -0.1230639149, -0.3242651225],
        [0.0095519433, -0.1230639149, 0.067881382, -0.078029988],
        [0.5669323309, -0.3242651225, -0.078029988, 0.3466553948],
    ],
}
THRESHOLDS = {"ITML": 1.6264858156738171, "ITML, covariance": 1.440389152053895}


@pytest.mark.parametrize("name", ["ITML", "ITML, covariance"])
def test_itml_is_the_same_and_so_is_its_threshold(toy, name):
    X, y = toy
    signs = np.where(y[PAIRS[:, 0]] == y[PAIRS[:, 1]], 1, -1)
    if name == "ITML":
        model = ml.ITML(tol=1e-8, max_iter=10000).fit(X[PAIRS], signs)
        assert_allclose(model.bounds_, [1.3087330781, 5.5736231246], rtol=1e-9)
    else:
        model = ml.ITML(prior="covariance", tol=1e-8, max_iter=10000)
        model.fit(X[PAIRS], signs, bounds=(1.0, 8.0))
    assert_allclose(model.get_mahalanobis_matrix(), EXPECTED[name], atol=1e-7)
    assert_allclose(model.threshold_, THRESHOLDS[name], rtol=1e-6)


def test_mlkr_is_the_same(toy):
    X, _ = toy
    model = ml.MLKR(tol=1e-12).fit(X, X[:, 0] ** 2 + X[:, 1])
    assert_allclose(model.get_mahalanobis_matrix(), EXPECTED["MLKR"], atol=1e-4)
