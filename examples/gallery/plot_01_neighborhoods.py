"""
What the metric did to the neighborhoods
========================================

A learned metric changes who is next to whom. For every wine we look at its five nearest
neighbors, with the Euclidean distance of the standardized features and with a learned
one, and count those of its own class. The arrows show one wine that the Euclidean
distance gets wrong: its old neighbors and its new ones.
"""

# %%
# Learn on two thirds, look at the other third.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

import vicinal as vc

wine = load_wine()
X_train, X_test, y_train, y_test = train_test_split(
    wine.data, wine.target, test_size=0.35, stratify=wine.target, random_state=1
)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
learner = vc.ANN(loss="logistic", max_iter=50, tol=1e-3).fit(X_train, y_train)


def neighbors(train, test):
    return NearestNeighbors(n_neighbors=5).fit(train).kneighbors(test, return_distance=False)


before = neighbors(X_train, X_test)
after = neighbors(learner.transform(X_train), learner.transform(X_test))
own_before, own_after = ((y_train[rows] == y_test[:, None]).mean(1) for rows in (before, after))
print(f"neighbors of the own class: {own_before.mean():.1%} before, {own_after.mean():.1%} after")

# %%
# The same rows on two maps: the principal components of both spaces. The black circle
# is the wine that gained most.

row = int(np.argmax(own_after - own_before))
fig, axes = plt.subplots(1, 2, figsize=(9, 4.2))
for ax, to_space, rows, title in (
    (
        axes[0],
        lambda Z: Z,
        before,
        f"Euclidean: {own_before[row]:.0%} of its neighbors are its own",
    ),
    (axes[1], learner.transform, after, f"learned: {own_after[row]:.0%}"),
):
    pca = PCA(2).fit(to_space(X_train))
    train, test = pca.transform(to_space(X_train)), pca.transform(to_space(X_test))
    for c, name in enumerate(wine.target_names):
        ax.scatter(*train[y_train == c].T, s=14, alpha=0.5, label=name)
    for j in rows[row]:
        ax.plot(*np.stack([test[row], train[j]]).T, color="black", lw=1)
    ax.scatter(*test[row], s=80, facecolor=f"C{y_test[row]}", edgecolor="black", zorder=3)
    ax.set(title=title, xticks=[], yticks=[])
axes[0].legend(loc="best", fontsize=8)
plt.show()
