"""One linear map that keeps the neighborhoods of a committee, and what that costs.

A committee gives every row i a weight W_ij for each training row j. The map L is to give the same
weights by distances alone: with p_ij ∝ exp(−‖L(x_i − x_j)‖²) over all j ≠ i, it minimizes

    J = Σ_i KL(W_i ‖ p_i) + const = Σ_ij W_ij d_ij + Σ_i ln Σ_{j≠i} exp(−d_ij),

which is the objective of MCML with other weights than those of the classes: convex in M = LᵀL.
No row has a weight in its own prediction.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from sklearn.model_selection import KFold

from vicinal._typing import FloatArray
from vicinal.automatic.classifier import ANNClassifier
from vicinal.kernels import make_kernel
from vicinal.kernels.cpu.class_neighbors import NeighborIndex
from vicinal.learners.initialization import scale_for_perplexity
from vicinal.learners.labeled_data import center_and_scale
from vicinal.learners.rank_one_metrics import factor
from vicinal.objective.mcml_objective import MCMLObjective
from vicinal.objective.neighbor_sets import build_comparisons
from vicinal.objective.parametrization import Factor
from vicinal.solvers import lbfgs
from vicinal.voting.votes import vote_weights

MAP_ROWS = 3000
"""Training rows that the map is learned on, at most: its cost grows with their square."""
MAX_ITER = 100
TOL = 1e-5
NEIGHBORS = 50
"""Neighbors that vote when the map is judged, each with exp(−d)."""
FOLDS = 3
PERPLEXITY = 20.0


@dataclass(frozen=True)
class CommitteeMap:
    """The map of a committee, and how well votes by its distances replace the committee."""

    L: FloatArray
    """(m, d) z = L x; neighbors vote with exp(−‖z − z′‖²)."""
    n_rows: int
    """Training rows that it was learned on."""
    committee_accuracy: float
    """Accuracy of the committee out of fold, on these rows."""
    map_accuracy: float
    """Accuracy of votes by the map, on parts of these rows that it was not learned on."""


def committee_map(committee: ANNClassifier, seed: int = 0) -> CommitteeMap:
    """Learn the map from rows that the committee was judged on, and judge it by cross-validation.

    Parameters
    ----------
    committee : fitted on numbers, without an encoder of columns
    seed : of the sample of ``MAP_ROWS`` rows, and of the folds
    """
    rng = np.random.RandomState(seed)
    judged = rng.permutation(committee.oof_rows_)[:MAP_ROWS]
    model = copy(committee)
    if len(judged) < committee.n_samples_fit_:
        model.forget_rows(np.setdiff1d(np.arange(committee.n_samples_fit_), judged))
    X, codes = np.asarray(model.X_fit_, dtype=np.float64), model.y_fit_
    weights, _ = model.vote_weights()
    start = factor(model.get_mahalanobis_matrix())
    right = np.empty(len(X), dtype=bool)
    for train, test in KFold(FOLDS, shuffle=True, random_state=rng).split(X):
        L = learn_map(X[train], weights[train][:, train], start)
        k = min(NEIGHBORS, len(train))
        found = NeighborIndex(X[train] @ L.T).nearest(X[test] @ L.T, k)
        votes = vote_weights(found, np.ones(len(train)), "soft", k, prior_votes=0.0)
        P = votes.to_sparse(len(train)) @ np.eye(len(model.classes_))[codes[train]]
        right[test] = P.argmax(axis=1) == codes[test]
    out_of_fold = model.oof_proba_.argmax(axis=1) == codes[model.oof_rows_]
    return CommitteeMap(
        L=learn_map(X, weights, start),
        n_rows=len(X),
        committee_accuracy=float(out_of_fold.mean()),
        map_accuracy=float(right.mean()),
    )


def learn_map(X: FloatArray, weights: csr_array, start: FloatArray) -> FloatArray:
    """L (m, d) whose soft neighbors have the weights (n, n) of each row, 0 for itself.

    Parameters
    ----------
    X : (n, d) rows
    weights : (n, n) what each row is to weigh in the prediction of each; negative ones are taken
        as 0, and the rows are divided by their sums
    start : (m, d) where to start, at any scale
    """
    X, unit = center_and_scale(X)
    W = weights.maximum(0.0)
    sums = W.sum(axis=1)
    W = csr_array(W.multiply(1.0 / np.where(sums > 0, sums, 1.0)[:, None]))
    # Two sets, it does not matter which: the objective is about all other rows together.
    comparisons = build_comparisons(X, np.array([0, len(X) // 2, len(X)]))
    start = start / np.abs(X @ start.T).max()
    start = start * np.sqrt(scale_for_perplexity(X @ start.T, PERPLEXITY))
    problem = MCMLObjective(X, comparisons, make_kernel(comparisons, "auto"), Factor(), _pull(X, W))
    return lbfgs(problem, start, max_iter=MAX_ITER, tol=TOL).params / unit


def _pull(X: FloatArray, W: csr_array) -> FloatArray:
    """(d, d) Σ_ij W_ij (x_i − x_j)(x_i − x_j)ᵀ."""
    crossed = X.T @ (W @ X)
    degrees = W.sum(axis=1) + W.sum(axis=0)
    return np.asarray((X.T * degrees) @ X - crossed - crossed.T)
