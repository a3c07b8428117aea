"""Networks trained on the neighbor objective, as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from torch import Tensor, nn

from vicinal._typing import FloatArray, IndexArray, LabelArray, Seed
from vicinal.deep.embedded_rows import N_NEIGHBORS, EmbeddedRows, Vote
from vicinal.deep.feature_embedding import EmbeddingName
from vicinal.deep.loss import ANNLoss, Elementwise, LossPair
from vicinal.deep.neighbor_network import SCALE, NeighborNetwork
from vicinal.deep.network import keep_threads
from vicinal.deep.number_loss import NUMBER_LOSSES, MLKRLoss
from vicinal.learners.fit_input import store_fit
from vicinal.learners.labeled_data import encode_labels
from vicinal.learners.parameters import (
    COUNT,
    Flag,
    Number,
    OneOf,
    ParameterConstraints,
    check_parameters,
)
from vicinal.voting.class_mean import ClassMeanKNN
from vicinal.voting.row_weights import VotingRows


class DeepANN(ClassifierMixin, NeighborNetwork):
    """Adaptive Nearest Neighbor with a neural network in the place of the linear map.

    Columns become standardized numbers, each number an embedding of its own, all of them an
    embedding of the row by a network that is trained on :class:`ANNLoss`; a row is classified by
    the votes of the training rows with the nearest embeddings. So a prediction is a weighted
    average over training rows, and :meth:`vote_weights` and :meth:`kneighbors` show them.

    Parameters
    ----------
    alpha, gamma, loss, plain, similar, normalize, distance
        The loss, see :class:`ANNLoss`. The defaults are −ln p of neighborhood components analysis
        with Euclidean distances that are not squared.
    temperature : float or "auto", default=3.0
        Of the loss. At 3 nearly all rows count for an untrained network, so that it learns coarse
        differences before fine ones. "auto" gives the untrained embeddings a mean perplexity of 20.
    embedding : {"periodic", "piecewise"} or None, default="periodic"
        Learned embedding of every feature with more than two values: sines and cosines of learned
        frequencies, or the place among quantiles. None takes the features as they are. Not used
        with ``module``.
    n_components : int, default=128
        Components of the embedding; not used with ``module``.
    hidden : tuple of int, default=(256,)
        Widths of the hidden layers; not used with ``module``.
    dropout : float, default=0.1
        Share of the units of hidden layers that a training step leaves out; not used with
        ``module``.
    module : torch.nn.Module, default=None
        A network of your own, from (batch, n_features) to (batch, components). It is copied.
    vote : {"soft", "majority"}, default="soft"
        Votes of the nearest rows: exp(−d/T), as in the loss, or equal ones.
    n_neighbors : int, default=None
        Number of neighbors that vote. None is 256 for soft votes, of which few count, and 5 for
        equal ones.
    candidates : float, default=0.3
        Share of the training rows that every batch is compared with, besides itself. They are drawn
        anew for every step.
    max_epochs : int, default=200
        Passes over the training rows.
    patience : int, default=20
        Stop after this number of epochs without a better validation score.
    batch_size : int, default=256
        Samples per batch; all samples if there are fewer.
    learning_rate, weight_decay : float, default=2e-3 and 1e-2
        Of AdamW.
    validation_fraction : float, default=0.15
        Share of every class that is kept out of training, to choose the epoch by the accuracy of
        the vote; ties are decided by the loss. 0 trains on all rows and chooses the epoch by the
        training loss.
    device : str or torch.device, default="auto"
        "auto" is the GPU where there is one, else the CPU.
    verbose : int, default=0
        1 logs every epoch, on the logger "vicinal".
    random_state : int, RandomState or None, default=None
        For the validation rows, the first weights and the batches.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, on the CPU; it takes standardized features.
    encoder_ : TableEncoder or None
        What made numbers of the columns; None where they were numbers without gaps.
    scaler_ : StandardScaler
    embeddings_ : ndarray of shape (n_samples_fit, n_components)
        Of all training samples.
    knn_ : ClassMeanKNN
        The vote of equal weights among them.
    temperature_ : float
        T of the loss.
    validation_accuracy_, validation_loss_ : ndarray of shape (``n_iter_``,)
        After every epoch. Without validation rows the accuracy is 0 and the
        loss that of the training rows.
    best_epoch_, n_iter_ : int
        The epoch that was kept, counted from 1, and how many there were.
    X_fit_, y_fit_, classes_, n_features_in_, feature_names_in_
        Training samples as numbers, their classes as codes, and as in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal.deep import DeepANN
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DeepANN(n_components=2, max_epochs=20, random_state=0, device="cpu").fit(X, y)
    >>> model.score(X, y) > 0.95, model.transform(X).shape
    (True, (150, 2))
    """

    _constraints: ClassVar[ParameterConstraints] = {
        **NeighborNetwork._constraints,
        "alpha": Number(infinite=True),
        "gamma": SCALE,
        "plain": OneOf(("dissimilar",), Flag()),
        "similar": OneOf(("all",), COUNT),
    }

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        *,
        loss: str | LossPair | Elementwise = "logistic",
        plain: bool | Literal["dissimilar"] = True,
        similar: str | int = "all",
        distance: Literal["squared", "euclidean", "cosine"] = "euclidean",
        temperature: float | str = 3.0,
        normalize: bool = False,
        embedding: EmbeddingName | None = "periodic",
        n_components: int = 128,
        hidden: tuple[int, ...] = (256,),
        dropout: float = 0.1,
        module: nn.Module | None = None,
        vote: Vote = "soft",
        n_neighbors: int | None = None,
        candidates: float = 0.3,
        max_epochs: int = 200,
        patience: int = 20,
        batch_size: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-2,
        validation_fraction: float = 0.15,
        device: str | torch.device = "auto",
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.loss = loss
        self.plain = plain
        self.similar = similar
        self.distance = distance
        self.temperature = temperature
        self.normalize = normalize
        self.embedding = embedding
        self.n_components = n_components
        self.hidden = hidden
        self.dropout = dropout
        self.module = module
        self.vote = vote
        self.n_neighbors = n_neighbors
        self.candidates = candidates
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train the network and keep the embeddings of all samples.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, with or without gaps (NaN), or columns of any kind:
            :class:`~vicinal.TableEncoder` makes numbers of them.
        y : array-like of shape (n_samples,)
            Class labels of any type that scikit-learn takes.
        """
        check_parameters(self)
        given, encoder = self._encoded(X, y, "classes")
        classes, codes = encode_labels(given.y)
        attributes, training = self._train(given, codes, codes)
        accuracies = [max(score.quality, 0.0) for score in training.history]
        outcome = {
            "encoder_": encoder,
            "classes_": classes,
            "y_fit_": codes,
            "validation_accuracy_": np.array(accuracies),
            "knn_": self._equal_votes(attributes["embeddings_"], codes),
        }
        store_fit(self, {**attributes, **outcome})
        return self

    def predict(self, X: ArrayLike) -> LabelArray:
        """The class of the largest share; among equal votes that of the nearest embedding.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        """
        winners = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[winners]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The share of every class in the vote, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        """
        Z = self.transform(X)
        with keep_threads():
            return self._class_shares(Z, self.knn_, self._voters, self.y_fit_)

    def _stated(self, X: ArrayLike) -> list[tuple[Any, dict[object, float]]]:
        return [
            (
                self.classes_[np.argmax(p)],
                dict(zip(self.classes_.tolist(), p.tolist(), strict=True)),
            )
            for p in self.predict_proba(X)
        ]

    def _targets(self) -> LabelArray:
        return self.classes_[self.y_fit_]

    def _class_shares(
        self, Q: FloatArray, knn: ClassMeanKNN, rows: EmbeddedRows, codes: IndexArray
    ) -> FloatArray:
        """(q, c) of the embeddings Q (q, m)."""
        if self.vote == "majority":
            return knn.predict_proba(Q)
        voters = VotingRows.of(codes, np.ones(len(codes)))
        return rows.row_weights(Q).class_probabilities(voters).astype(Q.dtype, copy=False)

    def _equal_votes(self, Z: FloatArray, codes: IndexArray) -> ClassMeanKNN:
        k = int(self.n_neighbors or N_NEIGHBORS["majority"])
        return ClassMeanKNN(min(k, len(codes)), rule="vote").fit(Z, codes)

    def _quality(self, Z: FloatArray, y: Any, Q: FloatArray, u: Any, temperature: float) -> float:
        """Accuracy of the votes."""
        rows, knn = self._rows(Z, temperature), self._equal_votes(Z, y)
        winners = self._class_shares(Q, knn, rows, y).argmax(axis=1)
        return float(np.mean(winners == u))

    def _make_loss(self, Z: Tensor) -> ANNLoss:
        return ANNLoss(
            self.alpha,
            self.gamma,
            loss=self.loss,
            plain=self.plain,
            similar=self.similar,
            distance=self.distance,
            temperature=self._first_temperature(Z),
            normalize=self.normalize,
        )


class DeepANNRegressor(RegressorMixin, NeighborNetwork):
    """Nearest-neighbor regression with the embeddings of a neural network.

    As :class:`DeepANN`, for numbers: the network is trained on :class:`MLKRLoss`, and a prediction
    is the average of the training rows with the nearest embeddings.

    Parameters
    ----------
    loss : {"squared", "absolute", "huber"}, default="squared"
        Of the averages, in standard deviations of each target.
    distance, temperature, normalize, embedding, n_components, hidden, dropout, module, vote, \
    n_neighbors, candidates, max_epochs, patience, batch_size, learning_rate, weight_decay, \
    validation_fraction, device, verbose, random_state
        As for :class:`DeepANN`. The epoch is chosen by the mean squared error of the votes.

    Attributes
    ----------
    validation_score_ : ndarray of shape (``n_iter_``,)
        R² of the validation rows after every epoch, the mean over targets; 0 without such rows.
    y_fit_ : ndarray of shape (n_samples_fit,) or (n_samples_fit, n_targets)
    module_, encoder_, scaler_, embeddings_, temperature_, validation_loss_, best_epoch_, n_iter_, \
    X_fit_, n_features_in_, feature_names_in_
        As for :class:`DeepANN`.

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal.deep import DeepANNRegressor
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = DeepANNRegressor(max_epochs=40, random_state=0, device="cpu").fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        **NeighborNetwork._constraints,
        "loss": OneOf(tuple(NUMBER_LOSSES)),
    }

    y_fit_: FloatArray

    def __init__(
        self,
        loss: Literal["squared", "absolute", "huber"] = "squared",
        *,
        distance: Literal["squared", "euclidean", "cosine"] = "euclidean",
        temperature: float | str = 3.0,
        normalize: bool = False,
        embedding: EmbeddingName | None = "periodic",
        n_components: int = 128,
        hidden: tuple[int, ...] = (256,),
        dropout: float = 0.1,
        module: nn.Module | None = None,
        vote: Vote = "soft",
        n_neighbors: int | None = None,
        candidates: float = 0.3,
        max_epochs: int = 200,
        patience: int = 20,
        batch_size: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-2,
        validation_fraction: float = 0.15,
        device: str | torch.device = "auto",
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.loss = loss
        self.distance = distance
        self.temperature = temperature
        self.normalize = normalize
        self.embedding = embedding
        self.n_components = n_components
        self.hidden = hidden
        self.dropout = dropout
        self.module = module
        self.vote = vote
        self.n_neighbors = n_neighbors
        self.candidates = candidates
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train the network and keep the embeddings of all samples.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            As for :class:`DeepANN`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers.
        """
        check_parameters(self)
        given, encoder = self._encoded(X, y, "number", multi_output=True, y_numeric=True)
        y = np.asarray(given.y, dtype=np.float64)
        targets = y.reshape(len(y), -1)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused later
            spread = targets.std(axis=0)
            standard = (targets - targets.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        attributes, training = self._train(given, standard, np.zeros(len(y), dtype=np.intp))
        scores = np.array([score.quality for score in training.history])
        store_fit(
            self, {**attributes, "encoder_": encoder, "y_fit_": y, "validation_score_": scores}
        )
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Averages over the training rows, (n_samples,) or (n_samples, n_targets).

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        """
        Z = self.transform(X)
        targets = self.y_fit_.reshape(len(self.y_fit_), -1)
        with keep_threads():
            averages = _averages(self._voters, Z, targets)
        return averages[:, 0] if self.y_fit_.ndim == 1 else averages

    def _stated(self, X: ArrayLike) -> list[tuple[Any, dict[object, float]]]:
        return [(value, {}) for value in self.predict(X)]

    def _targets(self) -> FloatArray:
        return self.y_fit_

    def _quality(self, Z: FloatArray, y: Any, Q: FloatArray, u: Any, temperature: float) -> float:
        """1 less the mean squared error of standardized targets: about R²."""
        averages = _averages(self._rows(Z, temperature), Q, y)
        return 1.0 - float(np.mean((averages - u) ** 2))

    def _make_loss(self, Z: Tensor) -> MLKRLoss:
        return MLKRLoss(
            self.loss,
            distance=self.distance,
            temperature=self._first_temperature(Z),
            normalize=self.normalize,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _averages(rows: EmbeddedRows, Q: FloatArray, targets: FloatArray) -> FloatArray:
    """(q, t) averages of targets (n, t) for embeddings Q (q, m)."""
    return rows.row_weights(Q).averages(targets, np.zeros(targets.shape[1]))
