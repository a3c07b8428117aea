"""
Many methods, one picture
=========================

Every learner is a linear map with two rows here, learned from the same wines with ten
columns of noise. The title says how many *test* wines their five nearest training wines
get right.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import vicinal as vc

X, y = load_wine(return_X_y=True)
X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 10))])
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

two = {"n_components": 2}
learners = {
    "ANN⁺": vc.ANN(max_iter=60, **two),
    "ANN⁻": vc.ANN(-1, max_iter=60, **two),
    "PNCA": vc.PNCA(alpha=2, max_iter=60, **two),
    "NCA": vc.NCA(max_iter=60, **two),
    "LMNN": vc.LMNN(max_iter=60, **two),
    "MCML": vc.MCML(max_iter=60, **two),
    "LFDA": vc.LFDA(**two),
    "RVML": vc.RVML(),
    "RCA": vc.RCA(**two),
}
warnings.simplefilter("ignore")  # sixty iterations are enough for a picture
fig, axes = plt.subplots(3, 3, figsize=(8.4, 8))
for ax, (name, learner) in zip(axes.flat, learners.items(), strict=True):
    near, far = learner.fit(X_train, y_train).transform(X_train), learner.transform(X_test)
    score = KNeighborsClassifier().fit(near, y_train).score(far, y_test)
    for c in range(3):
        ax.scatter(*near[y_train == c, :2].T, s=10, alpha=0.35, color=f"C{c}")
        ax.scatter(*far[y_test == c, :2].T, s=16, color=f"C{c}")
    ax.set(title=f"{name}: {score:.0%}", xticks=[], yticks=[])
plt.show()
