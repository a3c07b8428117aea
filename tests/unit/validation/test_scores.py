"""Scores of predictions, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
)

from vicinal.validation.scores import classification_scores


@pytest.mark.parametrize("c", [2, 4])
def test_scores_are_those_of_scikit_learn(c):
    rng = np.random.default_rng(c)
    truth = np.append(np.arange(c), rng.integers(c, size=200))
    P = rng.dirichlet(np.ones(c), len(truth)).round(2)
    P = (P + 0.01) / (P + 0.01).sum(axis=1, keepdims=True)
    predicted = P.argmax(axis=1)
    found = classification_scores(truth, predicted, P, np.arange(c))
    assert found.accuracy == np.mean(truth == predicted)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, predicted))
    assert found.log_loss == pytest.approx(log_loss(truth, P))
    one_vs_rest = P[:, 1] if c == 2 else P
    assert found.roc_auc == pytest.approx(roc_auc_score(truth, one_vs_rest, multi_class="ovr"))
    expected = np.transpose(precision_recall_fscore_support(truth, predicted))
    table = [(one.precision, one.recall, one.f1, one.rows) for one in found.classes]
    np.testing.assert_allclose(table, expected)
    assert found.rarest is None


def test_rare_and_unknown_classes():
    truth = np.array([0] * 95 + [1] * 4 + [-1])
    P = np.tile([0.9, 0.1], (100, 1))
    found = classification_scores(truth, P.argmax(axis=1), P, np.array(["no", "yes"]))
    assert found.accuracy == 0.95
    assert found.balanced_accuracy == 0.5
    assert found.rarest is not None
    assert found.rarest.label == "yes"
    assert found.classes[1].precision is None
    assert found.classes[1].recall == 0.0
    assert found.roc_auc == pytest.approx(0.5)
