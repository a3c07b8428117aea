"""
Rows come and go without a new fit
==================================

What a nearest-neighbor model knows are its rows. New ones can vote at once, and old
ones can leave (because someone asks to be forgotten, say), while the metrics stay.
"""

import time

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import vicinal as vc

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
start = 200
model = vc.ANNClassifier(effort=0.1, members=("linear",)).fit(X[:start], y[:start])

rows, scores = [start], [model.score(X_test, y_test)]
seconds = 0.0
for begin in range(start, len(X), 200):
    t = time.perf_counter()
    model.add_rows(X[begin : begin + 200], y[begin : begin + 200])
    seconds += time.perf_counter() - t
    rows.append(model.n_samples_fit_)
    scores.append(model.score(X_test, y_test))
print(f"{len(X) - start} rows added in {seconds:.2f} s; the fit took {model.fit_time_:.1f} s")

plt.plot(rows, scores, "o-")
plt.xlabel("rows that vote (the metrics were learned from the first 200)")
plt.ylabel("test accuracy")
plt.show()

# %%
# To forget a row is exact: the model is the one that would have been prepared without
# it.

before = model.n_samples_fit_
model.forget_rows(range(100))
print(before, "→", model.n_samples_fit_, f"rows, accuracy {model.score(X_test, y_test):.1%}")
