"""The paper's claims beside what was measured: the text of docs/claims.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vicinal.experiments import figure2, figure3
from vicinal.experiments.paper_values import MISPRINTS
from vicinal.experiments.statistics import duel
from vicinal.experiments.store import Store
from vicinal.experiments.summary import Summary, compare, summarize
from vicinal.experiments.tables import dataset_label, markdown_table, method_label

OURS = ("pnca", "ann+", "ann-")
BASELINES = ("nca", "lmnn", "itml", "ldml", "scml", "rvml", "gmml", "boostmetric")
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Verdict:
    """What was measured, and what that says about a claim."""

    measured: str
    verdict: str


NOT_MEASURED = Verdict("no complete results", "not measured yet")

TESTED = """
Fig. 1: no metric puts an impostor in the triangle of a sample and its two targets outside \
| test_hard_region.py \
| holds, and for more: the parallelogram of the targets and their reflections is hard
Lemma 1: the mean of the K smallest distances is discontinuous in M | test_lemma_1.py \
| **does not hold**: it is continuous, and not differentiable at swaps
Lemmas 2 and 3: limits, monotonicity, a γ for every K | test_lemma_2_and_3.py | holds
Lemma 4: convex for α < 0 | test_convexity.py | holds for convex increasing losses
α → −∞ is LMNN | test_lmnn_limit.py | **half**: the zero-loss sets agree, the objectives do not
Remark 5: α = 1 and ℓ(x) = x is NCA | test_nca_is_a_special_case.py \
| **does not hold as worded**: it is the sigmoid loss with plain soft averages
Remark 6: pairwise constraints are a special case | test_pairwise_constraints.py | holds
Algorithm 1 works as printed | test_algorithm_1.py | holds
"""
"""Claim, file in tests/paper, verdict."""


def claims_page(store: Store) -> str:
    """docs/claims.md, every number of it from the results.

    Parameters
    ----------
    store : results and measurements
    """
    rows = []
    summaries = [summarize(store, protocol) for protocol in ("honest", "paper")]
    for text, judge in _TABLE_CLAIMS:
        for summary in summaries:
            found = judge(summary)
            rows.append([text, summary.protocol, found.measured, found.verdict])
    for text, measure in _FIGURE_CLAIMS:
        found = measure(store)
        rows.append([text, "", found.measured, found.verdict])
    lines = [line.split("|") for line in TESTED.strip().splitlines()]
    tested = [[text.strip(), f"`tests/paper/{t.strip()}`", v.strip()] for text, t, v in lines]
    return _TEXT.format(
        measured=markdown_table(
            ["claim", "protocol", "measured", "verdict"], rows, "--- --- --- ---"
        ),
        automatic=_automatic(summaries[0]),
        tested=markdown_table(["claim", "test", "verdict"], tested, "--- --- ---"),
    )


# ------------------------------------------------------------------------- claims of Table 2


def _best_counts(summary: Summary, ours: tuple[str, ...]) -> tuple[int, int]:
    """Data sets where the best of the paper's methods is one of `ours`; complete data sets."""
    methods = (*BASELINES, *OURS)
    complete = summary.complete(methods)
    best = 0
    for name in complete:
        means = {m: round(summary.cells[name, m].mean, 2) for m in methods}
        best += any(means[m] == max(means.values()) for m in ours)
    return best, len(complete)


def _ours_are_best(summary: Summary) -> Verdict:
    best, n = _best_counts(summary, OURS)
    if not n:
        return NOT_MEASURED
    expected = len(OURS) / (len(OURS) + len(BASELINES)) * n
    return Verdict(
        f"one of them is best on {best} of {n} data sets (by chance {expected:.1f})",
        "holds" if best > n / 2 else "**does not hold**",
    )


def _each_has_its_sets(summary: Summary) -> Verdict:
    (plus, n), (minus, _) = _best_counts(summary, ("ann+",)), _best_counts(summary, ("ann-",))
    if not n:
        return NOT_MEASURED
    wins = _duel(summary, "ann+", "ann-")
    measured = f"best of all: ANN⁺ on {plus}, ANN⁻ on {minus} of {n}; against each other {wins}"
    return Verdict(measured, "holds" if plus and minus else "**does not hold**")


def _beats(first: str, second: str) -> Callable[[Summary], Verdict]:
    def judge(summary: Summary) -> Verdict:
        names = summary.complete((first, second))
        if not names:
            return NOT_MEASURED
        scores = summary.scores(names, (first, second))
        found = duel(scores[:, 0], scores[:, 1])
        gain = float((scores[:, 0] - scores[:, 1]).mean())
        measured = (
            f"{found} wins/ties/losses on {len(scores)} data sets, mean difference "
            f"{gain:+.2f} points, Wilcoxon p = {found.p:.2g}"
        )
        if found.wins <= found.losses:
            return Verdict(measured, "**does not hold**")
        sure = found.p < SIGNIFICANT
        return Verdict(measured, "holds" if sure else "in tendency; it may be chance")

    return judge


def _duel(summary: Summary, first: str, second: str) -> str:
    scores = summary.scores(summary.complete((first, second)), (first, second))
    return f"{duel(scores[:, 0], scores[:, 1])} wins/ties/losses"


def _printed_values(summary: Summary) -> Verdict:
    gaps = [
        cell.mean - cell.paper.mean
        for key, cell in summary.cells.items()
        if cell.paper is not None and cell.n and key not in MISPRINTS
    ]
    if not gaps:
        return NOT_MEASURED
    near = sum(abs(gap) <= 2.0 for gap in gaps)
    measured = (
        f"{near} of {len(gaps)} cells within 2 points of the printed mean; median difference "
        f"{np.median(gaps):+.2f}, of absolute values {np.median(np.abs(gaps)):.2f}"
    )
    return Verdict(measured, "holds" if near > 0.9 * len(gaps) else "only in part")


# -------------------------------------------------------------------------- claims of figures


def _faster_than_lmnn(store: Store) -> Verdict:
    measured = figure3.timings(store)
    texts, factors = [], []
    for method in ("ann+", "ann-"):
        ratios = figure3.ratios(measured, method)
        if not ratios:
            return NOT_MEASURED
        values = np.array(list(ratios.values()))
        factors.append(float(np.exp(np.log(values).mean())))
        texts.append(
            f"{method_label(method)}: LMNN takes {factors[-1]:.2g} times as long (geometric mean "
            f"of {len(values)} data sets; {values.min():.2g} to {values.max():.2g})"
        )
    holds = min(factors) >= 10
    return Verdict("; ".join(texts), "holds" if holds else "**does not hold** for this LMNN")


def _minus_is_faster(store: Store) -> Verdict:
    measured = figure3.timings(store)
    names = sorted({name for name, m in measured if m == "ann+" and (name, "ann-") in measured})
    if not names:
        return NOT_MEASURED
    faster = sum(measured[n, "ann-"].mean < measured[n, "ann+"].mean for n in names)
    return Verdict(
        f"ANN⁻ is the faster one on {faster} of {len(names)} data sets",
        "holds" if faster > len(names) / 2 else "**does not hold**",
    )


def _tuned_separately(store: Store) -> Verdict:
    texts, losses = [], []
    for method in ("ann-", "ann+"):
        study = figure2.study(store, method)
        if study is None:
            return NOT_MEASURED
        accuracy = 100 * study.alpha_gamma  # (α, γ)
        middle = figure2.EXPONENTS.index(0)
        alpha = int(accuracy[:, middle].argmax())
        separate = accuracy[alpha].max()
        losses.append(float(accuracy.max() - separate))
        texts.append(
            f"{method_label(method)}: α at γ = 1, then γ, gives {separate:.2f} %, "
            f"the whole grid {accuracy.max():.2f} %"
        )
    holds = max(losses) < 0.5
    return Verdict(
        "; ".join(texts), "holds on German" if holds else "costs more than half a point on German"
    )


def _same_k(store: Store) -> Verdict:
    texts, spreads = [], []
    for method in ("ann-", "ann+"):
        study = figure2.study(store, method)
        if study is None:
            return NOT_MEASURED
        summits = study.gamma_k.argmax(axis=1) + 1
        low, high = np.percentile(summits, [25, 75])
        spreads.append(high - low)
        texts.append(
            f"{method_label(method)}: summits from K = {summits.min()} to {summits.max()}, "
            f"half of them between {low:.0f} and {high:.0f}"
        )
    return Verdict("; ".join(texts), "holds" if max(spreads) <= 10 else "**does not hold**")


_TABLE_CLAIMS: tuple[tuple[str, Callable[[Summary], Verdict]], ...] = (
    ("Table 2: PNCA, ANN⁺ and ANN⁻ are best on most data sets", _ours_are_best),
    ("Table 2: some data sets are ANN⁺'s, others ANN⁻'s", _each_has_its_sets),
    ("Table 2: ANN⁻ is better than LMNN", _beats("ann-", "lmnn")),
    ("Table 2: PNCA is better than NCA", _beats("pnca", "nca")),
    ("Table 2: the printed accuracies", _printed_values),
)
_FIGURE_CLAIMS: tuple[tuple[str, Callable[[Store], Verdict]], ...] = (
    ("Fig. 3: ANN is an order of magnitude faster than LMNN", _faster_than_lmnn),
    ("Fig. 3: ANN⁻ is faster than ANN⁺ on most data sets", _minus_is_faster),
    ("Fig. 2: α and γ can be tuned separately", _tuned_separately),
    ("Fig. 2: the best K does not depend on γ", _same_k),
)


def _automatic(summary: Summary) -> str:
    comparison = compare(summary)
    if comparison.champion != "auto" or not comparison.duels:
        return "No complete results yet."
    n = len(comparison.datasets)
    order = np.argsort(comparison.ranks, kind="stable")
    ranks = [f"{method_label(comparison.methods[i])} {comparison.ranks[i]:.2f}" for i in order]
    rows = [[method_label(m), str(d), f"{d.p:.3g}"] for m, d in comparison.duels.items()]
    names = ", ".join(map(dataset_label, comparison.datasets))
    table = markdown_table(["against", "wins/ties/losses", "Wilcoxon p"], rows)
    return f"Mean ranks on {n} data sets ({names}): {', '.join(ranks)}.\n\n{table}"


_TEXT = """# The paper's claims, and what we found

Written by `vicinal reproduce tables` from `results/reproduce/`; every number comes from there.
*honest*: every choice inside the training part. *paper*: the paper's grids, and the best K on the
test part. The baselines are this library's, under the same cap of iterations.

## Measured

{measured}

## The automatic classifier (honest protocol)

{automatic}

## Tested

{tested}
"""
