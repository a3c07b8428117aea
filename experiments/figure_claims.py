"""The paper's claims about Figures 2 and 3, judged by their reproduction."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeAlias

import numpy as np
from scipy.stats import gmean

from experiments import figure2, figure3
from experiments.store import Store
from experiments.tables import method_label
from experiments.verdicts import FAILS, NOT_MEASURED, Verdict
from vicinal._typing import FloatArray

Measure: TypeAlias = Callable[[Store], Verdict]

MAGNITUDE = 10.0
COSTS = 0.5
"""Points that may be lost by tuning α and γ one after the other."""
SAME_K = 5
"""Width of the middle half of the summits; twice that is roughly the same."""
TOGETHER = 0.8
"""Least correlation of curves with the same tendency."""
_DRAWN = [figure2.EXPONENTS.index(exponent) for exponent in figure2.CURVES]


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
