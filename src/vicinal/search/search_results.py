"""Results of a search over points and folds, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from vicinal._typing import FloatArray, IndexArray
from vicinal.search.fold_search import Trial
from vicinal.search.grid import GridPoint


@dataclass(frozen=True)
class Results:
    """Trials of every fold at p points, in the order of (α, γ)."""

    points: tuple[GridPoint, ...]
    ks: IndexArray
    scores: FloatArray
    """(p, number of K, folds) accuracies."""
    n_iter: FloatArray
    """(p,) mean over the folds."""
    seconds: FloatArray
    """(p,) mean over the folds."""

    @classmethod
    def of(cls, folds: Sequence[Sequence[Trial]], ks: IndexArray) -> Results:
        """Put the trials of the folds, each in the same order, together."""
        order = sorted(range(len(folds[0])), key=lambda i: folds[0][i].point)
        trials = [[fold[i] for fold in folds] for i in order]  # point by point
        scores = np.array([[trial.accuracies for trial in row] for row in trials])  # (p, folds, K)
        return cls(
            points=tuple(row[0].point for row in trials),
            ks=ks,
            scores=np.ascontiguousarray(scores.transpose(0, 2, 1)),
            n_iter=np.array([np.mean([trial.n_iter for trial in row]) for row in trials]),
            seconds=np.array([np.mean([trial.seconds for trial in row]) for row in trials]),
        )

    @property
    def means(self) -> FloatArray:
        """(p, number of K) mean accuracies."""
        return np.asarray(np.average(self.scores, axis=2))

    def best(self) -> tuple[int, int]:
        """GridPoint and K of the highest mean; of equal ones the first: least α, then γ, then K."""
        i, j = np.unravel_index(np.argmax(self.means), self.means.shape)
        return int(i), int(j)

    def errors(self, alphas: FloatArray, gammas: FloatArray) -> FloatArray:
        """(a, g, number of K) mean errors; NaN where nothing was fitted."""
        errors = np.full((len(alphas), len(gammas), len(self.ks)), np.nan)
        for point, means in zip(self.points, self.means, strict=True):
            errors[alphas == point.alpha, gammas == point.gamma] = 1.0 - means
        return errors

    def table(self) -> dict[str, Any]:
        """One row for every point and K, in scikit-learn's columns."""
        k = len(self.ks)
        rows = self.scores.reshape(len(self.points) * k, -1)  # (p · number of K, folds)
        means = np.average(rows, axis=1)
        columns: dict[str, Any] = {
            "mean_fit_time": np.repeat(self.seconds, k),
            "mean_n_iter": np.repeat(self.n_iter, k),
            "param_alpha": np.repeat([point.alpha for point in self.points], k),
            "param_gamma": np.repeat([point.gamma for point in self.points], k),
            "param_n_neighbors": np.tile(self.ks, len(self.points)),
        }
        names = ("alpha", "gamma", "n_neighbors")
        settings = zip(*(columns[f"param_{name}"].tolist() for name in names), strict=True)
        columns["params"] = [dict(zip(names, values, strict=True)) for values in settings]
        columns |= {f"split{i}_test_score": column for i, column in enumerate(rows.T)}
        columns["mean_test_score"] = means
        columns["std_test_score"] = np.sqrt(np.average((rows - means[:, None]) ** 2, axis=1))
        columns["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
        return columns
