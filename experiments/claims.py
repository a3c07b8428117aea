"""The paper's claims beside what was measured: the text of docs/claims.md."""

from __future__ import annotations

import numpy as np

from experiments import verdicts
from experiments.store import Store
from experiments.summary import Summary, compare, summarize
from experiments.table_lines import dataset_label, method_label
from experiments.tables import markdown_table

TESTED = """
Fig. 1: no metric puts an impostor in the triangle of a sample and its two targets outside \
| test_hard_region.py \
| holds, and for more: the parallelogram of the targets and their reflections is hard
Lemma 1: the mean of the K smallest distances is discontinuous in M | test_lemma_1.py \
| **does not hold**: it is continuous, and not differentiable at swaps
Lemmas 2 and 3: limits, monotonicity, a γ for every K | test_lemma_2_and_3.py | holds
Lemma 4: convex for α < 0 | test_convexity.py | holds for convex increasing losses
α → −∞ is LMNN | test_lmnn_limit.py | **half**: the zero-loss sets agree, the objectives do not
α = −∞ has a broader searching space than LMNN | test_lmnn_limit.py \
| holds with the soft minimum over D_i: all that costs LMNN nothing costs nothing, and more
Remark 5: α = 1 and ℓ(x) = x is NCA | test_nca_is_a_special_case.py \
| **does not hold as worded**: it is the sigmoid loss with plain soft averages
Eq. 37: PNCA is a member of the framework, and NCA at α = 1 | test_nca_is_a_special_case.py | holds
PNCA: by α, dissimilar samples that NCA ignores are heeded | test_nca_is_a_special_case.py \
| **half**: their total weight depends on α, its shares among them do not
Remark 6: pairwise constraints are a special case | test_pairwise_constraints.py \
| holds in the sense that what is feasible for them is feasible for ANN, and more
Eq. 27, 28: the gradient | test_algorithm_1.py | holds with the factor 1/γ that is lost in print
Algorithm 1 works as printed | test_algorithm_1.py | holds, reading J_{i−1} as J_{j−1}
"""
"""Claim, file in tests/paper, verdict."""
_NOISE = "ANN with α < 0 is more robust to noise than LMNN"


def claims_page(store: Store) -> str:
    """docs/claims.md, every number of it from the results.

    Parameters
    ----------
    store : results and measurements
    """
    rows = []
    summaries = [summarize(store, protocol) for protocol in ("honest", "paper")]
    for text, judge in verdicts.TABLE_CLAIMS:
        for summary in summaries:
            found = judge(summary)
            rows.append([text, summary.protocol, found.measured, found.verdict])
    found = verdicts.bears_noise(summaries[0], summarize(store, "noisy"))
    rows.append([_NOISE, "", found.measured, found.verdict])
    for text, measure in verdicts.FIGURE_CLAIMS:
        found = measure(store)
        rows.append([text, "", found.measured, found.verdict])
    lines = [line.split("|") for line in TESTED.strip().splitlines()]
    tested = [[text.strip(), f"`tests/paper/{t.strip()}`", v.strip()] for text, t, v in lines]
    return _TEXT.format(
        significant=verdicts.SIGNIFICANT,
        most=verdicts.MOST,
        near=verdicts.NEAR,
        costs=verdicts.COSTS,
        same_k=verdicts.SAME_K,
        together=verdicts.TOGETHER,
        magnitude=verdicts.MAGNITUDE,
        measured=markdown_table(
            ["claim", "protocol", "measured", "verdict"], rows, "--- --- --- ---"
        ),
        automatic=_automatic(summaries[0]),
        tested=markdown_table(["claim", "test", "verdict"], tested, "--- --- ---"),
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
*honest*: every choice inside the training part. *paper*: the paper's grids (γ, which it does not
state, is 1 for ANN), and the best K on the test part. The methods are this library's, with the
budget that [Reproducing the paper](reproduce.md) states.

A method is better than another with more wins than losses and Wilcoxon p < {significant:g};
printed accuracies hold with {most:.0%} of them within {near:g} points; α and γ are separate where
tuning one after the other costs at most {costs:g} points; K is the same where the middle half of
the summits spans at most {same_k} (roughly: twice that); curves have the same tendency with
correlations of {together:g} and more; an order of magnitude is a factor of {magnitude:g} in the
geometric mean.

## Measured

{measured}

## The automatic classifier (honest protocol)

{automatic}

## Tested

{tested}
"""
