"""Miners, memory bank and trainer of pytorch-metric-learning take ANNLoss, its tester DeepANN."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")

from pytorch_metric_learning import losses, miners, testers, trainers  # noqa: E402
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance  # noqa: E402
from pytorch_metric_learning.reducers import DoNothingReducer  # noqa: E402
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator  # noqa: E402
from pytorch_metric_learning.utils.inference import CustomKNN, InferenceModel  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.model_selection import LeaveOneOut, cross_val_score  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402

import vicinal as vc  # noqa: E402
from vicinal.deep import ANNLoss, DeepANN, cross_batch_memory, embed  # noqa: E402

NEGATIVE_LOG_P = {"alpha": 1.0, "loss": "logistic", "plain": True, "normalize": True}
"""The configuration that is NCALoss."""


def batch(n=24, m=4, classes=4, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    Z = torch.randn(n, m, generator=generator, dtype=dtype)
    return Z.requires_grad_(), torch.arange(n) % classes


def naive(Z, similar, dissimilar, alpha=1.0):
    """Mean hinge over the anchors that have both sets, by loops; sets are {anchor: {columns}}."""
    values = []
    for i in similar.keys() & dissimilar.keys():
        s = torch.stack([(Z[i] - Z[j]).square().sum() for j in similar[i]])
        t = torch.stack([(Z[i] - Z[j]).square().sum() for j in dissimilar[i]])
        soft = [
            -(torch.logsumexp(-g * a, 0) - np.log(len(a))) / g for a, g in ((s, alpha), (t, 1.0))
        ]
        values.append(torch.relu(1 + soft[0] - soft[1]))
    return torch.stack(values).mean()


def sets(anchors, columns):
    result = {}
    for a, j in zip(anchors.tolist(), columns.tolist(), strict=True):
        result.setdefault(a, set()).add(j)
    return result


def gradient(loss, Z, y):
    (value,) = torch.autograd.grad(loss(Z, y), Z)
    return value


@pytest.mark.parametrize(
    "miner",
    [
        miners.TripletMarginMiner(margin=0.2, type_of_triplets="all"),
        miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard"),
        miners.MultiSimilarityMiner(),
        miners.BatchHardMiner(),
    ],
)
def test_mined_pairs_and_triplets_are_the_neighbor_sets(miner):
    Z, y = batch()
    mined = miner(Z, y)
    pairs = mined if len(mined) == 4 else (mined[0], mined[1], mined[0], mined[2])
    similar, dissimilar = sets(*pairs[:2]), sets(*pairs[2:])
    loss = ANNLoss(1.0, loss="hinge", plain=False, normalize=False)
    value = loss(Z, y, mined)
    assert value.item() == pytest.approx(naive(Z, similar, dissimilar).item())
    assert loss.n_excluded == len(Z) - len(similar.keys() & dissimilar.keys())
    assert torch.autograd.gradcheck(lambda Z: loss(Z, indices_tuple=mined), (Z,))


def test_a_miner_that_finds_nothing_costs_nothing():
    Z, y = batch()
    nothing = (torch.empty(0, dtype=torch.long),) * 3
    value = ANNLoss()(Z, y, nothing)
    value.backward()
    assert value.item() == 0
    assert (Z.grad == 0).all()


def test_memory_bank_compares_with_earlier_batches_and_no_anchor_with_itself():
    memory = cross_batch_memory(ANNLoss(), embedding_size=4, memory_size=60)
    first, y = batch(seed=1)
    memory(first, y)
    Z, y = batch(seed=2)
    value = memory(Z, y)
    every, labels = torch.cat([first, Z]).detach(), torch.cat([y, y])
    # The same anchors against everything, self-comparisons excluded by being the batch itself.
    expected = ANNLoss(reduction="none")(every, labels)[len(first) :].mean()
    torch.testing.assert_close(value, expected)
    value.backward()
    assert Z.grad.abs().max() > 0
    for seed in range(3, 7):  # around the end of the queue
        assert torch.isfinite(memory(*batch(seed=seed)))


def test_memory_bank_with_a_miner():
    memory = cross_batch_memory(ANNLoss(), 4, 100, miner=miners.MultiSimilarityMiner())
    for seed in range(3):
        Z, y = batch(seed=seed)
        memory(Z, y).backward()
        assert torch.isfinite(Z.grad).all()


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # by the trainer
def test_trainer_trains_on_it():
    torch.manual_seed(0)
    X, y = batch(200, 6, classes=2, dtype=torch.float32)
    X = (X + 0.5 * y[:, None]).detach()
    data = torch.utils.data.TensorDataset(X, y)
    trunk = torch.nn.Linear(6, 2)
    loss = ANNLoss(learn_temperature=True)
    before = loss(trunk(X), y).item()
    optimizer = torch.optim.Adam([*trunk.parameters(), *loss.parameters()], lr=0.02)
    trainers.MetricLossOnly(
        {"trunk": trunk},
        {"trunk_optimizer": optimizer},
        50,
        {"metric_loss": loss},
        data,
        mining_funcs={"tuple_miner": miners.MultiSimilarityMiner()},
        dataloader_num_workers=0,
        data_device=torch.device("cpu"),
    ).train(num_epochs=5)
    assert loss(trunk(X), y).item() < before


def test_tester_scores_the_network_of_an_estimator():
    X, y = load_iris(return_X_y=True)
    model = DeepANN(n_components=3, max_epochs=5, device="cpu", random_state=0).fit(X, y)
    standardized = torch.as_tensor(model.scaler_.transform(X), dtype=torch.float32)
    tester = testers.GlobalEmbeddingSpaceTester(
        normalize_embeddings=False,
        dataloader_num_workers=0,
        data_device=torch.device("cpu"),
        accuracy_calculator=AccuracyCalculator(
            include=("precision_at_1",),
            k=1,
            knn_func=CustomKNN(LpDistance(normalize_embeddings=False)),
        ),
    )
    data = torch.utils.data.TensorDataset(standardized, torch.as_tensor(y))
    accuracies = tester.test({"train": data}, 0, model.module_)["train"]
    nearest = KNeighborsClassifier(1)
    expected = cross_val_score(nearest, model.transform(X), y, cv=LeaveOneOut()).mean()
    assert accuracies["precision_at_1_level0"] == pytest.approx(expected)


@pytest.mark.parametrize("module", [torch.nn.Linear(6, 3), torch.nn.Flatten()])
def test_an_index_predicts_classes_from_the_neighbors_that_inference_model_finds(module):
    X, y = batch(80, 6, classes=4, dtype=torch.float32)
    X = (X + 0.7 * y[:, None]).detach()
    queries = batch(20, 6, seed=1, dtype=torch.float32)[0].detach()
    theirs = InferenceModel(module, normalize_embeddings=True, data_device=torch.device("cpu"))
    theirs.train_knn(X)
    distances, rows = theirs.get_nearest_neighbors(queries, k=5)
    index = vc.ClassMeanKNN(5, rule="vote").fit(embed(module, X), y.numpy())
    found = index.kneighbors(embed(module, queries))
    np.testing.assert_array_equal(found[1], rows)
    np.testing.assert_allclose(found[0] ** 2, distances, rtol=1e-4, atol=1e-5)
    shares = np.stack([np.bincount(y[row], minlength=4) / 5 for row in rows.numpy()])
    np.testing.assert_allclose(index.predict_proba(embed(module, queries)), shares, atol=1e-6)


LIFTED = {"alpha": -1.0, "loss": "hinge", "plain": True, "normalize": False, "temperature": 1.0}
SPECIAL_CASES = {
    "NCALoss": (
        {"temperature": 0.1, **NEGATIVE_LOG_P},
        losses.NCALoss(softmax_scale=10.0),
    ),
    "NCALoss, another formula": (
        {"temperature": 1.0, "contrast": "all", **NEGATIVE_LOG_P, "loss": "linear"},
        losses.NCALoss(softmax_scale=1.0),
    ),
    "NCALoss, Euclidean": (
        {"temperature": 0.1, "distance": "euclidean", **NEGATIVE_LOG_P},
        losses.NCALoss(softmax_scale=10.0, distance=LpDistance()),
    ),
    "NCALoss, cosine": (
        {"temperature": 0.1, "distance": "cosine", **NEGATIVE_LOG_P},
        losses.NCALoss(softmax_scale=10.0, distance=CosineSimilarity()),
    ),
    "GeneralizedLiftedStructureLoss": (
        {**LIFTED, "distance": "euclidean", "normalize": True},
        losses.GeneralizedLiftedStructureLoss(),
    ),
    "GeneralizedLiftedStructureLoss, margins": (
        {"distance": "euclidean", "margin": 3.0 - 0.5 - 1.0, **LIFTED},
        losses.GeneralizedLiftedStructureLoss(
            neg_margin=3.0, pos_margin=0.5, distance=LpDistance(normalize_embeddings=False)
        ),
    ),
    "GeneralizedLiftedStructureLoss, squared": (
        {"margin": 2.0, **LIFTED},
        losses.GeneralizedLiftedStructureLoss(
            neg_margin=3.0, distance=LpDistance(normalize_embeddings=False, power=2)
        ),
    ),
    "GeneralizedLiftedStructureLoss, cosine": (
        {"distance": "cosine", "margin": 0.2 - 0.9 - 1.0, **LIFTED},
        losses.GeneralizedLiftedStructureLoss(
            neg_margin=0.9, pos_margin=0.2, distance=CosineSimilarity()
        ),
    ),
    "SupConLoss": (
        {
            "alpha": 0.0,
            "loss": "linear",
            "plain": "dissimilar",
            "contrast": "all",
            "distance": "cosine",
            "temperature": 0.2,
        },
        losses.SupConLoss(temperature=0.2),
    ),
}
"""Configurations that are losses of pytorch-metric-learning; the table in docs/deep.md."""


@pytest.mark.parametrize(("configuration", "theirs"), SPECIAL_CASES.values(), ids=SPECIAL_CASES)
@pytest.mark.parametrize("seed", range(3))
def test_losses_of_the_package_are_configurations(configuration, theirs, seed):
    """In groups of unequal size, so that plain soft averages differ from means."""
    Z, _ = batch(30, seed=seed)
    y = torch.repeat_interleave(torch.arange(5), torch.tensor([2, 3, 5, 8, 12]))
    ours = ANNLoss(**configuration)
    assert ours(Z, y).item() == pytest.approx(theirs(Z, y).item(), rel=1e-6, abs=1e-6)
    expected = gradient(theirs, Z, y)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(gradient(ours, Z, y), expected, rtol=1e-6, atol=1e-6)


def test_worst_violators_keep_the_gradient_that_nca_loss_loses():
    """Two samples opposite to their class, amid others: p underflows in float32.

    NCALoss leaves them out, and with them all that they could teach. ANNLoss in float32 has the
    gradient that NCALoss has in float64, where nothing underflows.
    """
    angles = torch.tensor([0.0, 3.1, 0.02, 0.05, 3.0, 3.05], dtype=torch.float64)
    Z = torch.stack([torch.cos(angles), torch.sin(angles)], dim=1)
    y = torch.tensor([0, 0, 1, 1, 2, 2])
    nca = losses.NCALoss(softmax_scale=100.0, reducer=DoNothingReducer())

    def anchor_gradients(function, dtype):
        """(2, 6, 2) ∂(loss of anchor)/∂embeddings of the two violators."""
        points = Z.to(dtype).requires_grad_()
        values = function(points)
        gradients = [
            torch.autograd.grad(v, points, retain_graph=True)[0]
            if v.requires_grad
            else torch.zeros_like(points)
            for v in values
        ]
        return torch.stack(gradients)

    def nca_values(points):
        found = nca(points, y)["loss"]
        values = torch.zeros(6, dtype=points.dtype).index_put((found["indices"],), found["losses"])
        return values[:2]

    ours = ANNLoss(temperature=0.01, reduction="none", **NEGATIVE_LOG_P)
    exact = anchor_gradients(nca_values, torch.float64)
    assert (anchor_gradients(nca_values, torch.float32) == 0).all()
    kept = anchor_gradients(lambda points: ours(points, y)[:2], torch.float32)
    assert kept.abs().amax(dim=(1, 2)).min() > 1
    torch.testing.assert_close(kept.double(), exact, rtol=1e-3, atol=1e-3)
    hinge = ANNLoss(1.0, loss="hinge", plain=False, temperature=0.01, reduction="none")
    violators = anchor_gradients(lambda points: hinge(points, y)[:2], torch.float32)
    assert violators.abs().amax(dim=(1, 2)).min() > 1
