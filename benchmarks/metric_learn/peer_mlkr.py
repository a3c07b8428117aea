"""MLKR's loss and gradient by metric-learn, on the data of tests/oracle/test_mlkr.py.

Needs an environment with metric-learn 0.7.0 and scikit-learn < 1.6; prints JSON and the versions.
"""

import json

import metric_learn
import numpy as np
import sklearn

rng = np.random.RandomState(0)
X = rng.standard_normal((40, 3))
y = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(40)
model = metric_learn.MLKR()
model.n_iter_ = 0
records = []
for L in (np.eye(3), rng.standard_normal((3, 3)), 0.3 * rng.standard_normal((2, 3))):
    value, gradient = model._loss(L.ravel().copy(), X, y)
    gradient = np.asarray(gradient).reshape(L.shape)
    records.append({"L": L.tolist(), "value": float(value), "gradient": gradient.tolist()})
print(json.dumps(records))
print(metric_learn.__version__, sklearn.__version__, np.__version__)
