"""Training and test rows: the same splits and folds for every method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from experiments.datasets import Dataset
from vicinal._typing import FloatArray, IndexArray
from vicinal.validation.folds import Fold, stratified_folds

TEST_SHARE = 0.3
MAX_FEATURES = 150
N_FOLDS = 5
NOISE = 0.2
"""Share of the training labels that are wrong in the noisy protocol."""


@dataclass(frozen=True)
class Parts:
    """One 70/30 split, standardized and reduced by what its training part says."""

    X_train: FloatArray
    y_train: IndexArray
    X_test: FloatArray
    y_test: IndexArray


def train_and_test(y: IndexArray, split: int) -> tuple[IndexArray, IndexArray]:
    """Rows of the training (70 %) and the test part, stratified where every class has two rows.

    Parameters
    ----------
    y : (n,) labels
    split : number of the split, which is its seed
    """
    possible = np.unique(y, return_counts=True)[1].min() >= 2
    kind = StratifiedShuffleSplit if possible else ShuffleSplit
    train, test = next(
        kind(1, test_size=TEST_SHARE, random_state=split).split(np.zeros((len(y), 1)), y)
    )
    return train, test


def prepare(data: Dataset, split: int) -> Parts:
    """Standardize, and beyond 150 features keep 150 principal components.

    Parameters
    ----------
    data : the whole data set
    split : number of the split
    """
    train, test = train_and_test(data.y, split)
    X = data.X.astype(np.float64)
    scaler = StandardScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    if X.shape[1] > MAX_FEATURES:
        pca = PCA(min(MAX_FEATURES, len(train)), svd_solver="full").fit(X_train)
        X_train, X_test = pca.transform(X_train), pca.transform(X_test)
    return Parts(
        np.ascontiguousarray(X_train), data.y[train], np.ascontiguousarray(X_test), data.y[test]
    )


def with_wrong_labels(parts: Parts, split: int) -> Parts:
    """The same rows, a fifth of the training labels replaced by those of other classes.

    Parameters
    ----------
    parts : as they are
    split : number of the split, the seed
    """
    rng = np.random.default_rng(split)
    y = parts.y_train.copy()
    classes = np.unique(y)
    wrong = rng.choice(len(y), round(NOISE * len(y)), replace=False)
    codes = np.searchsorted(classes, y[wrong])
    steps = rng.integers(1, len(classes), len(wrong))  # never all the way round
    y[wrong] = classes[(codes + steps) % len(classes)]
    return replace(parts, y_train=y)


def folds(X: FloatArray, y: IndexArray, seed: int, limit: int | None = None) -> list[Fold]:
    """5 stratified folds of a training part, or of a stratified sample of it.

    Parameters
    ----------
    X, y : (n, d) and (n,) the training part
    seed : of the shuffle
    limit : rows to tune on, at most; None is all
    """
    if limit is None or limit >= len(y):
        return stratified_folds(N_FOLDS, y, None, seed)
    sample = StratifiedShuffleSplit(1, train_size=limit, random_state=seed)
    rows, _ = next(sample.split(X, y))
    inner = stratified_folds(N_FOLDS, y[rows], None, seed)
    return [Fold(rows[fold.train], rows[fold.test]) for fold in inner]
