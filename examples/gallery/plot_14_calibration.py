"""
Are 80 % right in eight of ten cases?
=====================================

Probabilities of nearest neighbors are shares of votes. ``ANNClassifier`` finds out of
fold how confident they should be (``exponent_``). Right is what lies on the diagonal.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import vicinal as vc

X, y = make_classification(
    3000, 12, n_informative=6, n_clusters_per_class=3, flip_y=0.05, class_sep=0.8, random_state=1
)
X, X_test, y, y_test = train_test_split(X, y, train_size=700, random_state=0)
models = {
    "ANNClassifier": vc.ANNClassifier(effort=0.2),
    "5-NN": KNeighborsClassifier(),
    "random forest": RandomForestClassifier(200, random_state=0),
}
edges = np.linspace(0, 1, 11)
fig, ax = plt.subplots(figsize=(5.4, 4.6))
ax.plot([0, 1], [0, 1], color="C6", ls=":")
for name, model in models.items():
    p = model.fit(X, y).predict_proba(X_test)[:, 1]
    place = np.digitize(p, edges[1:-1])
    filled = [b for b in range(10) if np.sum(place == b) >= 15]
    means = [p[place == b].mean() for b in filled]
    shares = [y_test[place == b].mean() for b in filled]
    loss = np.mean((p - y_test) ** 2)
    ax.plot(means, shares, "o-", label=f"{name}: Brier {loss:.3f}")
ax.set(xlabel="probability that is said", ylabel="share that is true")
ax.legend()
plt.show()
