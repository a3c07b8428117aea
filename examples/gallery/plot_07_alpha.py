"""
The path of α: which of its own class a row wants to be near
============================================================

α > 0: the nearest ones; α = 0: all alike; α < 0: the farthest. Where a class has
several clusters, only the first is sensible. Here each of two classes has three
clusters, and eight columns are noise.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier

import vicinal as vc

rng = np.random.default_rng(0)


def draw(n):
    cluster = rng.integers(6, size=n)
    centers = np.stack([np.arange(6) * 2.2, np.zeros(6)], axis=1)
    return np.hstack([centers[cluster], np.zeros((n, 8))]) + rng.normal(
        scale=[0.55, 2.5, *[1.5] * 8], size=(n, 10)
    ), cluster % 2


(X, y), (X_test, y_test) = draw(300), draw(600)
alphas = [-8, -2, -0.5, 0, 0.25, 0.5, 1, 2, 4, 8]
errors, counts = [], []
warnings.simplefilter("ignore", ConvergenceWarning)  # 80 iterations are enough to see it
for alpha in alphas:
    learner = vc.ANN(alpha, similar="all", loss="logistic", max_iter=80).fit(X, y)
    Z = learner.transform(X)
    near = np.sum((Z[0] - Z[1:][y[1:] == y[0]]) ** 2, axis=1)
    counts.append(vc.k_for_gamma(near, alpha) if alpha >= 0 else np.nan)
    knn = KNeighborsClassifier(5).fit(Z, y)
    errors.append(1 - knn.score(learner.transform(X_test), y_test))
plain = 1 - KNeighborsClassifier(5).fit(X, y).score(X_test, y_test)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.scatter(*X[:, :2].T, c=y, cmap="coolwarm", s=14)
left.set(xlabel="feature 1", ylabel="feature 2", title="Two classes of three clusters each")
right.plot(range(len(alphas)), errors, "o-", label="learned metric")
right.axhline(plain, color="C6", ls="--", label="Euclidean")
right.set_xticks(range(len(alphas)), alphas)
right.set(xlabel="α", ylabel="test error, 5-NN")
right.legend()
plt.show()
