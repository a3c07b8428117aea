"""
Which features matter: ten columns of noise
===========================================

The Euclidean distance counts every column. Here the wines get ten columns of random
numbers: plain nearest neighbors suffer, and a learned metric gives these columns little
weight.
"""

# %%
# The weight of a feature is :math:`M_{jj}`, how much a step of one standard deviation
# adds to the squared distance.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import vicinal as vc

wine = load_wine()
rng = np.random.default_rng(0)
X = np.hstack([wine.data, rng.normal(size=(len(wine.data), 10))])
names = [*wine.feature_names, *(f"noise {i}" for i in range(1, 11))]

learner = vc.ANN(loss="logistic", max_iter=50, tol=1e-3).fit(scale(X), wine.target)
weights = np.diag(learner.get_mahalanobis_matrix())
order = np.argsort(weights)
print(f"share of the ten columns of noise: {weights[13:].sum() / weights.sum():.0%}")

fig, ax = plt.subplots(figsize=(7, 5.4))
colors = ["C1" if names[j].startswith("noise") else "C0" for j in order]
ax.barh([names[j] for j in order], weights[order], color=colors)
ax.set(xlabel="weight in the learned metric", title="Orange: columns of noise")
plt.show()

# %%
# What noise costs, by cross-validation. A metric cannot ignore noise perfectly: from
# few rows, some of it looks like a signal.

counts = [0, 10, 20, 40]
noise = rng.normal(size=(len(X), max(counts)))
models = {
    "Euclidean": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    "learned (ANN)": make_pipeline(
        StandardScaler(), vc.ANN(loss="logistic", max_iter=50, tol=1e-3), KNeighborsClassifier()
    ),
}
fig, ax = plt.subplots()
for name, model in models.items():
    scores = [
        cross_val_score(model, np.hstack([wine.data, noise[:, :k]]), wine.target, cv=5).mean()
        for k in counts
    ]
    ax.plot(counts, scores, "o-", label=name)
ax.set(xlabel="columns of noise", ylabel="accuracy, 5-fold")
ax.legend()
plt.show()
