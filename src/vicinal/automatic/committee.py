"""Candidates (a metric and a vote, or a forest), scored out of fold, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.metric_path import MetricName, Samples
from vicinal.kernels.cpu.class_neighbors import NeighborIndex, Neighbors
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import gather_out_of_fold
from vicinal.validation.schedule import Schedule, run_tasks
from vicinal.voting.forest import Forest, LeafRows
from vicinal.voting.local_linear import LOCAL_ROWS, local_linear_weights
from vicinal.voting.row_weights import RowWeights, VotingRows, calibrate, probabilities
from vicinal.voting.votes import (
    LEAVES,
    LOCAL_LINEAR,
    N_NEIGHBORS,
    VoteName,
    all_votes,
    rules,
    vote_weights,
)

LOG_LOSS_WEIGHT = 0.3
CANDIDATES = 50
FIRST_MEMBERS = 3
ADDITIONS = 15
LOCAL_METRICS = 10
"""Metrics that local linear votes are tried with: the best ones under the other votes."""
EXPONENTS = np.exp(np.linspace(np.log(0.5), np.log(3.0), 61))
EXPONENT_SPREAD = 0.25
"""How far the logarithm of the exponent is from 0 before any row is seen, about."""
TINY = 1e-12  # a class of weight 0 has no prior


@dataclass(frozen=True)
class Candidate:
    """A metric and how its neighbors vote."""

    metric: MetricName
    vote: VoteName
    n_neighbors: int


@dataclass(frozen=True)
class Choice:
    """One member of the committee: a metric of every fold, and how its neighbors vote.

    Of a forest, whose vote is "leaves", ``iterate`` and ``n_neighbors`` are the rows that a leaf
    has at least.
    """

    configuration: str
    iterate: int
    vote: VoteName
    n_neighbors: int
    weight: float
    metrics: tuple[int, ...]
    """Indices into ``metrics_``, or of a forest into ``forests_``, one per fold."""


@dataclass(frozen=True)
class Scores:
    """Out-of-fold error and log-loss of every candidate."""

    candidates: list[Candidate]
    errors: FloatArray
    log_losses: FloatArray
    neighbors: dict[tuple[MetricName, int], Neighbors]
    """Of every metric and fold."""
    shares: dict[Candidate, list[FloatArray]] = field(default_factory=dict)
    """Of lines and forests, for every fold: (t, c + 1) class shares of its test rows."""

    def with_more(self, shares: dict[Candidate, list[FloatArray]], losses: FloatArray) -> Scores:
        """These and more candidates, with errors and log-losses (k, 2)."""
        return Scores(
            [*self.candidates, *shares],
            np.r_[self.errors, losses[:, 0]],
            np.r_[self.log_losses, losses[:, 1]],
            self.neighbors,
            self.shares | shares,
        )


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
        Z = samples.in_fold(f) @ metrics[name][f].T
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
    tested = voters[test]
    return np.array([_loss_sums(P, tested) for _, _, P in all_votes(neighbors, voters, ks)])


def _loss_sums(P: FloatArray, tested: VotingRows) -> FloatArray:
    """(2,) weighted sums of errors and of log-losses of the probabilities P (t, c)."""
    wrong = P.argmax(axis=1) != tested.codes
    truth = np.maximum(P[np.arange(len(P)), tested.codes], TINY)
    return np.array([tested.weights @ wrong, -tested.weights @ np.log(truth)])


def score_lines(
    samples: Samples,
    folds: Sequence[Fold],
    metrics: dict[MetricName, list[FloatArray]],
    scores: Scores,
    schedule: Schedule,
) -> Scores:
    """Add local linear votes under the metrics that are best so far."""
    k = min([LOCAL_ROWS, *(len(fold.train) - 1 for fold in folds)])
    order = rank(scores.errors, scores.log_losses)
    names = list(dict.fromkeys(scores.candidates[i].metric for i in order))[:LOCAL_METRICS]
    tasks = [(name, f) for name in names for f in range(len(folds))]

    def fit_lines(task: tuple[MetricName, int]) -> RowWeights:
        name, f = task
        Z = samples.in_fold(f) @ metrics[name][f].T
        test, train = Z[folds[f].test], folds[f].train
        found = NeighborIndex(Z[train], train).nearest(test, k + 1)
        return local_linear_weights(found, test, Z, samples.voters.weights, k=k)

    candidates = [Candidate(name, LOCAL_LINEAR, k) for name in names]
    return _with_shares(samples, folds, scores, candidates, run_tasks(fit_lines, tasks, schedule))


def score_forests(
    samples: Samples,
    folds: Sequence[Fold],
    forests: dict[MetricName, list[Forest]],
    scores: Scores,
    schedule: Schedule,
) -> Scores:
    """Add the votes of the rows in the leaves of forests (one per name and fold)."""

    def ask(task: tuple[MetricName, int]) -> RowWeights:
        name, f = task
        train, weights = folds[f].train, np.zeros(len(samples.X))
        weights[train] = samples.voters.weights[train]
        X = samples.in_fold(f)
        return LeafRows(X, forests[name][f], weights).row_weights(X[folds[f].test])

    tasks = [(name, f) for name in forests for f in range(len(folds))]
    candidates = [Candidate(name, LEAVES, name.iterate) for name in forests]
    return _with_shares(samples, folds, scores, candidates, run_tasks(ask, tasks, schedule))


def _with_shares(
    samples: Samples,
    folds: Sequence[Fold],
    scores: Scores,
    candidates: list[Candidate],
    weights: list[RowWeights],
) -> Scores:
    """The scores with these candidates too, of row weights by candidate and fold."""
    voters, f = samples.voters, len(folds)
    found = [of_fold.class_shares(voters) for of_fold in weights]
    shares = {c: found[i * f : (i + 1) * f] for i, c in enumerate(candidates)}
    total = sum(voters.weights[fold.test].sum() for fold in folds)
    losses = np.zeros((len(candidates), 2))
    for i, candidate in enumerate(candidates):
        for of_fold, fold in zip(shares[candidate], folds, strict=True):
            P = probabilities(calibrate(of_fold, 1.0), voters.prior)
            losses[i] += _loss_sums(P, voters[fold.test]) / total
    return scores.with_more(shares, losses)


def out_of_fold(
    samples: Samples, folds: Sequence[Fold], scores: Scores, candidate: Candidate
) -> FloatArray:
    """(n, c + 1) mean shares of classes and prior, for rows that were not learned from."""
    voters, vote, k = samples.voters, candidate.vote, candidate.n_neighbors
    if candidate in scores.shares:
        shares = iter(scores.shares[candidate])
    else:
        found = (scores.neighbors[candidate.metric, f] for f in range(len(folds)))
        weights = (vote_weights(neighbors, voters.weights, vote, k) for neighbors in found)
        shares = (of_fold.class_shares(voters) for of_fold in weights)
    prior_alone = np.zeros((len(samples.X), len(voters.prior) + 1))
    prior_alone[:, -1] = 1.0
    return gather_out_of_fold(shares, folds, prior_alone)


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


def fit_exponent(shares: FloatArray, tested: VotingRows) -> float:
    r"""The exponent τ of :func:`~vicinal.voting.row_weights.calibrate` for out-of-fold shares.

    It minimizes the log-loss, summed over the rows, plus :math:`(\log \tau)^2 / (2 \sigma^2)`:
    few rows say little about it, and it stays near 1.
    """
    losses = [
        _loss_sums(probabilities(calibrate(shares, float(tau)), tested.prior), tested)[1]
        for tau in EXPONENTS
    ]
    penalized = np.array(losses) + np.log(EXPONENTS) ** 2 / (2.0 * EXPONENT_SPREAD**2)
    return float(EXPONENTS[np.argmin(penalized)])


def calibration_error(P: FloatArray, tested: VotingRows, bins: int = 10) -> float:
    """Expected calibration error: |confidence − accuracy|, averaged over bins of confidence."""
    confidence = P.max(axis=1)
    gaps = tested.weights * (confidence - (P.argmax(axis=1) == tested.codes))
    places = np.minimum((confidence * bins).astype(np.intp), bins - 1)
    return float(np.abs(np.bincount(places, weights=gaps)).sum() / tested.weights.sum())


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
        *_calibration(model),
        "Chosen:",
        *_table(model.chosen_),
    ]
    if model.timed_out_:
        lines.append("The time limit ended the search early: this is the best found until then.")
    return "\n".join(lines)


def _calibration(model: Any) -> list[str]:
    if model.exponent_ == 1.0 or model.calibration_error_ is None:
        return []
    before, after = model.calibration_error_
    gained = f"out-of-fold calibration error {before:.4f} before, {after:.4f} after"
    return [f"Probabilities: exponent {model.exponent_:.2f}, {gained}."]


def _table(chosen: Sequence[Choice]) -> list[str]:
    head = f"  {'weight':>6}  {'configuration':<24} {'iterate':>7}  {'vote':<12} {'K':>3}"
    rows = [
        f"  {c.weight:>6.3f}  {c.configuration:<24} {c.iterate:>7}  {c.vote:<12} {c.n_neighbors:>3}"
        for c in chosen
    ]
    return [head, *rows]
