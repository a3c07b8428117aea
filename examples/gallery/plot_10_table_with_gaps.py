"""
A table with categories, dates and gaps
=======================================

Most tables are not numbers. ``TableEncoder`` makes features between which distances
make sense, and says what it did; ``ANNClassifier`` takes such tables as they are and
explains by column.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import vicinal as vc

rng = np.random.default_rng(0)
n = 500
table = pd.DataFrame(
    {
        "price": rng.lognormal(7, 0.5, n).round(),
        "color": rng.choice(["red", "blue", "green", "black"], n),
        "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
        "listed": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 180, n), "D"),
        "distance": rng.normal(size=n),
    }
)
wanted = (
    1.5 * (table["price"] < 1000)
    + (table["color"] == "red")
    + 0.8 * (table["size"] == "L")
    + rng.normal(scale=0.5, size=n)
)
sold = np.where(wanted > 1.4, "sold", "kept")
for column, share in {"price": 0.15, "color": 0.1, "distance": 0.2}.items():
    table.loc[rng.random(n) < share, column] = None

print(table.head(), "\n")
print(vc.TableEncoder().fit(table, sold).describe())

# %%
# The classifier gets the table itself. The last lines of its explanation are about
# columns, not about features.

train, test, y, y_test = train_test_split(table, sold, stratify=sold, random_state=0)
model = vc.ANNClassifier(effort=0.2, members=("linear", "hat")).fit(train, y)
print(
    f"accuracy {model.score(test, y_test):.1%}, majority {max(np.mean(y_test == c) for c in y):.1%}"
)
print(model.explain(test.iloc[[0]], n_neighbors=3)[0])

# %%
# What further gaps cost: cells of three columns of the test table are deleted, mean of ten draws.

shares = [0, 0.1, 0.2, 0.3, 0.5]
scores = np.zeros((10, len(shares)))
for draw in range(10):
    for i, share in enumerate(shares):
        holes = test.copy()
        for column in ("price", "color", "distance"):
            holes.loc[rng.random(len(holes)) < share, column] = None
        scores[draw, i] = model.score(holes, y_test)
plt.plot(shares, scores.mean(axis=0), "o-", label="ANNClassifier")
plt.axhline(max(np.mean(y_test == c) for c in y), color="C6", ls="--", label="majority")
plt.xlabel("further cells missing, in three of five columns")
plt.ylabel("accuracy on test rows")
plt.legend()
plt.show()
