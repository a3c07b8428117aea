"""DeepANN as an estimator: conventions, reproducibility, early stopping, networks of one's own."""

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

import vicinal as vc  # noqa: E402
from vicinal.deep import ANNLoss, DeepANN, DeepANNRegressor, neighbor_network, training  # noqa: E402
from vicinal.deep.attribution import path_contributions  # noqa: E402
from vicinal.deep.training import TrainingRows  # noqa: E402
from vicinal.exceptions import UnseenLevelWarning  # noqa: E402
from vicinal.voting.explanation import contributions  # noqa: E402

FAST = {"max_epochs": 15, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@parametrize_with_checks(
    [
        model(max_epochs=epochs, n_components=16, hidden=(32,), device="cpu", random_state=0)
        for model, epochs in ((DeepANN, 15), (DeepANNRegressor, 100))
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_it_learns_what_no_linear_map_can():
    """On a line, two moons overlap under every linear map; a network parts them."""
    X, y = make_moons(400, noise=0.1, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    deep = DeepANN(n_components=1, max_epochs=60, device="cpu", random_state=0)
    linear = make_pipeline(vc.ANN(loss="logistic", n_components=1), KNeighborsClassifier())
    best_linear = linear.fit(X_train, y_train).score(X_test, y_test)
    assert deep.fit(X_train, y_train).score(X_test, y_test) > best_linear + 0.05


def test_prediction_is_the_vote_among_the_embeddings(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    model = DeepANN(**FAST, vote="majority", n_neighbors=7).fit(X, names)
    knn = KNeighborsClassifier(7).fit(model.transform(X), names)
    np.testing.assert_allclose(model.predict_proba(X), knn.predict_proba(model.transform(X)))
    assert set(model.predict(X)) <= set(names)
    assert make_pipeline(clone(model)).fit(X, names).score(X, names) > 0.9


def test_same_seed_same_result_and_torch_is_left_alone(iris):
    state = torch.random.get_rng_state()
    first, second, other = (
        DeepANN(**FAST | {"random_state": seed}).fit(*iris).transform(iris[0]) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-3
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_best_epoch_is_kept(iris):
    model = DeepANN(**FAST | {"max_epochs": 60, "patience": 3, "learning_rate": 0.02}).fit(*iris)
    scores = list(zip(model.validation_accuracy_, -model.validation_loss_, strict=True))
    assert len(scores) == model.n_iter_
    assert model.best_epoch_ == scores.index(max(scores)) + 1
    assert model.n_iter_ in (model.best_epoch_ + 3, 60)
    # Training again for just so many epochs ends at the same network.
    again = DeepANN(**FAST | {"max_epochs": model.best_epoch_, "learning_rate": 0.02}).fit(*iris)
    np.testing.assert_array_equal(again.transform(iris[0]), model.transform(iris[0]))


def test_without_validation_the_training_loss_decides(iris):
    model = DeepANN(**FAST, validation_fraction=0.0, loss="logistic").fit(*iris)
    assert model.best_epoch_ == np.argmin(model.validation_loss_) + 1
    assert model.validation_loss_.min() < model.validation_loss_[0]


def test_a_network_of_ones_own_is_copied(iris):
    torch.manual_seed(3)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    )
    before = {name: value.clone() for name, value in network.state_dict().items()}
    model = DeepANN(module=network, **FAST | {"max_epochs": 40, "batch_size": 32}).fit(*iris)
    assert model.transform(iris[0]).shape == (150, 3)
    assert model.score(*iris) > 0.9
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    with pytest.raises(ValueError, match="module must return"):
        DeepANN(module=torch.nn.Unflatten(1, (2, 2)), **FAST).fit(*iris)


def test_pickling_and_precision(iris):
    X, y = iris
    model = DeepANN(**FAST).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    narrow = model.transform(X.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, model.transform(X), rtol=1e-3, atol=1e-4)
    assert list(model.get_feature_names_out())[:2] == ["deepann0", "deepann1"]


def test_normalized_embeddings_have_length_one(iris):
    Z = DeepANN(**FAST, normalize=True).fit(*iris).transform(iris[0])
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0)


def test_temperature_is_fitted_or_given(iris):
    X, y = iris
    assert DeepANN(**FAST, temperature=0.5).fit(X, y).temperature_ == pytest.approx(0.5)
    scaled = torch.nn.Linear(4, 4)
    for distance, power in (("squared", 2), ("euclidean", 1)):
        fitted = []
        for scale in (1.0, 10.0):
            with torch.no_grad():
                scaled.weight.copy_(scale * torch.eye(4))
                scaled.bias.zero_()
            model = DeepANN(
                **FAST | {"max_epochs": 1}, module=scaled, temperature="auto", distance=distance
            )
            fitted.append(model.fit(X, y).temperature_)
        assert fitted[1] == pytest.approx(10**power * fitted[0], rel=1e-2)


def test_progress_is_logged(iris, caplog):
    with caplog.at_level("INFO", logger="vicinal"):
        DeepANN(**FAST | {"max_epochs": 2}, verbose=1).fit(*iris)
    assert [record.message.partition(" of")[0] for record in caplog.records] == [
        "epoch 1",
        "epoch 2",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"temperature": "hot"}, "use 'auto', or a finite number"),
        ({"module": "resnet"}, "torch.nn.Module"),
        ({"gamma": -1.0}, "gamma"),
        ({"embedding": "fourier"}, "embedding"),
        ({"candidates": 1.5}, "candidates"),
        ({"vote": "loud"}, "vote"),
        ({"distance": "hamming"}, "distance"),
    ],
)
def test_impossible_parameters_are_refused(iris, arguments, message):
    with pytest.raises(ValueError, match=message):
        DeepANN(**arguments).fit(*iris)


NUMBERS = (math.nan, math.inf, -math.inf, -1, 0, 1e308, 10**400)
ODD = (*NUMBERS, "x", b"x", [], {}, None, True, object())


@pytest.fixture(scope="module")
def few():
    """Rows of three classes, which are also the numbers."""
    y = np.arange(60) % 3
    return np.random.RandomState(0).standard_normal((60, 4)) + y[:, None], y


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in (DeepANN, DeepANNRegressor) for name in kind().get_params()],
)
def test_odd_parameters_are_refused_before_the_training_or_possible(few, monkeypatch, kind, name):
    trained = []

    def train(*args, **options):
        trained.append(name)
        return training.train(*args, **options)

    monkeypatch.setattr(neighbor_network, "train", train)
    small = {"n_components": 4, "hidden": (8,), "batch_size": 16, "max_epochs": 2}
    for value in ODD:
        model = kind(**small | {"device": "cpu", "random_state": 0} | {name: value})
        before, trained[:] = vars(model).copy(), []
        try:
            model.fit(*few)
        except ValueError as error:
            refusal = f"{error}"
            assert name in refusal, (value, refusal)
            assert not trained, (value, refusal)
            assert vars(model) == before
        else:
            assert np.isfinite(model.predict(few[0])).all(), value
            assert np.isfinite(model.embeddings_).all(), value
            assert np.isfinite(model.validation_loss_).all(), value


def test_a_training_that_diverges_is_an_error(few):
    model = DeepANN(**FAST | {"max_epochs": 2}).fit(*few)
    before = vars(model).copy()
    for fraction in (0.0, 0.15):
        model.set_params(learning_rate=1e30, validation_fraction=fraction)
        with pytest.raises(ValueError, match=r"diverged.*learning_rate.*temperature, gamma, alpha"):
            model.fit(*few)
    changed = {"learning_rate", "validation_fraction"}
    assert {name for name in before if vars(model)[name] is not before[name]} <= changed
    with pytest.raises(ValueError, match=r"diverged.*learning_rate.*defaults of temperature$"):
        DeepANNRegressor(**FAST | {"max_epochs": 2}, learning_rate=1e30).fit(*few)


def test_numbers_too_large_to_be_standardized_are_refused(few):
    X, y = few
    large = np.column_stack([X, 1e160 * y])
    for kind, given, message in (
        (DeepANN, (large, y), "X"),
        (DeepANNRegressor, (X, 1e307 * y), "y"),
    ):
        with pytest.raises(ValueError, match=f"{message} has numbers too large"):
            kind(**FAST).fit(*given)


def test_an_exponent_too_large_for_single_precision_is_infinite(few):
    for sign in (1.0, -1.0):
        huge, infinite = (
            DeepANN(sign * alpha, **FAST | {"max_epochs": 2}).fit(*few).embeddings_
            for alpha in (1e308, math.inf)
        )
        np.testing.assert_array_equal(huge, infinite)


def test_both_kinds_of_plain_averages_are_possible(few):
    losses = [
        DeepANN(**FAST | {"max_epochs": 2}, plain=plain).fit(*few).validation_loss_
        for plain in (True, "dissimilar")
    ]
    assert (losses[0] != losses[1]).all()


def test_a_batch_of_one_row_is_compared_with_another(few):
    model = DeepANN(**FAST | {"max_epochs": 1}, batch_size=1, candidates=0.0, hidden=(4,))
    assert model.fit(*few).n_iter_ == 1


def accuracy(Z, y, Q, u, temperature):
    return KNeighborsClassifier(5).fit(Z, y).score(Q, u)


@pytest.fixture
def labeled():
    """Training rows and validation rows of two classes."""
    rng = np.random.RandomState(0)
    X, y = torch.as_tensor(rng.standard_normal((130, 3))), torch.as_tensor(rng.randint(0, 2, 130))
    return TrainingRows(X, y)[np.arange(90)], TrainingRows(X, y)[np.arange(90, 130)]


def test_validation_rows_are_judged_by_the_vote_and_the_loss(labeled):
    data, held = labeled
    score = training._score(torch.nn.Identity(), ANNLoss(), data, held, accuracy)
    assert score.quality == KNeighborsClassifier(5).fit(data.X, data.y).score(held.X, held.y)
    loss = ANNLoss()(held.X, held.y, ref_emb=data.X, ref_labels=data.y)
    assert score.negative_loss == -loss.item()


def test_a_diverged_network_is_worse_than_any_other(labeled):
    class Diverged(torch.nn.Module):
        def forward(self, X):
            return X / 0

    score = training._score(Diverged(), ANNLoss(), *labeled, accuracy)
    assert score < training.Score(-1e300, -1e300)


def test_validation_rows_keep_two_of_every_class_in_training(monkeypatch):
    kept = []

    def train(module, loss, data, validation, *_, **__):
        kept.extend([data.y.bincount().tolist(), validation.y.bincount(minlength=3).tolist()])
        return training.Training([training.Score(1.0, 0.0)])

    monkeypatch.setattr(neighbor_network, "train", train)
    y = np.repeat([0, 1, 2], [2, 3, 40])
    X = np.random.RandomState(0).standard_normal((45, 4))
    DeepANN(validation_fraction=0.5, device="cpu", random_state=0).fit(X, y)
    assert kept == [[2, 2, 20], [0, 1, 20]]  # of 2, 3 and 40


def test_candidates_are_other_rows_drawn_anew_for_every_step(labeled):
    data, _ = labeled
    seen = []

    class Loss(ANNLoss):
        def with_candidates(self, embeddings, labels, others, other_labels):
            seen.append((embeddings.detach().clone(), others.detach().clone()))
            return super().with_candidates(embeddings, labels, others, other_labels)

    module, rng = torch.nn.Linear(3, 2).double(), np.random.RandomState(0)
    for share in (0.5, 0.5, 0.0):
        training._batch_loss(module, Loss(), data, np.arange(10), share, rng)
    assert [len(others) for _, others in seen] == [40, 40, 0]
    assert not torch.equal(seen[0][1], seen[1][1])
    Z = module(data.X).detach()
    for batch, others in seen[:2]:
        gaps = (others[:, None] - Z[None, 10:]).abs().amax(dim=2)
        assert (gaps.amin(dim=1) < 1e-9).all()  # none is of the batch
        torch.testing.assert_close(batch, Z[:10])


def test_a_refused_fit_leaves_the_estimator_as_it_was(iris):
    model = DeepANN(**FAST).fit(*iris)
    before = model.predict(iris[0])
    for X, y, gamma in ((*iris, -1.0), (iris[0], iris[1] * 0, 1.0)):
        with pytest.raises(ValueError, match=r"gamma|1 class"):
            model.set_params(gamma=gamma).fit(X, y)
    np.testing.assert_array_equal(model.predict(iris[0]), before)


@pytest.fixture(scope="module")
def cases():
    """A table with a category, gaps and a number that matters."""
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    size, color = rng.standard_normal(160), rng.choice(["red", "blue", None], 160)
    frame = pd.DataFrame({"size": np.where(rng.rand(160) < 0.1, np.nan, size), "color": color})
    return frame, size + np.where(color == "red", 2.0, 0.0)


def test_tables_with_categories_and_gaps(cases):
    frame, numbers = cases
    classes = np.where(numbers > np.median(numbers), "high", "low")
    classifier = DeepANN(**FAST | {"max_epochs": 40}).fit(frame, classes)
    regressor = DeepANNRegressor(**FAST | {"max_epochs": 40}).fit(frame, numbers)
    assert classifier.score(frame, classes) > 0.8
    assert regressor.score(frame, numbers) > 0.7
    assert classifier.encoder_ is not None
    with pytest.warns(UnseenLevelWarning, match="color"):
        assert np.isfinite(regressor.predict(frame.assign(color="green"))).all()


@pytest.mark.parametrize("vote", ["soft", "majority"])
def test_predictions_are_averages_over_training_rows(cases, vote):
    frame, numbers = cases
    targets = np.c_[numbers, -2 * numbers]
    regressor = DeepANNRegressor(**FAST, vote=vote).fit(frame, targets)
    weights, prior_share = regressor.vote_weights(frame)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights @ targets, regressor.predict(frame), atol=1e-10)
    assert not prior_share.any()
    classes = (numbers > 0).astype(int)
    classifier = DeepANN(**FAST, vote=vote).fit(frame, classes)
    shares = classifier.vote_weights(frame)[0] @ np.eye(2)[classes]
    np.testing.assert_allclose(shares, classifier.predict_proba(frame), atol=1e-6)


def test_soft_votes_are_those_of_the_loss(iris):
    X, y = iris
    model = DeepANN(**FAST, n_neighbors=150).fit(X, y)
    Z = model.transform(X)
    D = np.sqrt(((Z[:, None] - Z) ** 2).sum(axis=2)) / model.temperature_
    W = np.exp(-D) / np.exp(-D).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.vote_weights(X)[0].toarray(), W, rtol=1e-5, atol=1e-9)
    distances, rows = model.kneighbors(n_neighbors=3)
    assert np.all(rows != np.arange(150)[:, None])
    np.fill_diagonal(D, np.inf)
    expected = np.sort(D, axis=1)[:, :3] * model.temperature_
    np.testing.assert_allclose(distances, expected, rtol=1e-5, atol=1e-6)


def test_random_numbers_are_not_learned():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((200, 3)), rng.standard_normal(200)
    model = DeepANNRegressor(**FAST | {"max_epochs": 60}).fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > -0.3


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_explanations_add_up(cases, distance):
    frame, numbers = cases
    model = DeepANN(**FAST, distance=distance).fit(frame, numbers > 0)
    explanations = model.explain(frame[:4], n_neighbors=3)
    weights = model.vote_weights(frame[:4])[0].toarray()
    Z = model.embeddings_
    for i, explanation in enumerate(explanations):
        assert explanation.feature_names == ("size", "color")
        assert explanation.prediction == model.predict(frame[i : i + 1])[0]
        assert explanation.effective_neighbors == pytest.approx(
            np.exp(-np.sum(weights[i][weights[i] > 0] * np.log(weights[i][weights[i] > 0])))
        )
        for vote in explanation.neighbors:
            assert vote.weight == pytest.approx(weights[i, vote.row])
            distance = np.linalg.norm(model.transform(frame[i : i + 1])[0] - Z[vote.row])
            assert vote.contributions.sum() == pytest.approx(distance**2, rel=1e-4, abs=1e-8)
    assert [vote.weight for vote in explanations[0].neighbors] == sorted(weights[0])[:-4:-1]


@pytest.mark.parametrize("targets", [1, 2])
def test_explanations_of_numbers(cases, targets):
    frame, numbers = cases
    y = numbers if targets == 1 else np.column_stack([numbers, -numbers])
    model = DeepANNRegressor(**FAST).fit(frame, y)
    (explanation,) = model.explain(frame[:1], n_neighbors=len(frame))
    assert explanation.probabilities == {}
    np.testing.assert_allclose(explanation.prediction, model.predict(frame[:1])[0])
    average = sum(vote.weight * vote.label for vote in explanation.neighbors)
    np.testing.assert_allclose(average, explanation.prediction)
    gaps = model.transform(frame[:1]) - model.embeddings_
    for vote in explanation.neighbors:
        np.testing.assert_allclose(vote.label, y[vote.row])
        squared = np.sum(gaps[vote.row] ** 2)
        assert vote.contributions.sum() == pytest.approx(squared, rel=1e-4, abs=1e-8)
    assert "prediction" in str(explanation)


@pytest.mark.parametrize("embedding", ["periodic", "piecewise", None])
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_features_that_do_not_differ_contribute_nothing(iris, embedding, distance):
    X, y = iris
    X = np.column_stack([X, X[:, 0] > 5.5])  # a feature of two values, which is not embedded
    model = DeepANN(**FAST, embedding=embedding, distance=distance).fit(X, y)
    query = X[:1].copy()
    query[0, 1] += 1.0
    (explanation,) = model.explain(query, n_neighbors=150)
    vote = next(vote for vote in explanation.neighbors if vote.row == 0)
    np.testing.assert_allclose(vote.contributions[[0, 2, 3, 4]], 0.0, atol=1e-12)
    assert vote.contributions[1] == pytest.approx(vote.distance**2)
    assert vote.distance > 0


def test_contributions_of_a_linear_map_are_those_of_its_metric():
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 2).double()
    x, rows = torch.randn(3).double(), torch.randn(5, 3).double()
    L = module.weight.detach().numpy()
    expected = contributions(x.numpy(), rows.numpy(), L.T @ L)
    np.testing.assert_allclose(path_contributions(module, x, rows), expected, atol=1e-12)
