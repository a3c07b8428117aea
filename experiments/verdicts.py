"""Verdicts on the paper's claims about Table 2 and Figures 2 and 3, from their reproduction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from scipy.stats import gmean

from experiments import figure2, figure3
from experiments.datasets import DATASETS
from experiments.paper_values import WRONG_MEANS
from experiments.splits import NOISE
from experiments.statistics import Duel, duel
from experiments.store import Store
from experiments.summary import Summary
from experiments.table_lines import method_label
from vicinal._typing import FloatArray

SIGNIFICANT = 0.05
OURS = ("pnca", "ann+", "ann-")
BASELINES = ("nca", "lmnn", "itml", "ldml", "scml", "rvml", "gmml", "boostmetric")
NEAR = 2.0
"""Points from a printed mean."""
MOST = 0.9
"""Share of the cells that are to be near."""
MAGNITUDE = 10.0
COSTS = 0.5
"""Points that may be lost by tuning α and γ one after the other."""
SAME_K = 5
"""Width of the middle half of the summits; twice that is roughly the same."""
TOGETHER = 0.8
"""Least correlation of curves with the same tendency."""
_DRAWN = [figure2.EXPONENTS.index(exponent) for exponent in figure2.CURVES]


@dataclass(frozen=True)
class Verdict:
    """A line of the page of claims."""

    measured: str
    verdict: str


NOT_MEASURED = Verdict("no complete results", "not measured yet")
FAILS = "**does not hold**"


def by_duel(measured: str, found: Duel) -> Verdict:
    """More wins than losses, and hardly by chance.

    Parameters
    ----------
    measured : in words
    found : the duel
    """
    if found.wins <= found.losses:
        return Verdict(measured, FAILS)
    return Verdict(measured, "holds" if found.p < SIGNIFICANT else "in tendency; it may be chance")


# ---------------------------------------------------------------------------- Table 2


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
        "holds" if best > n / 2 else FAILS,
    )


def _each_has_its_sets(summary: Summary) -> Verdict:
    (plus, n), (minus, _) = _best_counts(summary, ("ann+",)), _best_counts(summary, ("ann-",))
    if not n:
        return NOT_MEASURED
    wins = _duel(summary, "ann+", "ann-")
    measured = f"best of all: ANN⁺ on {plus}, ANN⁻ on {minus} of {n}; against each other {wins}"
    return Verdict(measured, "holds" if plus and minus else FAILS)


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
        return by_duel(measured, found)

    return judge


def _duel(summary: Summary, first: str, second: str) -> str:
    scores = summary.scores(summary.complete((first, second)), (first, second))
    return f"{duel(scores[:, 0], scores[:, 1])} wins/ties/losses"


def _printed_values(summary: Summary) -> Verdict:
    gaps = [
        cell.mean - cell.paper.mean
        for key, cell in summary.cells.items()
        if cell.paper is not None and cell.n and key not in WRONG_MEANS and _is_the_papers(key[0])
    ]
    if not gaps:
        return NOT_MEASURED
    near = sum(abs(gap) <= NEAR for gap in gaps)
    measured = (
        f"{near} of {len(gaps)} cells within {NEAR:g} points of the printed mean (without the "
        "misprint, and the data sets that differ from the paper's); median difference "
        f"{np.median(gaps):+.2f}, of absolute values {np.median(np.abs(gaps)):.2f}"
    )
    return Verdict(measured, "holds" if near >= MOST * len(gaps) else "only in part")


def _is_the_papers(dataset: str) -> bool:
    return dataset not in DATASETS or not DATASETS[dataset].differs


def bears_noise(honest: Summary, noisy: Summary) -> Verdict:
    """Whether wrong labels cost ANN⁻ less than LMNN.

    Parameters
    ----------
    honest, noisy : the results of the two protocols
    """
    methods = ("ann-", "lmnn")
    both = set(noisy.complete(methods)) & set(honest.complete(methods))
    names = [name for name in noisy.datasets if name in both]
    cells = {name: [s.cells[name, m] for s in (honest, noisy) for m in methods] for name in names}
    names = [name for name in names if len({cell.n for cell in cells[name]}) == 1]
    if not names:
        return NOT_MEASURED
    lost = honest.scores(names, methods) - noisy.scores(names, methods)
    found = duel(-lost[:, 0], -lost[:, 1])
    ann, lmnn = lost.mean(axis=0)
    measured = (
        f"{NOISE:.0%} wrong training labels cost ANN⁻ {ann:.2f} points and LMNN {lmnn:.2f} (mean "
        f"of {len(names)} data sets); ANN⁻ loses less: {found} wins/ties/losses, Wilcoxon "
        f"p = {found.p:.2g}"
    )
    return by_duel(measured, found)


TABLE_CLAIMS: tuple[tuple[str, Callable[[Summary], Verdict]], ...] = (
    ("Table 2: PNCA, ANN⁺ and ANN⁻ are best on most data sets", _ours_are_best),
    ("Table 2: some data sets are ANN⁺'s, others ANN⁻'s", _each_has_its_sets),
    ("Table 2: ANN⁻ is better than LMNN", _beats("ann-", "lmnn")),
    ("Table 2: PNCA is better than NCA", _beats("pnca", "nca")),
    ("Table 2: the printed accuracies", _printed_values),
)

# ------------------------------------------------------------------------ Figures 2, 3

Measure: TypeAlias = Callable[[Store], Verdict]


def _faster_than_lmnn(store: Store) -> Verdict:
    measured = figure3.timings(store)
    texts, factors = [], []
    for method in ("ann+", "ann-"):
        ratios = figure3.ratios(measured, method)
        if not ratios:
            return NOT_MEASURED
        values = np.array(list(ratios.values()))
        factors.append(float(gmean(values)))
        texts.append(
            f"{method_label(method)}: LMNN takes {factors[-1]:.2g} times as long (geometric mean "
            f"of {len(values)} data sets; {values.min():.2g} to {values.max():.2g})"
        )
    holds = min(factors) >= MAGNITUDE
    return Verdict("; ".join(texts), "holds" if holds else f"{FAILS} for this LMNN")


def _minus_is_faster(store: Store) -> Verdict:
    measured = figure3.timings(store)
    names = sorted({name for name, m in measured if m == "ann+" and (name, "ann-") in measured})
    if not names:
        return NOT_MEASURED
    faster = sum(measured[n, "ann-"].mean < measured[n, "ann+"].mean for n in names)
    return Verdict(
        f"ANN⁻ is the faster one on {faster} of {len(names)} data sets",
        "holds" if faster > len(names) / 2 else FAILS,
    )


def _tuned_separately(store: Store) -> Verdict:
    studies = figure2.both(store)
    if studies is None:
        return NOT_MEASURED
    texts, losses = [], []
    for method, study in studies.items():
        accuracy = 100 * study.alpha_gamma  # (α, γ)
        middle = figure2.EXPONENTS.index(0)
        alpha = int(accuracy[:, middle].argmax())
        separate = accuracy[alpha].max()
        losses.append(float(accuracy.max() - separate))
        texts.append(
            f"{method_label(method)}: α at γ = 1, then γ, gives {separate:.2f} %, "
            f"the whole grid {accuracy.max():.2f} %"
        )
    holds = max(losses) <= COSTS
    return Verdict(
        "; ".join(texts),
        "holds on German" if holds else f"costs more than {COSTS:g} points on German",
    )


def _same_k(store: Store) -> Verdict:
    studies = figure2.both(store)
    if studies is None:
        return NOT_MEASURED
    texts, verdicts = [], []
    for method, study in studies.items():
        summits = study.gamma_k.argmax(axis=1) + 1
        low, high = np.percentile(summits, [25, 75])
        label = method_label(method)
        texts.append(
            f"{label}: summits from K = {summits.min()} to {summits.max()}, "
            f"half of them between {low:.0f} and {high:.0f}"
        )
        spread = high - low
        word = "holds" if spread <= SAME_K else "roughly" if spread <= 2 * SAME_K else FAILS
        verdicts.append(f"{label}: {word}")
    return Verdict("; ".join(texts), "; ".join(verdicts))


def _same_tendency(curves: Callable[[figure2.Study], FloatArray]) -> Measure:
    """Whether the curves over K of the figure go up and down together."""

    def measure(store: Store) -> Verdict:
        studies = figure2.both(store)
        if studies is None:
            return NOT_MEASURED
        texts, lowest = [], []
        for method, study in studies.items():
            drawn = curves(study)[_DRAWN]
            lowest.append(float(np.corrcoef(drawn).min()))
            texts.append(f"{method_label(method)}: {lowest[-1]:.2f}")
        return Verdict(
            f"least correlation of two of the four curves drawn: {'; '.join(texts)}",
            "holds" if min(lowest) >= TOGETHER else "only in part",
        )

    return measure


def _later_summits(store: Store) -> Verdict:
    study = figure2.study(store, "ann-")
    if study is None:
        return NOT_MEASURED
    curves = study.alpha_k[_DRAWN]
    summits = curves.argmax(axis=1) + 1  # of two small and two large α
    texts = [f"K = {k} for α = −2^{e}" for e, k in zip(figure2.CURVES, summits, strict=True)]
    later = summits[2:].min() > summits[:2].max()
    return Verdict(f"summits at {', '.join(texts)}", "holds" if later else FAILS)


def _cost_of_an_iteration(store: Store) -> Verdict:
    measured = figure3.timings(store)
    texts, holds = [], True
    for method in ("ann+", "ann-"):
        ratios = {other: _ratio_an_iteration(measured, other, method) for other in figure3.LMNN}
        known = {other: ratio for other, ratio in ratios.items() if ratio is not None}
        if len(known) < len(ratios):
            return NOT_MEASURED
        said = ", ".join(f"{ratio:.2g}" for ratio in known.values())
        texts.append(f"{method_label(method)}: {said}")
        holds &= all(ratio >= int(other[-1]) for other, ratio in known.items())
    return Verdict(
        "an iteration of LMNN with 4, 5, 6, 7 targets by one of ANN (geometric mean): "
        + "; ".join(texts),
        "holds" if holds else f"{FAILS} for this LMNN",
    )


def _ratio_an_iteration(
    measured: dict[tuple[str, str], figure3.Timing], first: str, second: str
) -> float | None:
    """Time an iteration of the first by that of the second; None where no data set has both."""
    ratios = [
        measured[name, first].an_iteration / measured[name, second].an_iteration
        for name, method in measured
        if method == first and (name, second) in measured
    ]
    return float(gmean(ratios)) if ratios else None


FIGURE_CLAIMS: tuple[tuple[str, Measure], ...] = (
    ("Fig. 3: ANN is an order of magnitude faster than LMNN", _faster_than_lmnn),
    ("Remark 4: LMNN's iteration takes as many of ANN's as it has targets", _cost_of_an_iteration),
    ("Fig. 3: ANN⁻ is faster than ANN⁺ on most data sets", _minus_is_faster),
    ("Fig. 2: α and γ can be tuned separately", _tuned_separately),
    ("Fig. 2 (b), (e): the best K does not depend on γ", _same_k),
    (
        "Fig. 2 (b), (e): curves of all γ have the same tendency",
        _same_tendency(attrgetter("gamma_k")),
    ),
    (
        "Fig. 2 (a), (d): curves of all α have the same tendency",
        _same_tendency(attrgetter("alpha_k")),
    ),
    ("Fig. 2 (a): with ANN⁻ the summit comes later for large α", _later_summits),
)
