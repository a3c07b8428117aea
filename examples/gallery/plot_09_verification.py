"""
Verification: do these two belong together?
===========================================

Nobody names a class: the question is whether two images show the same digit. The left
picture asks about new images of the digits that the metric was learned from, the right
one about digits that it has never seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import auc, roc_curve

import vicinal as vc
from vicinal.supervision import pairs_from_labels

X, y = load_digits(return_X_y=True)
X = PCA(30, random_state=0).fit_transform(X / 16)
known = np.flatnonzero(y < 6)
train, valid, seen = known[:600], known[600:800], known[800:]
unseen = np.flatnonzero(y >= 6)


def pairs_of(rows, number, seed):
    """Two samples each, and whether they are of one class."""
    pairs, similar = pairs_from_labels(y[rows], number, random_state=seed)
    return X[rows][pairs], similar


learners = {
    "NCA": vc.NCA(max_iter=40, tol=1e-2),
    "ANN(alpha=-1)": vc.ANN(-1, loss="logistic", max_iter=100, tol=1e-2),
    "LFDA": vc.LFDA(n_components=10),
    "GMML": vc.GMML(t=0.5),
}
for learner in learners.values():
    learner.fit(X[train], y[train])

tests = {
    "digits seen in training": pairs_of(seen, 3000, 0),
    "digits never seen": pairs_of(unseen, 3000, 0),
}
fig, axes = plt.subplots(1, 2, figsize=(9.4, 4.4), sharey=True)
for ax, (title, (pairs, similar)) in zip(axes, tests.items(), strict=True):
    scores = {"Euclidean": -np.sum((pairs[:, 0] - pairs[:, 1]) ** 2, axis=1)}
    scores |= {name: learner.pair_score(pairs) for name, learner in learners.items()}
    for name, score in scores.items():
        wrong, right, _ = roc_curve(similar, score)
        ax.plot(wrong, right, label=f"{name}: {auc(wrong, right):.3f}")
    ax.set(xscale="log", xlim=(1e-3, 1), xlabel="false alarms", title=title)
    ax.legend(title="area under the curve", loc="upper left", fontsize=8)
axes[0].set_ylabel("pairs found")
plt.show()

# %%
# A metric that was learned from six digits keeps what tells *these* six apart: on
# others it is no better than the Euclidean distance, or worse. To verify classes that
# nobody has seen, learn from many classes.
#
# A threshold for a promise is chosen on pairs that the fit has not seen, of the same kind as those
# that will be asked about: here at most 5 % false alarms.

gmml = learners["GMML"]
gmml.calibrate_threshold(*pairs_of(valid, 2000, 1), strategy="max_tpr", min_rate=0.95)
for title, (pairs, similar) in tests.items():
    called = gmml.predict_pairs(pairs)
    print(
        f"{title}: false alarms {called[~similar].mean():.1%}, found {called[similar].mean():.1%}"
    )
