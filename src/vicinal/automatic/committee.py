"""Candidates (a metric and a vote), scored out of fold, and the committee of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.metric_path import MetricName, Samples
from vicinal.kernels.cpu.class_neighbors import NeighborIndex, Neighbors
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import gather_out_of_fold
from vicinal.validation.schedule import Schedule, run_tasks
from vicinal.voting.row_weights import VotingRows
from vicinal.voting.votes import N_NEIGHBORS, VoteName, all_votes, rules, vote_weights

LOG_LOSS_WEIGHT = 0.3
CANDIDATES = 50
FIRST_MEMBERS = 3
ADDITIONS = 15
TINY = 1e-12  # a class of weight 0 has no prior


@dataclass(frozen=True)
class Candidate:
    """A metric and how its neighbors vote."""

    metric: MetricName
    vote: VoteName
    n_neighbors: int


@dataclass(frozen=True)
class Choice:
    """One member of the committee: a metric of every fold, and how its neighbors vote."""

    configuration: str
    iterate: int
    vote: VoteName
    n_neighbors: int
    weight: float
    metrics: tuple[int, ...]
    """Indices into ``metrics_``, one per fold."""


@dataclass(frozen=True)
class Scores:
    """Out-of-fold error and log-loss of every candidate."""

    candidates: list[Candidate]
    errors: FloatArray
    log_losses: FloatArray
    neighbors: dict[tuple[MetricName, int], Neighbors]
    """Of every metric and fold."""


def score_candidates(
    samples: Samples,
    folds: Sequence[Fold],
    metrics: dict[MetricName, list[FloatArray]],
    schedule: Schedule,
) -> Scores:
    """Score all candidates; one neighbor search per metric and fold gives the votes for every K."""
    smallest = min(len(fold.train) for fold in folds)
    ks = tuple(k for k in N_NEIGHBORS if k < smallest) or (1,)
    names = [(name, fold) for name in metrics for fold in range(len(folds))]

    def search(task: tuple[MetricName, int]) -> tuple[Neighbors, FloatArray]:
        name, f = task
        Z = samples.X @ metrics[name][f].T
        index = NeighborIndex(Z[folds[f].train], ids=folds[f].train)
        found = index.nearest(Z[folds[f].test], max(ks) + 1)
        return found, _losses(samples.voters, folds[f].test, found, ks)

    results = run_tasks(search, names, schedule)
    losses = np.sum(
        np.reshape([loss for _, loss in results], (len(metrics), len(folds), -1, 2)), axis=1
    )  # (metrics, rules, 2)
    total = sum(samples.voters.weights[fold.test].sum() for fold in folds)
    candidates = [Candidate(name, vote, k) for name in metrics for vote, k in rules(ks)]
    errors, log_losses = losses.reshape(-1, 2).T / total
    found = {task: result[0] for task, result in zip(names, results, strict=True)}
    return Scores(candidates, errors, log_losses, found)


def _losses(
    voters: VotingRows, test: IndexArray, neighbors: Neighbors, ks: Sequence[int]
) -> FloatArray:
    """(rules, 2) weighted sums of errors and of log-losses over the test rows, for every vote."""
    codes, weights = voters.codes[test], voters.weights[test]
    rows = np.arange(len(test))
    sums = []
    for _, _, P in all_votes(neighbors, voters, ks):
        wrong = P.argmax(axis=1) != codes
        sums.append((weights @ wrong, -weights @ np.log(np.maximum(P[rows, codes], TINY))))
    return np.array(sums)


def out_of_fold(
    samples: Samples, folds: Sequence[Fold], scores: Scores, candidate: Candidate
) -> FloatArray:
    """(n, c) the mean probabilities that a candidate gives to rows that it was not learned from."""
    voters, vote, k = samples.voters, candidate.vote, candidate.n_neighbors
    found = (scores.neighbors[candidate.metric, f] for f in range(len(folds)))
    weights = (vote_weights(neighbors, voters.weights, vote, k) for neighbors in found)
    predictions = (of_fold.class_probabilities(voters) for of_fold in weights)
    prior = np.tile(voters.prior, (len(samples.X), 1))
    return gather_out_of_fold(predictions, folds, prior)


def rank(errors: FloatArray, log_losses: FloatArray) -> IndexArray:
    """Candidates from best to worst by error + 0.3 log-loss; the first wins ties."""
    return np.argsort(errors + LOG_LOSS_WEIGHT * log_losses, kind="stable")


def greedy_weights(
    probabilities: FloatArray, codes: IndexArray, row_weights: FloatArray
) -> FloatArray:
    r"""Weights of the candidates: counts of a greedy choice with replacement.

    Starts with the first three and adds fifteen, each time the one that most lowers the Brier
    score :math:`\sum_i w_i \|\bar p_i - y_i\|^2` of the mean. That is quadratic in the weights, so
    that the inner products of the candidates are all it needs.

    Parameters
    ----------
    probabilities : (k, n, c) out-of-fold probabilities of the candidates, best first
    codes : (n,) the classes
    row_weights : (n,)

    Returns
    -------
    weights : (k,) that sum to 1
    """
    k, n, c = probabilities.shape
    roots = np.sqrt(row_weights)[:, None]
    flat = (probabilities * roots).reshape(k, n * c)
    target = np.zeros((n, c))
    target[np.arange(n), codes] = 1.0
    products = flat @ flat.T  # (k, k)
    hits = flat @ (target * roots).ravel()  # (k,)
    counts = np.zeros(k)
    counts[:FIRST_MEMBERS] = 1.0
    for _ in range(ADDITIONS):
        size = counts.sum() + 1.0
        # Brier of (Σ counts P + P_j)/size, less what does not depend on j.
        quadratic = (2.0 * products @ counts + np.diag(products)) / size**2
        counts[np.argmin(quadratic - 2.0 * hits / size)] += 1.0
    return np.asarray(counts / counts.sum())


def describe(model: Any) -> str:
    """The report of a fitted :class:`~vicinal.ANNClassifier`."""
    results = model.cv_results_
    n_metrics = len(set(zip(results["configuration"], results["iterate"], strict=True)))
    euclid = results["configuration"] == "euclid"
    single = 1.0 - float(results["mean_test_error"][results["rank_test_score"] == 1][0])
    size = f"{model.n_samples_fit_} rows, {model.n_features_in_} features"
    lines = [
        f"ANNClassifier, {model.mode}: {size}, {len(model.classes_)} classes",
        f"Fitted in {model.fit_time_:.1f} s, tuned on {len(model.oof_rows_)} rows.",
        f"Tried {len(euclid)} candidates: {n_metrics} metrics with every K and vote.",
        "Out-of-fold accuracy:",
        f"  {'committee' if model.mode == 'committee' else 'chosen':<24} {model.best_score_:.4f}",
        f"  {'best single candidate':<24} {single:.4f}",
        f"  {'best Euclidean K-NN':<24} {1.0 - results['mean_test_error'][euclid].min():.4f}",
        f"  {'largest class':<24} {float(np.max(model.prior_)):.4f}",
        "Chosen:",
        *_table(model.chosen_),
    ]
    if model.timed_out_:
        lines.append("The time limit ended the search early: this is the best found until then.")
    return "\n".join(lines)


def _table(chosen: Sequence[Choice]) -> list[str]:
    head = f"  {'weight':>6}  {'configuration':<24} {'iterate':>7}  {'vote':<12} {'K':>3}"
    rows = [
        f"  {c.weight:>6.3f}  {c.configuration:<24} {c.iterate:>7}  {c.vote:<12} {c.n_neighbors:>3}"
        for c in chosen
    ]
    return [head, *rows]
