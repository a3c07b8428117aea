"""Candidates (a metric and a vote, or a forest), scored out of fold, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.automatic.metric_path import MetricName, Samples
from vicinal.kernels.cpu.class_neighbors import NeighborIndex, Neighbors
from vicinal.validation.folds import Fold
from vicinal.validation.out_of_fold import gather_out_of_fold
from vicinal.validation.schedule import Schedule, run_tasks
from vicinal.voting.boosting import BoostedLeaves
from vicinal.voting.forest import Forest, LeafRows
from vicinal.voting.global_linear import GlobalLines, line_of_features
from vicinal.voting.local_linear import LOCAL_ROWS, local_linear_weights
from vicinal.voting.row_weights import RowWeights, probabilities
from vicinal.voting.votes import (
    BOOSTED,
    GLOBAL_LINES,
    LEAVES,
    LINES,
    N_NEIGHBORS,
    OF_TREES,
    SLOPED,
    VoteName,
    rules,
    vote_weights,
)

BOOSTING = "boosting"
"""Configuration of boosted trees; its iterates are numbers of trees."""
LEAST_EXPLAINED = 0.1
"""Share of the variance that a line has to explain before votes are moved along one."""
CANDIDATES = 30
"""Candidates that may become members because they are the best."""
OF_EACH_FAMILY = 2
"""Candidates that may because they are the best of their configuration and of their kind of vote:
a committee gains from members that err differently."""
FIRST_MEMBERS = 3
ADDITIONS = 15
LOCAL_METRICS = 10
"""Metrics that local linear votes are tried with: the best ones under the other votes."""


@dataclass(frozen=True)
class Candidate:
    """A metric and how its neighbors vote."""

    metric: MetricName
    vote: VoteName
    n_neighbors: int

    @property
    def family(self) -> tuple[str, str]:
        """Its configuration, and whether its neighbors vote, are moved, or have a line."""
        if self.vote in SLOPED:
            return self.metric.configuration, "sloped"
        own = self.vote in (*OF_TREES, *LINES, *GLOBAL_LINES)
        return self.metric.configuration, self.vote if own else ""


@dataclass(frozen=True)
class Choice:
    """One member of the committee: a metric of every fold, and how its neighbors vote.

    Of a forest, whose vote is "leaves", ``iterate`` and ``n_neighbors`` are the rows that a leaf
    has at least; of boosted trees ``iterate`` is their number, and ``n_neighbors``, as for a line
    through all rows, is 1 and means nothing.
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
    """Out-of-fold losses of every candidate."""

    candidates: list[Candidate]
    losses: FloatArray
    """(k, l) mean losses of each candidate, by ``TuningRows.losses``."""
    neighbors: dict[tuple[MetricName, int], Neighbors]
    """Of every metric and fold."""
    shares: dict[Candidate, list[FloatArray]] = field(default_factory=dict)
    """Of lines and forests, for every fold: (t, c + 1) shares of its test rows."""

    def with_more(self, shares: dict[Candidate, list[FloatArray]], losses: FloatArray) -> Scores:
        """These and more candidates, with losses (k, l)."""
        return Scores(
            [*self.candidates, *shares],
            np.concatenate([self.losses, losses]),
            self.neighbors,
            self.shares | shares,
        )


def eligible(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The best of these candidates, and the best of each family; best first."""
    places: dict[tuple[str, str], int] = {}
    chosen = []
    for place, candidate in enumerate(ranked):
        places[candidate.family] = places.get(candidate.family, 0) + 1
        if place < CANDIDATES or places[candidate.family] <= OF_EACH_FAMILY:
            chosen.append(candidate)
    return chosen


@dataclass(frozen=True)
class Judge:
    """Rows, folds, and the metrics and forests per fold, by which candidates are judged."""

    samples: Samples
    folds: Sequence[Fold]
    metrics: dict[MetricName, list[FloatArray]]
    forests: dict[MetricName, list[Forest]]

    def neighbor_scores(self, schedule: Schedule) -> Scores:
        """Score all votes of neighbors; one search per metric and fold serves every K."""
        ks = self._ks
        tasks = [(name, fold) for name in self.metrics for fold in range(len(self.folds))]
        voters = self.samples.voters

        def search(which: tuple[MetricName, int]) -> tuple[Neighbors, FloatArray]:
            found = self._search(*which, max(ks) + 1)
            tested = voters[self.folds[which[1]].test]
            return found, np.array([tested.losses(P) for _, _, P in voters.trials(found, ks)])

        results = run_tasks(search, tasks, schedule)
        losses = np.array([loss for _, loss in results])  # (metrics · folds, rules, l)
        losses = losses.reshape(len(self.metrics), len(self.folds), -1, losses.shape[-1])
        candidates = [Candidate(name, vote, k) for name in self.metrics for vote, k in rules(ks)]
        found = {which: result[0] for which, result in zip(tasks, results, strict=True)}
        mean = losses.sum(axis=1).reshape(len(candidates), -1) / self._total_weight
        return Scores(candidates, mean, found)

    def with_lines(self, scores: Scores, schedule: Schedule) -> Scores:
        """Add local linear votes under the metrics that are best so far."""
        k = min([LOCAL_ROWS, *(len(fold.train) - 1 for fold in self.folds)])
        names, votes = self._best_metrics(scores), self.samples.voters.lines
        lines = [Candidate(name, vote, k) for name in names for vote in votes]
        return self._with_shares(scores, lines, schedule)

    def with_slopes(self, scores: Scores, schedule: Schedule) -> Scores:
        """Add votes that are moved along a line, under the metrics that are best so far.

        None are added where lines through all rows explain next to nothing out of fold.
        """
        names, ks, voters = self._best_metrics(scores), self._ks, self.samples.voters
        lines = [c.vote in GLOBAL_LINES for c in scores.candidates]
        tested = [voters[fold.test] for fold in self.folds]
        by_mean = sum(rows.losses(0.0 * rows.targets + rows.prior)[0] for rows in tested)
        most = (1.0 - LEAST_EXPLAINED) * float(by_mean) / self._total_weight
        if not scores.losses[lines, 0].min(initial=np.inf) < most:
            return scores

        def ask(fold: int) -> list[tuple[Candidate, FloatArray]]:
            test, X = self.folds[fold].test, self.samples.in_fold(fold)
            line = self._line(fold).values(X, voters.targets)
            return [
                (Candidate(name, vote, k), voters[test].losses(P))
                for name in names
                for vote, k, P in voters.sloped_trials(
                    scores.neighbors[name, fold], ks, line, line[test]
                )
            ]

        found = run_tasks(ask, range(len(self.folds)), schedule)
        losses = np.sum([[loss for _, loss in of_fold] for of_fold in found], axis=0)
        return Scores(
            scores.candidates + [candidate for candidate, _ in found[0]],
            np.concatenate([scores.losses, losses / self._total_weight]),
            scores.neighbors,
            scores.shares,
        )

    def with_global_lines(
        self, scores: Scores, configurations: Sequence[str], schedule: Schedule
    ) -> Scores:
        """Add lines through all rows, in the spaces that these metrics are the start of."""
        votes = self.samples.voters.global_lines
        lines = [Candidate(MetricName(name, 0), v, 1) for name in configurations for v in votes]
        return self._with_shares(scores, lines, schedule)

    def with_forests(self, scores: Scores, schedule: Schedule) -> Scores:
        """Add the votes of the rows in the leaves of forests, and what boosted trees predict."""
        leaves = [
            Candidate(name, BOOSTED, 1)
            if name.configuration == BOOSTING
            else Candidate(name, LEAVES, name.iterate)
            for name in self.forests
        ]
        return self._with_shares(scores, leaves, schedule)

    def row_weights(self, scores: Scores, candidate: Candidate, fold: int) -> RowWeights:
        """Row weights of the test rows of a fold, among all tuning rows."""
        samples, name, vote = self.samples, candidate.metric, candidate.vote
        voters, k, prior_votes = samples.voters, candidate.n_neighbors, samples.voters.prior_votes
        test, X = self.folds[fold].test, samples.in_fold(fold)
        if vote in OF_TREES:
            source = BoostedLeaves if vote == BOOSTED else LeafRows
            leaves = source(*self._in_trees(candidate, fold))
            return leaves.row_weights(self._features(fold)[test])
        if vote in GLOBAL_LINES:
            member = [(1.0, GLOBAL_LINES[vote], self.metrics[name][fold])]
            return GlobalLines(X, member, self._training_weights(fold)).row_weights(X[test])
        if vote in LINES:
            found, Z = self._search(name, fold, k + 1), X @ self.metrics[name][fold].T
            return local_linear_weights(
                found, Z[test], Z, voters.weights,
                k=k, ridge=LINES[vote], prior_votes=prior_votes,
            )  # fmt: skip
        near = scores.neighbors[name, fold]
        if vote in SLOPED:
            votes = vote_weights(near, voters.weights, SLOPED[vote], k, prior_votes)
            moves = self._line(fold).moves(votes, X[test])
            return RowWeights.weighted_sum([(1.0, votes), (1.0, moves)])
        return vote_weights(near, voters.weights, vote, k, prior_votes)

    def fold_shares(self, scores: Scores, candidate: Candidate, fold: int) -> FloatArray:
        """(t, c + 1) shares of the test rows of a fold: targets and prior by the row weights."""
        voters, queries = self.samples.voters, self._features(fold)[self.folds[fold].test]
        if candidate.vote == BOOSTED:  # rows need not be weighed to know their sum
            trees = BoostedLeaves(*self._in_trees(candidate, fold))
            return trees.shares(queries, voters.targets)
        return voters.shares(self.row_weights(scores, candidate, fold))

    def shares(self, scores: Scores, candidate: Candidate) -> FloatArray:
        """(n, c + 1) mean shares of targets and prior, for rows that were not learned from."""
        voters = self.samples.voters
        if candidate in scores.shares:
            of_folds = scores.shares[candidate]
        else:
            of_folds = [self.fold_shares(scores, candidate, f) for f in range(len(self.folds))]
        prior_alone = np.zeros((len(self.samples.X), len(voters.prior) + 1))
        prior_alone[:, -1] = 1.0
        return gather_out_of_fold(of_folds, self.folds, prior_alone)

    @property
    def _ks(self) -> tuple[int, ...]:
        """The K that are tried."""
        smallest = min(len(fold.train) for fold in self.folds)
        return tuple(k for k in N_NEIGHBORS if k < smallest) or (1,)

    def _features(self, fold: int) -> FloatArray:
        """(n, d) the rows without hat and kernel functions, which trees do not see."""
        return self.samples.in_fold(fold)[:, : self.samples.expansion.n_features]

    def _in_trees(
        self, candidate: Candidate, fold: int
    ) -> tuple[FloatArray, Forest, FloatArray, float]:
        """The rows, the trees of a fold, what each row counts there, and what the prior."""
        forest, prior_votes = self.forests[candidate.metric][fold], self.samples.voters.prior_votes
        return self._features(fold), forest, self._training_weights(fold), prior_votes

    def _training_weights(self, fold: int) -> FloatArray:
        """(n,) what each row counts where only the training rows of a fold vote."""
        voters, train = self.samples.voters, self.folds[fold].train
        weights = np.zeros(len(voters.weights))
        weights[train] = voters.weights[train]
        return weights

    def _line(self, fold: int) -> GlobalLines:
        """The line through all training rows of a fold."""
        X, weights = self.samples.in_fold(fold), self._training_weights(fold)
        return line_of_features(X, self.samples.expansion.n_features, weights)

    def _best_metrics(self, scores: Scores) -> list[MetricName]:
        """Those that further votes are tried with."""
        order = self.samples.voters.rank(scores.losses)
        return list(dict.fromkeys(scores.candidates[i].metric for i in order))[:LOCAL_METRICS]

    @property
    def _total_weight(self) -> float:
        return float(sum(self.samples.voters.weights[fold.test].sum() for fold in self.folds))

    def _search(self, name: MetricName, fold: int, k: int) -> Neighbors:
        Z = self.samples.in_fold(fold) @ self.metrics[name][fold].T
        train, test = self.folds[fold]
        return NeighborIndex(Z[train], ids=train).nearest(Z[test], k)

    def _with_shares(
        self, scores: Scores, candidates: list[Candidate], schedule: Schedule
    ) -> Scores:
        """The scores with these candidates too."""
        voters, f = self.samples.voters, len(self.folds)

        def ask(which: tuple[Candidate, int]) -> FloatArray:
            return self.fold_shares(scores, *which)

        asked = [(candidate, fold) for candidate in candidates for fold in range(f)]
        found = run_tasks(ask, asked, schedule)
        shares = {c: found[i * f : (i + 1) * f] for i, c in enumerate(candidates)}
        losses = np.zeros((len(candidates), scores.losses.shape[1]))
        for i, candidate in enumerate(candidates):
            for of_fold, fold in zip(shares[candidate], self.folds, strict=True):
                P = probabilities(voters.calibrated(of_fold, voters.no_calibration), voters.prior)
                losses[i] += voters[fold.test].losses(P) / self._total_weight
        return scores.with_more(shares, losses)


def greedy_weights(
    predictions: FloatArray, targets: FloatArray, row_weights: FloatArray
) -> FloatArray:
    r"""Weights of the candidates: counts of a greedy choice with replacement.

    Starts with the first three and adds fifteen, each time the one that most lowers the squared
    error :math:`\sum_i w_i \|\bar p_i - y_i\|^2` of the mean (of classes, the Brier score). That is
    quadratic in the weights, so that the inner products of the candidates are all it needs.

    Parameters
    ----------
    predictions : (k, n, c) of the candidates out of fold, best first
    targets : (n, c) indicators of the classes, or numbers
    row_weights : (n,)

    Returns
    -------
    weights : (k,) that sum to 1
    """
    products, hits = _products(predictions, targets, row_weights)
    return _greedy(products, hits)


def cross_fitted_weights(
    predictions: FloatArray,
    targets: FloatArray,
    row_weights: FloatArray,
    parts: Sequence[IndexArray],
) -> FloatArray:
    """(parts, k) the greedy weights without the rows of each part: what they are worth there.

    Parameters
    ----------
    predictions, targets, row_weights : of :func:`greedy_weights`
    parts : rows, each in one of the parts
    """
    sums = [_products(predictions[:, rows], targets[rows], row_weights[rows]) for rows in parts]
    products, hits = (np.sum(of_parts, axis=0) for of_parts in zip(*sums, strict=True))
    return np.array([_greedy(products - P, hits - h) for P, h in sums])


def with_few_metrics(
    predictions: FloatArray,
    targets: FloatArray,
    row_weights: FloatArray,
    metrics: Sequence[MetricName | None],
    most: int,
) -> IndexArray:
    """The candidates of as many metrics, at most, as the members may have.

    From the metrics of :func:`greedy_weights` the one is left out without which the error grows
    least, until they are few enough.

    Parameters
    ----------
    predictions, targets, row_weights : of :func:`greedy_weights`
    metrics : of each candidate; None of a forest, which stays
    most : metrics that are left
    """
    products, hits = _products(predictions, targets, row_weights)
    names = list(dict.fromkeys(name for name in metrics if name is not None))
    places = np.array([-1 if name is None else names.index(name) for name in metrics])

    def choose(left: IndexArray) -> tuple[float, IndexArray]:
        weights = _greedy(products[np.ix_(left, left)], hits[left])
        error = weights @ products[np.ix_(left, left)] @ weights - 2.0 * weights @ hits[left]
        used = np.unique(places[left[weights > 0]])
        return float(error), used[used >= 0]

    left = np.arange(len(places))
    used = choose(left)[1]
    while len(used) > most:
        trials = [left[places[left] != place] for place in used]
        results = [choose(trial) for trial in trials]
        best = min(range(len(trials)), key=lambda i: results[i][0])
        left, used = trials[best], results[best][1]
    return left[(places[left] < 0) | np.isin(places[left], used)]


def _products(
    predictions: FloatArray, targets: FloatArray, row_weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Inner products (k, k) of the candidates' predictions, and (k,) with the targets."""
    k, n, c = predictions.shape
    roots = np.sqrt(row_weights)[:, None]
    flat = (predictions * roots).reshape(k, n * c)
    return flat @ flat.T, flat @ (targets * roots).ravel()


def _greedy(products: FloatArray, hits: FloatArray) -> FloatArray:
    """(k,) weights of the greedy choice."""
    counts = np.zeros(len(hits))
    counts[:FIRST_MEMBERS] = 1.0
    for _ in range(ADDITIONS):
        size = counts.sum() + 1.0
        # Error of (Σ counts P + P_j)/size, less what does not depend on j.
        quadratic = (2.0 * products @ counts + np.diag(products)) / size**2
        counts[np.argmin(quadratic - 2.0 * hits / size)] += 1.0
    return np.asarray(counts / counts.sum())
