"""The loss of averages over neighbors, against naive loops and the linear learner."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vicinal.deep import ANNLoss, MLKRLoss  # noqa: E402


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    Z, y = rng.standard_normal((14, 3)), rng.standard_normal((14, 2))
    return torch.tensor(Z, requires_grad=True), torch.tensor(y)


def distance(z, r, name, T):
    if name == "cosine":
        return (1 - z @ r / np.linalg.norm(z) / np.linalg.norm(r)) / T
    square = np.sum((z - r) ** 2)
    return (square if name == "squared" else np.sqrt(square)) / T


ERRORS = {
    "squared": lambda e: e**2,
    "absolute": np.abs,
    "huber": lambda e: np.where(np.abs(e) < 1, 0.5 * e**2, np.abs(e) - 0.5),
}


@pytest.mark.parametrize("name", ["squared", "euclidean", "cosine"])
@pytest.mark.parametrize("error", ERRORS)
def test_value_is_that_of_naive_loops(rows, name, error):
    Z, y = rows
    points, targets = Z.detach().numpy(), y.numpy()
    total = 0.0
    for i in range(14):
        others = [j for j in range(14) if j != i]
        w = np.exp([-distance(points[i], points[j], name, 0.7) for j in others])
        total += ERRORS[error](targets[i] - w @ targets[others] / w.sum()).mean()
    loss = MLKRLoss(error, distance=name, temperature=0.7)
    assert loss(Z, y).item() == pytest.approx(total / 14)


@pytest.mark.parametrize("name", ["squared", "euclidean", "cosine"])
def test_gradient_by_finite_differences(rows, name):
    Z, y = rows
    loss = MLKRLoss(distance=name, temperature=0.5)
    assert torch.autograd.gradcheck(lambda Z: loss(Z, y), (Z,))
    assert torch.autograd.gradcheck(lambda Z: loss(Z[:5], y[:5], Z[5:], y[5:]), (Z,))


@pytest.mark.parametrize(
    "loss", [MLKRLoss(), ANNLoss(), ANNLoss(1.0, distance="euclidean", plain=True)]
)
def test_candidates_and_batch_are_compared_with_the_batch(rows, loss):
    """With all other rows as candidates, the anchors' losses are those of the whole."""
    Z, y = rows
    y = y if isinstance(loss, MLKRLoss) else torch.arange(14) % 3
    whole = loss(Z, y)
    parts = [(slice(0, 6), slice(6, 14)), (slice(6, 14), slice(0, 6))]
    halves = [loss.with_candidates(Z[a], y[a], Z[b], y[b]) for a, b in parts]
    assert (6 * halves[0] + 8 * halves[1]).item() / 14 == pytest.approx(whole.item())
    (expected,) = torch.autograd.grad(whole, Z, retain_graph=True)
    (got,) = torch.autograd.grad((6 * halves[0] + 8 * halves[1]) / 14, Z)
    torch.testing.assert_close(got, expected)


def test_it_is_the_objective_of_the_linear_learner(rows):
    """Squared distances at T = 1: metric-learn's and vicinal's MLKR divide by n alike."""
    Z, y = rows
    D = torch.cdist(Z, Z).square().fill_diagonal_(np.inf).detach().numpy()
    P = np.exp(-D) / np.exp(-D).sum(axis=1, keepdims=True)
    expected = np.mean((P @ y.numpy() - y.numpy()) ** 2)
    loss = MLKRLoss(distance="squared", temperature=1.0)
    assert loss(Z, y).item() == pytest.approx(expected)


def test_coinciding_embeddings_have_a_finite_gradient():
    Z = torch.zeros(4, 2, requires_grad=True)
    MLKRLoss()(Z, torch.tensor([0.0, 1.0, 2.0, 3.0])).backward()
    assert torch.equal(Z.grad, torch.zeros(4, 2))
