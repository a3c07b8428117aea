"""
How many neighbors the metric looks at
======================================

K is not one number. By Lemma 3, the soft averages of a learned metric stand for a
number of neighbors that differs from row to row: few where the classes meet, many in
the middle of a cluster.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

import vicinal as vc

X, y = make_moons(400, noise=0.18, random_state=0)
model = vc.ANNClassifier(effort=0.5, members=("linear", "hat")).fit(X, y)
k = model.effective_neighbors(X)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
points = left.scatter(*X.T, c=k, cmap="viridis", s=22)
left.scatter(*X[model.predict(X) != y].T, s=70, facecolor="none", edgecolor="C1", label="wrong")
left.set(xticks=[], yticks=[], title="Effective number of neighbors")
left.legend(loc="lower left")
fig.colorbar(points, ax=left)
right.hist(k, bins=30)
right.set(xlabel="effective K", ylabel="rows")
plt.show()
