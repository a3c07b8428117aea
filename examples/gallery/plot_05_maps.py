"""
Maps that hold for new rows: PCA, LDA, NCA, UMAP
================================================

A metric with two rows is a map: new rows have a place in it by a formula, and distances
mean what they meant in training. PCA does not know the classes; LDA looks at their
means and covariances, NCA at neighbors. All are learned on one half of the digits; the
pictures show the other half, and the titles how many of it the nearest training rows on
the map get right.

Two linear coordinates cannot keep ten digits apart; UMAP, which bends, can. What a
picture in two dimensions does not show is that ten *linear* coordinates are enough, too
(last map).
"""

# %%
# UMAP has no formula for new rows; it optimizes their place anew. It can also be used
# *on* a learned space, as the last map does: the metric says what similar means, UMAP
# how to draw it. (UMAP needs ``pip install umap-learn``; without it these two maps are
# left out.)

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import vicinal as vc

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X[:1200] / 16, y[:1200], test_size=0.5, stratify=y[:1200], random_state=0
)
maps = {
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "NCA": vc.NCA(n_components=2, max_iter=100, tol=1e-3),
    "ANN, logistic": vc.ANN(loss="logistic", n_components=2, max_iter=60, tol=1e-3),
}
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own dependencies
        import umap

    maps["UMAP, classes unknown"] = umap.UMAP(random_state=0, n_jobs=1)
    learned = vc.NCA(n_components=10, max_iter=60, tol=1e-3)
    maps["UMAP of a learned space"] = make_pipeline(learned, umap.UMAP(random_state=0, n_jobs=1))
except ImportError:
    print("umap-learn is not installed: its two maps are missing")

fig, axes = plt.subplots(2, 3, figsize=(9, 6.4))
for ax, (name, method) in zip(axes.flat, maps.items(), strict=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near = method.fit_transform(X_train, None if name.startswith("UMAP, c") else y_train)
        far = method.transform(X_test)
    score = KNeighborsClassifier().fit(near, y_train).score(far, y_test)
    ax.scatter(*far.T, c=y_test, cmap="tab10", s=6)
    ax.set(title=f"{name}: {score:.0%}", xticks=[], yticks=[])
for ax in axes.flat[len(maps) :]:
    ax.axis("off")
plt.show()
