"""
How much a few pairs teach
==========================

Sometimes nobody can name a class, but somebody can say "these two belong together".
Three learners of pairs, and how good nearest neighbors are in the space they learn, as
the number of pairs grows. The classes themselves are only used to judge.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

import vicinal as vc
from vicinal.supervision import pairs_from_labels

X, y = load_wine(return_X_y=True)
X = np.hstack([scale(X), 2 * np.random.default_rng(0).normal(size=(len(X), 10))])  # and noise
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)


def accuracy(learner):
    near, far = learner.transform(X_train), learner.transform(X_test)
    return KNeighborsClassifier(3).fit(near, y_train).score(far, y_test)


numbers = [20, 40, 80, 160, 320]
learners = {
    "GMML": lambda: vc.GMML(t=0.3),
    "ITML": lambda: vc.ITML(max_iter=300),
    "LDML": lambda: vc.LDML(max_iter=50),
}
warnings.simplefilter("ignore")  # with few pairs the fits end early, and say so
for name, make in learners.items():
    scores = np.zeros((5, len(numbers)))
    for seed in range(5):
        pairs, similar = pairs_from_labels(y_train, max(numbers), random_state=seed)
        order = np.random.default_rng(seed).permutation(len(pairs))
        for i, number in enumerate(numbers):
            chosen = order[:number]
            scores[seed, i] = accuracy(make().fit_pairs(X_train, pairs[chosen], similar[chosen]))
    plt.plot(numbers, scores.mean(axis=0), "o-", label=name)
plain = KNeighborsClassifier(3).fit(X_train, y_train).score(X_test, y_test)
plt.axhline(plain, color="C6", ls="--", label="Euclidean")
plt.xscale("log")
plt.xticks(numbers, numbers)
plt.minorticks_off()
plt.xlabel("pairs")
plt.ylabel("3-NN accuracy, mean of 5 draws")
plt.legend()
plt.show()
