"""Covariance, RCA, MMC and LSML against metric-learn 0.7.0.

The numbers are those of ``python benchmarks/metric_learn/remaining.py toy`` with metric-learn
0.7.0, NumPy 2.2.6 and scikit-learn 1.5.2. LFDA and SDML have no such numbers: metric-learn's LFDA
takes its local scales from the wrong axis, and its SDML fails with that scikit-learn.
"""

import numpy as np
from numpy.testing import assert_allclose

import vicinal as vc

COVARIANCE = [
    [7.2636216368848439e-01, 3.5284830685862395e-01, -4.2629172588282738e-01, -0.10086168855827314],
    [3.5284830685862395e-01, 6.8747326220460225e-01, -1.7444192346038673e-01, -0.29803239310019985],
    [-4.2629172588282738e-01, -1.7444192346038673e-01, 1.3063007388180465e00, 0.00064018908932157],
    [-1.0086168855827314e-01, -2.9803239310019985e-01, 6.4018908932157476e-04, 1.2136787423523061],
]
RCA = [
    [1.0336815005655196, 0.15585211099863963, -0.26128621196454405, -0.1519459752366849],
    [0.15585211099863963, 1.0210292054962957, -0.32980085723382335, -0.09933287315528788],
    [-0.26128621196454405, -0.32980085723382335, 1.435298843867938, -0.05975638399965714],
    [-0.1519459752366849, -0.09933287315528788, -0.05975638399965714, 1.400676577644884],
]
RCA_2 = [
    [0.635914701742551, -0.14542294813713952, 0.3169208347505145, 0.16569325507888874],
    [-0.14542294813713952, 0.597438589567493, -0.17742126083169513, 0.4876913531206334],
    [0.3169208347505145, -0.17742126083169513, 0.1774655973716429, -0.01519002287855648],
    [0.16569325507888874, 0.4876913531206334, -0.01519002287855648, 0.5327961880124997],
]
MMC = [
    [0.00908918809130316, -0.01169463620561918, 0.00727277622662344, -0.00584629643888193],
    [-0.01169463620561918, 0.01536776416454411, -0.00934988309156733, 0.00798193142510654],
    [0.00727277622662344, -0.00934988309156733, 0.00581954471650775, -0.0046669760203664],
    [-0.00584629643888193, 0.00798193142510654, -0.0046669760203664, 0.00441933418854487],
]
LSML = [
    [0.8229773710024527, 0.02397016864216318, -0.0635302007603455, -0.02348865005502669],
    [0.02397016864216318, 0.870390324777937, -0.01407099076376611, 0.01397071502584252],
    [-0.0635302007603455, -0.01407099076376611, 0.9413026451873091, 0.0156764183077133],
    [-0.02348865005502669, 0.01397071502584252, 0.0156764183077133, 1.0103967096640876],
]


def toy_pairs(y):
    """240 pairs (i, i + s mod 60), 120 of them similar, those first."""
    pairs = np.array([(i, (i + s) % 60) for s in (1, 3, 6, 7) for i in range(60)])
    similar = y[pairs[:, 0]] == y[pairs[:, 1]]
    return np.concatenate([pairs[similar], pairs[~similar]]), np.sort(similar)[::-1]


def test_closed_forms_are_the_same(toy):
    X, y = toy
    assert_allclose(vc.Covariance().fit(X).get_mahalanobis_matrix(), COVARIANCE, atol=1e-13)
    assert_allclose(vc.RCA().fit_chunks(X, y).get_mahalanobis_matrix(), RCA, atol=1e-12)
    assert_allclose(vc.RCA(2).fit_chunks(X, y).get_mahalanobis_matrix(), RCA_2, atol=1e-12)


def test_mmc_separates_more(toy):
    X, y = toy
    pairs, similar = toy_pairs(y)
    gaps = X[pairs[:, 0]] - X[pairs[:, 1]]

    def value(M):
        squared = np.einsum("pd,pd->p", gaps @ M, gaps)
        return np.log(np.sqrt(squared[~similar]).sum() / np.sqrt(squared[similar].sum()))

    M = vc.MMC().fit_pairs(X, pairs, similar).get_mahalanobis_matrix()
    theirs = np.array(MMC)
    assert_allclose(value(theirs), 2.84202306, atol=1e-8)
    assert value(M) > value(theirs) + 1e-5
    # The same matrix, but for a factor: theirs depends on where it starts.
    assert_allclose(M / np.trace(M), theirs / np.trace(theirs), atol=0.02)


def test_lsml_is_lower(toy):
    X, y = toy
    pairs, similar = toy_pairs(y)
    quadruplets = np.concatenate([pairs[similar], pairs[~similar]], axis=1)
    a, b, c, d = (X[rows] for rows in quadruplets.T)

    def value(M):
        near, far = (np.sqrt(np.einsum("qd,qd->q", V @ M, V)) for V in (a - b, c - d))
        residual = np.mean(np.maximum(near - far, 0.0) ** 2)
        return residual + np.trace(M) - np.linalg.slogdet(M)[1] - 4

    learner = vc.LSML().fit_quadruplets(X, quadruplets)
    M, theirs = learner.get_mahalanobis_matrix(), np.array(LSML)
    assert_allclose(value(theirs), 0.41769665, atol=1e-8)
    assert_allclose(value(M), learner.objective_, rtol=1e-10)
    assert value(M) < value(theirs) - 1e-4
    assert_allclose(M, theirs, atol=0.05)
