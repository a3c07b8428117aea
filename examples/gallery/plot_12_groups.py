"""
Groups: rows of one patient must not vote for each other
========================================================

Each of 40 patients was measured eight times. Rows of one patient resemble each other
for reasons that have nothing to do with the disease. Cross-validation over rows is then
far too optimistic, and a metric that is learned over rows learns to recognize patients.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict

import vicinal as vc

rng = np.random.default_rng(1)
patient = np.repeat(np.arange(40), 8)
ill = np.arange(40) % 2
personal = rng.normal(size=(40, 12))  # what makes a patient recognizable
X = personal[patient] + 0.15 * rng.normal(size=(320, 12))
X[:, 0] += 1.2 * ill[patient]
y = ill[patient]

model = vc.ANNClassifier(effort=0.1, members=("linear",))
by_rows = cross_val_predict(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
by_patients = cross_val_predict(model, X, y, groups=patient, cv=GroupKFold(5))

# %%
# With ``groups`` the model knows it by itself: patients stay together in its folds, and
# no row is a neighbor of its own patient. With 40 patients, either estimate may be 8 points
# off, and that of the best of many candidates is on the high side.

unaware = vc.ANNClassifier(effort=0.1, members=("linear",)).fit(X, y)
aware = vc.ANNClassifier(effort=0.1, members=("linear",)).fit(X, y, groups=patient)

bars = {
    "folds of rows:\nwrong": np.mean(by_rows == y),
    "what the model says\nwithout groups": unaware.best_score_,
    "what the model says\nwith groups": aware.best_score_,
    "folds of patients:\nright": np.mean(by_patients == y),
}
plt.figure(figsize=(7, 3.6))
plt.barh(list(bars), list(bars.values()), color=["C1", "C1", "C0", "C0"])
plt.xlim(0.4, 1)
plt.xlabel("accuracy for a new patient, as estimated")
plt.gca().invert_yaxis()
plt.show()
