"""
Rare classes: class_weight moves the line
=========================================

About one row in twenty is positive. Neighbors of a rare row are mostly of the common
class, simply because there are more. With ``class_weight`` rare rows count more, in the
objective and in the vote.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import precision_score, recall_score, roc_auc_score
from sklearn.model_selection import train_test_split

import vicinal as vc

X, y = make_classification(
    1600, 8, n_informative=4, n_redundant=0, weights=[0.95], class_sep=1.0, random_state=3
)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

settings = {"none": None, "1 : 4": {0: 1.0, 1: 4.0}, "balanced": "balanced"}
found, right = [], []
for name, class_weight in settings.items():
    model = vc.ANNClassifier(effort=0.1, members=("linear",), class_weight=class_weight).fit(X, y)
    predicted = model.predict(X_test)
    found.append(recall_score(y_test, predicted))
    right.append(precision_score(y_test, predicted, zero_division=0))
    area = roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])
    print(f"{name:>9}: found {found[-1]:.0%}, right {right[-1]:.0%}, area under the ROC {area:.3f}")

x = range(len(settings))
plt.bar([i - 0.2 for i in x], found, 0.4, label="rare rows that are found (recall)")
plt.bar([i + 0.2 for i in x], right, 0.4, label="alarms that are right (precision)")
plt.xticks(list(x), list(settings))
plt.xlabel("class_weight")
plt.ylim(0, 1)
plt.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
plt.show()

# %%
# The ranking of the rows hardly changes; where the line is drawn does. Choose the
# weight by what a miss and a false alarm cost.
