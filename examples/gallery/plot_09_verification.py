"""
Verification: do these two belong together?
===========================================

Nobody names a class: the question is whether two digits are the same one, and the
classes of the test pairs were never seen in training. The metric is learned on the
digits 0 to 5 and asked about pairs of 6, 7, 8 and 9.
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
known = np.flatnonzero(y < 6)[:600]
unseen = np.flatnonzero(y >= 6)

pairs, similar = pairs_from_labels(y[unseen], 3000, random_state=0)
test = X[unseen][pairs]  # (3000, 2, 30): two samples each

learners = {
    "Euclidean": None,
    "NCA": vc.NCA(max_iter=40, tol=1e-3),
    "ANN(alpha=-1)": vc.ANN(-1, loss="logistic", max_iter=40, tol=1e-3),
    "LFDA": vc.LFDA(n_components=10),
    "GMML": vc.GMML(t=0.5),
}
fig, ax = plt.subplots(figsize=(5.6, 4.6))
for name, learner in learners.items():
    if name == "Euclidean":
        scores = -np.sum((test[:, 0] - test[:, 1]) ** 2, axis=1)
    else:
        scores = learner.fit(X[known], y[known]).pair_score(test)
    wrong, right, _ = roc_curve(similar, scores)
    ax.plot(wrong, right, label=f"{name}: {auc(wrong, right):.3f}")
ax.set(xscale="log", xlim=(1e-3, 1), xlabel="false alarms", ylabel="pairs found")
ax.legend(title="area under the curve")
plt.show()

# %%
# A threshold for a promise, chosen on pairs that the fit has not seen: at most 5 %
# false alarms.

gmml = learners["GMML"]
valid, valid_similar = pairs_from_labels(y[np.flatnonzero(y < 6)[600:]], 1000, random_state=1)
gmml.calibrate_threshold(
    X[np.flatnonzero(y < 6)[600:]][valid], valid_similar, strategy="max_tpr", min_rate=0.95
)
called = gmml.predict_pairs(test)
print(f"false alarms {called[~similar].mean():.1%}, pairs found {called[similar].mean():.1%}")
