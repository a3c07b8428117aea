"""
A number, and how sure the model is
===================================

``ANNRegressor`` predicts the weighted mean of training rows. Its intervals come from the
errors of rows that were predicted out of fold: they are wider where the neighbors were
predicted badly. Of all new rows together, nine of ten should lie inside; where the
scatter is largest, it may be fewer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc

rng = np.random.default_rng(0)


def draw(n):
    """One column matters; the scatter grows with it; three columns are noise."""
    X = np.hstack([rng.uniform(0, 10, (n, 1)), rng.normal(scale=3, size=(n, 3))])
    y = np.sin(X[:, 0]) * 3 + X[:, 0] + rng.normal(size=n) * (0.2 + 0.15 * X[:, 0])
    return X, y


(X, y), (X_test, y_test) = draw(400), draw(1000)
model = vc.ANNRegressor(effort=0.1, members=("linear",)).fit(X, y)
plain = make_pipeline(StandardScaler(), KNeighborsRegressor(10)).fit(X, y)
for name, method in {"10-NN": plain, "ANNRegressor": model}.items():
    error = np.sqrt(np.mean((method.predict(X_test) - y_test) ** 2))
    print(f"{name}: typical error {error:.2f}")

interval = model.predict_interval(X_test, coverage=0.9)
inside = (interval[:, 0] <= y_test) & (y_test <= interval[:, 1])
scattered = X_test[:, 0] > 8
print(f"inside the 90 % interval: {inside.mean():.1%} of the test rows")
print(f"beyond 8, where they scatter most: {inside[scattered].mean():.1%}")

order = np.argsort(X_test[:, 0])
fig, ax = plt.subplots()
ax.fill_between(X_test[order, 0], *interval[order].T, alpha=0.25, label="90 % interval")
ax.plot(X_test[order, 0], model.predict(X_test)[order], lw=1, label="prediction")
ax.scatter(X_test[inside, 0], y_test[inside], s=5, color="C6", label="test rows")
ax.scatter(X_test[~inside, 0], y_test[~inside], s=9, color="C1", label="outside")
ax.set(xlabel="the column that matters", ylabel="target")
ax.legend()
plt.show()
