"""
Decision regions: what each model makes of the same points
==========================================================

One column matters, one is noise on a larger scale. Plain nearest neighbors draw
islands; a learned metric stretches the column that matters; the committee also bends
where it has to, and is unsure where the classes meet.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import vicinal as vc

rng = np.random.default_rng(3)
X = rng.uniform([0, 0], [6, 20], (240, 2))
y = ((X[:, 0] % 2 < 1) ^ (rng.random(240) < 0.04)).astype(int)

models = {
    "5-NN, Euclidean": KNeighborsClassifier(),
    "5-NN, learned metric": make_pipeline(vc.NCA(max_iter=50, tol=1e-3), KNeighborsClassifier()),
    "ANNClassifier": vc.ANNClassifier(effort=0.2),
}
across, up = np.meshgrid(np.linspace(0, 6, 150), np.linspace(0, 20, 100))
grid = np.stack([across.ravel(), up.ravel()], axis=1)
fig, axes = plt.subplots(1, 3, figsize=(10, 3.8))
for ax, (name, model) in zip(axes, models.items(), strict=True):
    p = model.fit(X, y).predict_proba(grid)[:, 1].reshape(across.shape)
    ax.contourf(across, up, p, levels=np.linspace(0, 1, 11), cmap="coolwarm", alpha=0.7)
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=12, edgecolor="white", lw=0.4)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
