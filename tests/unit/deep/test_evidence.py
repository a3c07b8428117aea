"""The scores of the deep comparison are those of pytorch-metric-learning."""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")

from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator  # noqa: E402

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def retrieval(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import deep_retrieval

    yield deep_retrieval
    sys.modules.pop("deep_retrieval")


def search(query, k, reference, ref_includes_query):
    """What AccuracyCalculator would ask faiss for: the k nearest others."""
    D = torch.cdist(query, reference)
    if ref_includes_query:
        D.fill_diagonal_(torch.inf)
    found = D.topk(k, largest=False)
    return found.values, found.indices


@pytest.mark.parametrize("seed", range(3))
def test_recall_at_1_and_map_at_r(retrieval, monkeypatch, seed):
    rng = np.random.RandomState(seed)
    y = torch.as_tensor(rng.permutation(np.repeat(np.arange(6), [3, 5, 8, 13, 21, 34])))
    Z = torch.as_tensor(rng.standard_normal((len(y), 3)) + 0.8 * y.numpy()[:, None])
    calculator = AccuracyCalculator(
        include=("precision_at_1", "mean_average_precision_at_r"),
        k="max_bin_count",
        knn_func=search,
    )
    expected = calculator.get_accuracy(Z, y)
    monkeypatch.setattr(retrieval, "BLOCK", 20)
    scores = retrieval.retrieval_scores(Z, y)
    assert scores["recall_at_1"] == pytest.approx(expected["precision_at_1"])
    assert scores["map_at_r"] == pytest.approx(expected["mean_average_precision_at_r"])
