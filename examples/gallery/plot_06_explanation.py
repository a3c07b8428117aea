"""
Explain one prediction
======================

A prediction of ``ANNClassifier`` is a vote over training rows. ``explain`` names the
rows that decided, their shares, and what every column added to each distance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import vicinal as vc

data = load_breast_cancer(as_frame=True)
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(data.data, y, stratify=y, random_state=0)
model = vc.ANNClassifier(effort=0.1, members=("linear",)).fit(X_train, y_train)

# %%
# The least certain of the test rows, in words:

row = int(np.argmin(model.predict_proba(X_test).max(axis=1)))
explanation = model.explain(X_test.iloc[[row]], n_neighbors=5)[0]
print(f"truth: {y_test[row]}")
print(explanation)

# %%
# and in two pictures: what the votes add up to, and what the weights of all training
# rows look like. Few rows decide.

weights, prior_share = model.vote_weights(X_test.iloc[[row]])
shares = weights.toarray().ravel()
order = np.argsort(shares)[::-1][:25]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
colors = {name: f"C{c}" for c, name in enumerate(model.classes_)}
left.bar(range(25), shares[order], color=[colors[y_train[j]] for j in order])
left.set(xlabel="training rows by share", ylabel="share of the vote")
for name, color in colors.items():
    left.plot([], [], "s", color=color, label=name)
left.legend()
values = data.data.columns[:8]
gap = (X_train.iloc[order[:5]][values] - X_test.iloc[row][values]) / X_train[values].std()
picture = right.imshow(gap.T, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
right.set_yticks(range(len(values)), values)
right.set(xlabel="the five rows that count most", title="difference, in standard deviations")
fig.colorbar(picture, ax=right)
plt.show()
