"""ANNLoss: the linear learner's objective on embeddings, in every precision and size."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import vicinal as vc  # noqa: E402
from vicinal.deep import ANNLoss, soft_averages  # noqa: E402
from vicinal.deep import loss as deep_loss  # noqa: E402
from vicinal.kernels import make_kernel  # noqa: E402
from vicinal.objective.losses import LOSSES, get_loss  # noqa: E402
from vicinal.objective.neighbor_objective import NeighborObjective, plain_shift  # noqa: E402
from vicinal.objective.neighbor_sets import build_comparisons  # noqa: E402
from vicinal.objective.parametrization import Factor  # noqa: E402

ALPHAS = [2.0, 0.3, 1e-9, 0.0, -1.0, math.inf, -math.inf]


def batch(n=24, m=3, classes=3, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    Z = torch.randn(n, m, generator=generator, dtype=torch.float64).to(dtype)
    return Z.requires_grad_(), torch.arange(n) % classes


def linear_form(alpha=1.0, gamma=1.0, **options):
    """ANNLoss with the defaults of the linear learner: the hinge of means of given embeddings."""
    defaults = {"loss": "hinge", "plain": False, "normalize": False}
    return ANNLoss(alpha, gamma, **{**defaults, **options})


def linear_objective(Z, y, alpha, gamma, loss, plain, similar):
    """J and ∂J/∂L of the linear learner at L = I, rows sorted by class as it wants them."""
    offsets = np.searchsorted(y, np.arange(y.max() + 2))
    comparisons = build_comparisons(Z, offsets, similar=similar, dissimilar="all", groups=None)
    n, d = Z.shape
    objective = NeighborObjective(
        X=Z,
        comparisons=comparisons,
        kernel=make_kernel(comparisons, "numpy"),
        parametrization=Factor(),
        loss=get_loss(loss),
        alpha=alpha,
        gamma=gamma,
        shift=plain_shift(comparisons, alpha) if plain else np.zeros(n),
        weights=np.ones(n),
        pull=np.zeros((d, d)),
    )
    return objective.value_and_gradient(np.eye(d))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("plain", [False, True])
def test_value_and_gradient_are_those_of_the_linear_learner(alpha, loss, plain):
    if plain and alpha == 0:
        pytest.skip("has no plain soft average")
    for similar in ("all", 3):
        X, y = batch()
        order = torch.argsort(y, stable=True)
        X, y = X.detach()[order], y[order]
        value, gradient = linear_objective(X.numpy(), y.numpy(), alpha, 0.7, loss, plain, similar)
        L = torch.eye(3, dtype=torch.float64, requires_grad=True)
        function = linear_form(alpha, 0.7, loss=loss, plain=plain, similar=similar, reduction="sum")
        J = function(X @ L.T, y)
        J.backward()
        assert J.item() == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(L.grad, gradient, rtol=1e-8, atol=1e-10)


def test_gradient_is_twice_the_laplacian_times_the_embeddings():
    Z, y = batch()
    linear_form(0.5, loss="logistic", reduction="sum")(Z, y).backward()
    order = np.argsort(y.numpy(), kind="stable")
    points, labels = Z.detach().numpy()[order], y.numpy()[order]
    comparisons = build_comparisons(
        points, np.searchsorted(labels, range(4)), similar="all", dissimilar="all", groups=None
    )

    def respond(rows, s, t):
        value, slope = get_loss("logistic").value_and_slope(s - t)
        return value, slope, -slope

    kernel = make_kernel(comparisons, "numpy")
    sweep = kernel.sweep(points, points, respond, alpha=0.5, symmetric=True)
    np.testing.assert_allclose(Z.grad[order], 2 * sweep.laplacian, rtol=1e-9, atol=1e-11)


def test_a_fitted_learner_and_the_loss_agree():
    X, y = batch(60, 5)
    X, y = X.detach().numpy(), y.numpy()
    ann = vc.ANN(2.0, loss="logistic", regularization=0.0, max_iter=60).fit(X, y)
    Z = torch.as_tensor(ann.transform(X))
    J = linear_form(2.0, loss="logistic", reduction="sum")(Z, torch.as_tensor(y))
    assert J.item() == pytest.approx(ann.objective_, rel=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("loss", ["hinge", "sigmoid", lambda z: z + torch.sin(z) / 2])
def test_gradcheck_of_embeddings_references_and_temperature(alpha, loss):
    Z, y = batch(8, 2)
    R, ref_labels = batch(10, 2, seed=1)
    function = linear_form(
        alpha, loss=loss, plain=abs(alpha) > 0.1, learn_temperature=True, reduction="none"
    ).double()
    assert torch.autograd.gradcheck(
        lambda Z, _: function(Z, y), (Z, function.log_temperature), atol=1e-6
    )
    assert torch.autograd.gradcheck(
        lambda Z, R: function(Z, y, ref_emb=R, ref_labels=ref_labels), (Z, R), atol=1e-6
    )


def naive_distance(a, b, distance):
    if distance == "cosine":
        return 1 - (a @ b) / (a.norm() * b.norm())
    square = (a - b).square().sum()
    return square.sqrt() if distance == "euclidean" else square


def naive_soft_average(values, gamma, plain):
    if gamma == 0:
        return values.mean()
    return -(torch.logsumexp(-gamma * values, 0) - (0 if plain else math.log(len(values)))) / gamma


@pytest.mark.parametrize("distance", ["squared", "euclidean", "cosine"])
@pytest.mark.parametrize("contrast", ["dissimilar", "all"])
@pytest.mark.parametrize(
    ("alpha", "plain"), [(1.0, False), (-2.0, True), (0.0, "dissimilar"), (0.7, "dissimilar")]
)
def test_distances_margins_and_contrasts_by_loops(distance, contrast, alpha, plain):
    Z, y = batch(9, 3)
    values = []
    for i in range(9):
        d = {j: naive_distance(Z[i], Z[j], distance) / 0.6 for j in range(9) if j != i}
        similar = torch.stack([d[j] for j in d if y[j] == y[i]])
        others = torch.stack([d[j] for j in d if contrast == "all" or y[j] != y[i]])
        s = naive_soft_average(similar, alpha, plain is True)
        t = naive_soft_average(others, 1.0, bool(plain))
        values.append(torch.nn.functional.softplus((s - t + 0.4) / 0.7))
    expected = torch.stack(values).mean()
    function = linear_form(
        alpha,
        0.7,
        loss="logistic",
        plain=plain,
        distance=distance,
        margin=0.4,
        contrast=contrast,
        temperature=0.6,
        learn_temperature=True,
    )
    torch.testing.assert_close(function(Z, y), expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        torch.autograd.grad(function(Z, y), Z),
        torch.autograd.grad(expected, Z),
        rtol=1e-6,
        atol=1e-6,
    )
    function = function.double()
    assert torch.autograd.gradcheck(
        lambda Z, _: function(Z, y), (Z, function.log_temperature), atol=1e-6
    )


@pytest.mark.parametrize("distance", ["squared", "euclidean", "cosine"])
def test_embeddings_that_coincide_have_finite_gradients(distance):
    Z = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    y = torch.tensor([0, 0, 1, 1])
    linear_form(-1.0, plain=True, loss="logistic", distance=distance)(Z, y).backward()
    assert torch.isfinite(Z.grad).all()
    assert Z.grad.abs().max() > 0


def test_the_margin_of_a_mean_is_met_while_the_nearest_neighbor_is_wrong():
    """docs/deep.md: one near wrong neighbor among n costs a mean only ln n."""
    n_far = 100
    Z = torch.cat([torch.tensor([[0.0], [2.5], [0.0]]), torch.full((n_far, 1), 50.0)]).double()
    y = torch.tensor([0, 0, *[1] * (n_far + 1)])  # row 2 is of another class, where row 0 is
    means, sums = (
        linear_form(distance="euclidean", plain=plain, temperature=1.0, reduction="none")(Z, y)[0]
        for plain in (False, True)
    )
    assert means == 0
    assert sums.item() == pytest.approx(1 + 2.5)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # by torch, too
@pytest.mark.parametrize(
    "options", [{}, {"alpha": -1.0, "plain": True, "distance": "euclidean"}, {"loss": "hinge"}]
)
def test_a_compiled_network_and_loss_are_the_same(options):
    X, y = batch()
    torch.manual_seed(0)
    network, function = torch.nn.Linear(X.shape[1], 2).double(), ANNLoss(**options)
    compiled = torch.compile(lambda X, y: function(network(X), y), backend="aot_eager")
    wanted = [X, *network.parameters()]
    expected = torch.autograd.grad(function(network(X), y), wanted)
    torch.testing.assert_close(compiled(X, y), function(network(X), y))
    torch.testing.assert_close(torch.autograd.grad(compiled(X, y), wanted), expected)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_gradients_use_the_slope_of_the_loss_also_where_autograd_would_be_wrong(loss):
    """In both tails, at the kink of the hinge, and at 0, where |z| has no derivative."""
    z = torch.tensor([-80.0, -3.0, -1.0, -0.2, 0.0, 1.0, 40.0, 200.0], dtype=torch.float64)
    value = deep_loss._Elementwise.apply(z.requires_grad_(), loss)
    value.sum().backward()
    np.testing.assert_allclose(value.detach(), loss.value(z.detach().numpy()), rtol=1e-12)
    np.testing.assert_allclose(z.grad, loss.slope(z.detach().numpy()), rtol=1e-12)


def test_a_loss_given_by_its_value_and_slope():
    Z, y = batch()
    pair = LOSSES["squared_hinge"].value, LOSSES["squared_hinge"].slope
    functions = linear_form(loss=pair), linear_form(loss="squared_hinge")
    values, gradients = zip(
        *((f(Z, y).detach(), torch.autograd.grad(f(Z, y), Z)[0]) for f in functions), strict=True
    )
    torch.testing.assert_close(*values)
    torch.testing.assert_close(*gradients)


def test_the_default_is_the_configuration_that_validation_chose():
    Z, y = batch()
    chosen = ANNLoss(
        0.0,
        1.0,
        loss="logistic",
        plain="dissimilar",
        distance="squared",
        margin=0.0,
        contrast="dissimilar",
        temperature=0.2,
        normalize=True,
        similar="all",
        reduction="mean",
    )
    assert repr(ANNLoss()) == repr(chosen)
    assert ANNLoss()(Z, y).item() == chosen(Z, y).item()
    # 1 − cos at its own temperature is the same loss.
    torch.testing.assert_close(ANNLoss(distance="cosine")(Z, y), chosen(Z, y))
    assert ANNLoss(distance="euclidean").temperature == pytest.approx(0.1)


def test_references_that_are_the_batch_itself_change_nothing():
    Z, y = batch()
    function = linear_form(loss="logistic")
    assert function(Z, y).item() == function(Z, y, ref_emb=Z, ref_labels=y).item()
    # A copy is a memory bank: every anchor finds itself there, at distance 0.
    assert function(Z, y, ref_emb=Z.detach().clone(), ref_labels=y) < function(Z, y)


def test_a_memory_bank_gets_no_gradient_and_costs_none():
    Z, y = batch()
    R, ref_labels = batch(40, seed=1)
    bank = R.detach()
    linear_form()(Z, y, ref_emb=bank, ref_labels=ref_labels).backward()
    frozen = Z.grad.clone()
    Z.grad = None
    linear_form()(Z, y, ref_emb=R, ref_labels=ref_labels).backward()
    assert bank.grad is None
    torch.testing.assert_close(Z.grad, frozen)
    assert R.grad.abs().max() > 0


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_anchors_without_a_positive_or_a_negative_are_left_out_and_counted(reduction):
    Z, _ = batch(7)
    y = torch.tensor([0, 0, 1, 1, 2, 1, 3])  # 2 and 3 are alone
    function = linear_form(loss="logistic", reduction=reduction)
    losses = linear_form(loss="logistic", reduction="none")(Z, y)
    kept = torch.tensor([True, True, True, True, False, True, False])
    assert (losses[~kept] == 0).all()
    assert (losses[kept] > 0).all()
    expected = {"mean": losses[kept].mean(), "sum": losses.sum(), "none": losses}[reduction]
    torch.testing.assert_close(function(Z, y), expected)
    assert function.n_excluded == 2


@pytest.mark.parametrize("labels", [torch.zeros(6, dtype=torch.long), torch.arange(6)])
def test_a_batch_without_any_anchor_costs_nothing_and_can_be_backpropagated(labels):
    Z, _ = batch(6)
    function = linear_form(-1.0, plain=True)
    loss = function(Z, labels)
    loss.backward()
    assert loss.item() == 0
    assert function.n_excluded == 6
    assert (Z.grad == 0).all()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("n_anchors", "n_columns"), [(5, 0), (0, 5), (0, 0)])
@pytest.mark.parametrize("mined", [False, True])
def test_an_empty_batch_or_memory_bank_costs_nothing(reduction, n_anchors, n_columns, mined):
    Z, y = batch(n_anchors)
    R, ref_labels = batch(n_columns, seed=1)
    nothing = (torch.empty(0, dtype=torch.long),) * 4 if mined else None
    for options in ({}, {"plain": True, "similar": 3}, {"normalize": True, "alpha": -1.0}):
        function = linear_form(learn_temperature=True, reduction=reduction, **options)
        function._n_excluded = torch.tensor(99)  # of an earlier call
        Z.grad = R.grad = None
        value = function(Z, y, nothing, R, ref_labels)
        value.sum().backward()
        assert value.shape == ((n_anchors,) if reduction == "none" else ())
        assert (value == 0).all()
        assert function.n_excluded == n_anchors
        for points in (Z, R):
            assert points.grad.shape == points.shape
            assert (points.grad == 0).all()
        assert function.log_temperature.grad == 0


def test_an_empty_batch_without_a_memory_bank():
    Z, y = batch(0)
    function = linear_form()
    value = function(Z, y)
    value.backward()
    assert value.item() == 0
    assert function.n_excluded == 0
    assert Z.grad.shape == (0, 3)


@pytest.mark.parametrize("similar", ["all", 2])
def test_blocks_of_anchors_change_nothing(monkeypatch, similar):
    Z, y = batch(50)
    R, ref_labels = batch(31, seed=1)
    function = linear_form(0.5, loss="squared_hinge", similar=similar)

    def value_and_gradients():
        Z.grad = R.grad = None
        loss = function(Z, y) + function(Z, y, ref_emb=R, ref_labels=ref_labels)
        loss.backward()
        return loss.detach(), Z.grad, R.grad

    whole = value_and_gradients()
    monkeypatch.setattr(soft_averages, "BLOCK_ELEMENTS", 7 * 50)
    torch.testing.assert_close(value_and_gradients(), whole)


class Largest(TorchDispatchMode):
    """Watches the size of every tensor that is made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        self.elements = max([self.elements, *(x.numel() for x in made)])
        return result


@pytest.mark.parametrize("mined", [False, True])
def test_nothing_of_the_size_of_batch_times_memory_bank_is_ever_made(monkeypatch, mined):
    Z, y = batch(200)
    bank, bank_labels = batch(500, seed=1)
    triplets = torch.arange(30).repeat(3), torch.arange(90) % 500, torch.arange(90) % 450
    monkeypatch.setattr(soft_averages, "BLOCK_ELEMENTS", 5 * 500)
    with Largest() as largest:
        loss = linear_form(similar=4)
        loss(Z, y, triplets if mined else None, bank, bank_labels).backward()
    assert largest.elements == 5 * 500


def test_k_nearest_similar_of_the_batch():
    Z, y = batch(30)
    losses = linear_form(0.0, loss="linear", similar=2, reduction="none")(Z, y).detach().numpy()
    points = Z.detach().numpy()
    D = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    for i, label in enumerate(y):
        same = np.array([D[i, j] for j in range(30) if y[j] == label and j != i])
        others = D[i, (y != label).numpy()]
        expected = np.sort(same)[:2].mean() - vc.soft_average(others, 1.0)
        assert losses[i] == pytest.approx(expected)


def test_temperature_divides_squared_distances_and_can_be_set_and_learned():
    Z, y = batch()
    expected = linear_form(loss="logistic")(Z / math.sqrt(0.2), y)
    function = linear_form(loss="logistic", temperature=0.2)
    torch.testing.assert_close(function(Z, y), expected)
    assert list(function.parameters()) == []
    function.temperature = 1.0
    torch.testing.assert_close(function(Z, y), linear_form(loss="logistic")(Z, y))
    assert function.temperature == 1.0

    learned = linear_form(loss="logistic", temperature=5.0, learn_temperature=True)
    before = learned(Z.detach(), y)
    optimizer = torch.optim.SGD(learned.parameters(), lr=0.1)
    before.backward()
    optimizer.step()
    assert learned(Z.detach(), y) < before
    assert learned.temperature != pytest.approx(5.0)
    assert ANNLoss().temperature == pytest.approx(0.2)


def test_normalized_embeddings():
    Z, y = batch()
    unit = Z / Z.norm(dim=1, keepdim=True)
    torch.testing.assert_close(
        linear_form(normalize=True)(17.0 * Z, y), linear_form(temperature=0.2)(unit, y)
    )


def test_a_common_offset_changes_nothing_in_float32():
    """Centered first: without, distances of points at 1e3 would be rounded to 0.1."""
    Z, y = batch(dtype=torch.float32)
    function = linear_form(loss="logistic")
    torch.testing.assert_close(
        function(Z.detach() + 1024.0, y), function(Z.detach(), y), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    Z, y = batch(dtype=dtype)
    wide = Z.detach().float().requires_grad_()
    function = linear_form(loss="logistic")
    loss, expected = function(Z, y), function(wide, y)
    loss.backward()
    expected.backward()
    assert loss.dtype == torch.float32
    assert loss.item() == expected.item()
    assert Z.grad.dtype == dtype
    torch.testing.assert_close(Z.grad.float(), wide.grad.to(dtype).float())


def test_autocast_leaves_distances_alone_forward_and_backward():
    Z, y = batch(dtype=torch.float32)
    function = linear_form(loss="logistic", normalize=True)
    expected = function(Z, y)
    expected.backward()
    gradient, Z.grad = Z.grad, None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = function(Z, y)
        loss.backward()
    assert loss.item() == expected.item()
    torch.testing.assert_close(Z.grad, gradient, rtol=0, atol=0)


def test_mixed_precision_training_with_a_gradient_scaler():
    """The weights take the steps that they take without a scaler: powers of two round nothing."""
    X, y = batch(32, 6, dtype=torch.float32)
    weights = []
    for scaled in (False, True):
        torch.manual_seed(0)
        network = torch.nn.Linear(6, 3)
        function = ANNLoss(learn_temperature=True)
        parameters = [*network.parameters(), *function.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=scaled, init_scale=2.0**10)
        losses = []
        for _ in range(5):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                Z = network(X.detach())
                loss = function(Z, y)
            assert Z.dtype == torch.bfloat16
            assert loss.dtype == torch.float32
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        weights.append([parameter.detach().clone() for parameter in parameters])
    torch.testing.assert_close(weights[1], weights[0])


def test_far_points_keep_finite_values_and_gradients():
    Z, y = batch(dtype=torch.float32)
    far = (1e4 * Z.detach()).requires_grad_()
    for alpha in ALPHAS:
        for loss in LOSSES:
            value = linear_form(alpha, loss=loss)(far, y)
            far.grad = None
            value.backward()
            assert torch.isfinite(value)
            assert torch.isfinite(far.grad).all()


def test_the_state_holds_the_temperature():
    saved = linear_form(temperature=0.3).state_dict()
    other = linear_form()
    other.load_state_dict(saved)
    assert other.temperature == pytest.approx(0.3)
    assert "temperature=0.3" in repr(other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": math.nan}, "real number"),
        ({"gamma": 0.0}, "positive"),
        ({"loss": "hing"}, "unknown"),
        ({"alpha": 0.0, "plain": True}, "alpha=0"),
        ({"alpha": 0.0, "plain": "similar"}, "plain='similar' is not possible"),
        ({"distance": "manhattan"}, "distance"),
        ({"contrast": "none"}, "contrast"),
        ({"margin": math.inf}, "finite"),
        ({"temperature": 0.0}, "positive"),
        ({"temperature": math.inf}, "finite"),
        ({"temperature": "0.1"}, "temperature='0.1' must be a number"),
        ({"temperature": [0.1]}, "must be a number"),
        ({"similar": 0}, "similar"),
        ({"similar": "most"}, "similar"),
        ({"similar": [[1]]}, "'all' or a number"),
        ({"reduction": "median"}, "reduction"),
    ],
)
def test_impossible_configurations_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ANNLoss(**arguments)


def test_impossible_input_is_refused():
    Z, y = batch()
    for arguments, message in (
        ((Z[:, 0], y), r"embeddings must have shape \(rows, components\)"),
        ((Z.detach().numpy(), y), "embeddings must be a tensor of floats, got ndarray"),
        ((Z.long(), y), "embeddings must be a tensor of floats, got torch.int64"),
        ((Z, y, None, Z[:, 0], y), r"ref_emb must have shape \(rows, 3\), got \(24,\)"),
        ((Z, y, None, Z[:, :2], y), r"ref_emb must have shape \(rows, 3\), got \(24, 2\)"),
        ((Z, y.numpy()), r"labels must be a tensor, got ndarray; use torch.as_tensor\(labels\)"),
        ((Z, y.tolist()), "labels must be a tensor, got list"),
        ((Z, y, None, Z + 1, y.numpy()), "ref_labels must be a tensor, got ndarray"),
        ((Z, y[:3]), r"labels must have shape \(24,\)"),
        ((Z,), "labels are needed"),
        ((Z, y, None, Z + 1), "labels are needed"),
        ((Z, y, None, Z + 1, y[:2]), "ref_labels must have shape"),
        ((Z, y, (y, y)), "2 parts"),
        ((Z, y, (y + 22, y, y)), "anchors .* reach from 22 to 24, but there are 24 rows"),
        ((Z, y, (y - 1, y, y)), "anchors .* reach from -1 to 1"),
        ((Z, y, (y, y, y, y + 22)), "negatives .* reach from 22 to 24"),
        ((Z, y, (y, y - 1, y)), "positives .* reach from -1 to 1"),
        ((Z, y, (y, y, y), Z[:2], y[:2]), "but there are 2 rows"),
        ((Z, y, (y, y[:5], y)), "24 anchors with 5 positives"),
        ((Z, y, (y.numpy(), y, y)), "tensors of integers"),
        ((Z, y, (y.float(), y, y)), "tensors of integers"),
    ):
        with pytest.raises(ValueError, match=message):
            ANNLoss()(*arguments)
