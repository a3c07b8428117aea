"""A neural network trained on the neighbor objective, as a scikit-learn estimator."""

from __future__ import annotations

import copy
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from vicinal._typing import FloatArray, IndexArray, LabelArray, Seed
from vicinal.deep.loss import ANNLoss, Elementwise, LossPair
from vicinal.deep.network import (
    choose_device,
    embed,
    embed_tensor,
    keep_threads,
    multilayer_perceptron,
    seeded,
)
from vicinal.deep.training import Budget, LabeledRows, Training, stratified_split, train
from vicinal.learners.descent import show_log
from vicinal.learners.fit_input import DTYPES, check_labeled, store_fit
from vicinal.learners.initialization import scale_for_perplexity
from vicinal.learners.labeled_data import encode_labels
from vicinal.learners.parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    Instance,
    Number,
    OneOf,
    ParameterConstraints,
    check_parameters,
)
from vicinal.voting.class_mean import ClassMeanKNN

PERPLEXITY = 20.0
"""Effective number of neighbors at the start, as in the linear learners."""


class DeepANN(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):
    """Adaptive Nearest Neighbor with a neural network in the place of the linear map.

    Features are standardized, embedded by a network that is trained on :class:`ANNLoss`, and
    classified by the vote of the nearest embeddings of training samples.

    Parameters
    ----------
    alpha, gamma, loss, plain, similar, normalize
        The loss, see :class:`ANNLoss`; the defaults are ANN⁺ of the linear learner.
    temperature : float or "auto", default="auto"
        Of the loss. "auto" gives the untrained embeddings a mean perplexity of 20: neither
        saturated nor flat.
    n_components : int, default=32
        Components of the embedding; not used with ``module``.
    hidden : tuple of int, default=(256,)
        Widths of the hidden layers; not used with ``module``.
    module : torch.nn.Module, default=None
        A network of your own, from (batch, n_features) to (batch, components). It is copied.
    n_neighbors : int, default=5
        Number of neighbors that vote in :meth:`predict`.
    max_epochs : int, default=100
        Passes over the training rows.
    patience : int, default=20
        Stop after this number of epochs without a better validation score.
    batch_size : int, default=256
        Samples per batch; all samples if there are fewer.
    learning_rate, weight_decay : float, default=1e-3 and 1e-2
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
    scaler_ : StandardScaler
    knn_ : ClassMeanKNN
        The vote among the embeddings of all training samples.
    temperature_ : float
        T of the loss.
    validation_accuracy_, validation_loss_ : ndarray of shape (``n_iter_``,)
        After every epoch. Without validation rows the accuracy is 0 and the
        loss that of the training rows.
    best_epoch_, n_iter_ : int
        The epoch that was kept, counted from 1, and how many there were.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal.deep import DeepANN
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DeepANN(n_components=2, random_state=0, device="cpu").fit(X, y)
    >>> model.score(X, y) > 0.95, model.transform(X).shape
    (True, (150, 2))
    """

    _constraints: ClassVar[ParameterConstraints] = {
        "n_components": COUNT,
        "n_neighbors": COUNT,
        "max_epochs": COUNT,
        "patience": COUNT,
        "batch_size": COUNT,
        "learning_rate": POSITIVE,
        "weight_decay": NOT_NEGATIVE,
        "validation_fraction": Number(0, 0.9),
        "temperature": OneOf(("auto",), POSITIVE),
        "module": OneOf((None,), Instance(nn.Module, "a torch.nn.Module")),
    }

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        *,
        loss: str | LossPair | Elementwise = "hinge",
        plain: bool | Literal["dissimilar"] = False,
        similar: str | int = "all",
        temperature: float | str = "auto",
        normalize: bool = False,
        n_components: int = 32,
        hidden: tuple[int, ...] = (256,),
        module: nn.Module | None = None,
        n_neighbors: int = 5,
        max_epochs: int = 100,
        patience: int = 20,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
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
        self.temperature = temperature
        self.normalize = normalize
        self.n_components = n_components
        self.hidden = hidden
        self.module = module
        self.n_neighbors = n_neighbors
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
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels of any type that scikit-learn takes.
        """
        given = check_labeled(self, X, y)
        check_parameters(self)
        if self.verbose:
            show_log()
        classes, codes = encode_labels(given.y)
        scaler = StandardScaler().fit(given.X)
        rng = check_random_state(self.random_state)
        device = choose_device(self.device)
        with seeded(rng.randint(2**31), device):
            module, loss, training = self._train(scaler.transform(given.X), codes, device, rng)
        Z = self._embed(given.X, scaler, module)
        knn = ClassMeanKNN(min(self.n_neighbors, len(codes)), rule="vote").fit(Z, codes)
        outcome = {
            "classes_": classes,
            "scaler_": scaler,
            "module_": module,
            "temperature_": loss.temperature,
            "best_epoch_": training.best_epoch,
            "n_iter_": len(training.history),
            "validation_accuracy_": np.array([score.accuracy for score in training.history]),
            "validation_loss_": np.array([-score.negative_loss for score in training.history]),
            "knn_": knn,
        }
        store_fit(self, {**given.attributes, **outcome})
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Embed X: (n_samples, n_components), of the precision of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=DTYPES, reset=False)
        return self._embed(rows, self.scaler_, self.module_)

    def predict(self, X: ArrayLike) -> LabelArray:
        """The class that most of the nearest embeddings have, ties to the nearest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        winners = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[winners]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The share of every class in the vote, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        Z = self.transform(X)
        with keep_threads():
            return self.knn_.predict_proba(Z)

    def _train(
        self, X: FloatArray, codes: IndexArray, device: torch.device, rng: np.random.RandomState
    ) -> tuple[nn.Module, ANNLoss, Training]:
        """The trained network on the host, its loss, and how the training went."""
        module = self.module
        if module is None:
            module = multilayer_perceptron(X.shape[1], self.hidden, self.n_components)
        module = copy.deepcopy(module).to(device, torch.float32)
        data = LabeledRows(
            torch.as_tensor(X, dtype=torch.float32, device=device),
            torch.as_tensor(codes, device=device),
        )
        rows, held = stratified_split(codes, self.validation_fraction, rng)
        loss = self._make_loss(embed_tensor(module, data.X)).to(device)
        training = train(
            module,
            loss,
            data[rows],
            data[held],
            Budget(
                self.max_epochs,
                self.patience,
                self.batch_size,
                self.learning_rate,
                self.weight_decay,
            ),
            n_neighbors=self.n_neighbors,
            rng=rng,
            verbose=self.verbose,
        )
        return module.cpu(), loss, training

    def _make_loss(self, Z: torch.Tensor) -> ANNLoss:
        """The loss, its temperature fitted to the embeddings Z of the untrained network."""
        temperature = self.temperature
        if temperature == "auto":
            points = nn.functional.normalize(Z, dim=1) if self.normalize else Z
            temperature = 1.0 / scale_for_perplexity(points.double().cpu().numpy(), PERPLEXITY)
        return ANNLoss(
            self.alpha,
            self.gamma,
            loss=self.loss,
            plain=self.plain,
            similar=self.similar,
            temperature=float(temperature),
            normalize=self.normalize,
        )

    def _embed(self, X: FloatArray, scaler: StandardScaler, module: nn.Module) -> FloatArray:
        """Embeddings in the precision of X, by a copy of the network on the device."""
        points = torch.as_tensor(scaler.transform(X))
        module = copy.deepcopy(module).to(choose_device(self.device), points.dtype)
        return embed(module, points, normalize=self.normalize)

    @property
    def _n_features_out(self) -> int:
        return int(self.knn_.n_features_in_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
