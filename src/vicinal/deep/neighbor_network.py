"""Base of the estimators of networks: from a table to embeddings, and their votes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import entr
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from vicinal._typing import FloatArray, IndexArray, LabelArray, Seed
from vicinal.deep.attribution import feature_contributions
from vicinal.deep.embedded_rows import EmbeddedRows, Vote
from vicinal.deep.feature_embedding import EmbeddingName, table_network
from vicinal.deep.network import choose_device, embed, embed_tensor, seeded
from vicinal.deep.soft_averages import DISTANCES
from vicinal.deep.training import (
    Budget,
    EmbeddingLoss,
    Training,
    TrainingRows,
    stratified_split,
    train,
)
from vicinal.features.table_encoder import TableEncoder, encode_samples
from vicinal.features.table_values import dense
from vicinal.learners.descent import show_log
from vicinal.learners.fit_input import DTYPES, FitInput, check_labeled, on_host
from vicinal.learners.initialization import scale_for_perplexity
from vicinal.learners.parameters import (
    COUNT,
    Counts,
    Flag,
    Instance,
    Number,
    OneOf,
    ParameterConstraints,
)
from vicinal.voting.explanation import Explanation, NeighborVote
from vicinal.voting.sources import prepared

PERPLEXITY = 20.0
"""Effective number of neighbors at the start, as in the linear learners."""
SINGLE = np.finfo(np.float32)
"""Of the precision that networks are trained in."""
SCALE = Number(float(SINGLE.tiny), float(SINGLE.max))
"""A positive number that the training can divide and multiply by."""


@dataclass(frozen=True)
class Trained:
    """A trained network on the host, its loss, and how the training went."""

    module: nn.Module
    loss: EmbeddingLoss
    training: Training


class _Directions(nn.Module):
    """Embeddings scaled to length 1."""

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(Z, dim=1)


class NeighborNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Network whose embeddings of training rows vote: what classes and numbers have in common."""

    _constraints: ClassVar[ParameterConstraints] = {
        "distance": OneOf(tuple(DISTANCES)),
        "normalize": Flag(),
        "embedding": OneOf((None, "periodic", "piecewise")),
        "n_components": COUNT,
        "hidden": Counts(),
        "dropout": Number(0, 0.9),
        "vote": OneOf(("soft", "majority")),
        "n_neighbors": OneOf((None,), COUNT),
        "candidates": Number(0, 1),
        "max_epochs": COUNT,
        "patience": COUNT,
        "batch_size": COUNT,
        "learning_rate": SCALE,
        "weight_decay": Number(0, SCALE.high),
        "validation_fraction": Number(0, 0.9),
        "temperature": OneOf(("auto",), SCALE),
        "module": OneOf((None,), Instance(nn.Module, "a torch.nn.Module")),
    }

    normalize: bool
    distance: Literal["squared", "euclidean", "cosine"]
    temperature: float | str
    embedding: EmbeddingName | None
    n_components: int
    hidden: tuple[int, ...]
    dropout: float
    module: nn.Module | None
    vote: Vote
    n_neighbors: int | None
    candidates: float
    max_epochs: int
    patience: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    validation_fraction: float
    device: str | torch.device
    verbose: int
    random_state: Seed

    encoder_: TableEncoder | None
    scaler_: StandardScaler
    module_: nn.Module
    temperature_: float
    X_fit_: FloatArray
    embeddings_: FloatArray
    n_features_in_: int

    def transform(self, X: ArrayLike) -> FloatArray:
        """Embed X: (n_samples, n_components), of the precision of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        """
        return self._embed(self._queries(X), self.scaler_, self.module_)

    def vote_weights(self, X: ArrayLike) -> tuple[csr_array, FloatArray]:
        """Weight of every training row in the predictions.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)

        Returns
        -------
        weights : sparse array of shape (n_queries, n_samples_fit)
            Rows sum to 1; predictions are these averages over the training rows.
        prior_share : (n_queries,) array
            0: the prior has no share, as it may have in :meth:`vicinal.ANNClassifier.vote_weights`.
        """
        weights = self._voters.row_weights(self.transform(X))
        return weights.to_sparse(len(self.embeddings_)), weights.prior_share

    def kneighbors(
        self, X: ArrayLike | None = None, n_neighbors: int = 5, return_distance: bool = True
    ) -> tuple[FloatArray, IndexArray] | IndexArray:
        """Find the training rows with the nearest embeddings.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features), or None
            None asks for the neighbors of the training rows, excluding each row itself.
        n_neighbors : int, default=5
        return_distance : bool, default=True

        Returns
        -------
        distances : (n_queries, n_neighbors) array
            Euclidean distances of the embeddings; only if ``return_distance``.
        indices : (n_queries, n_neighbors) array of rows of the training data
        """
        check_is_fitted(self)
        n = len(self.embeddings_)
        own = np.arange(n) if X is None else None
        check_scalar(n_neighbors, "n_neighbors", Integral, min_val=1, max_val=n - (X is None))
        Z = self.embeddings_ if X is None else self.transform(X)
        found = self._voters.nearest(Z, int(n_neighbors), own)
        return (np.sqrt(found.distances), found.ids) if return_distance else found.ids

    def effective_neighbors(self, X: ArrayLike) -> FloatArray:
        """Effective number of training rows in a prediction, (n,): exp(entropy) of their weights.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
        """
        return self._effective(self._voters.row_weights(self.transform(X)).terms[0].weights)

    @staticmethod
    def _effective(weights: FloatArray) -> FloatArray:
        return np.asarray(np.exp(entr(weights).sum(axis=1)))

    def explain(self, X: ArrayLike, n_neighbors: int = 5) -> list[Explanation]:
        """For every row of X the training rows of largest weight, and what made them near.

        Contributions of the features to the squared distance of two embeddings are integrated
        gradients along a straight line: between the embedded features of the two rows, and with a
        ``module`` of your own or without feature embeddings between the rows themselves.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
        n_neighbors : int, default=5

        Returns
        -------
        explanations : list of Explanation
            As of :meth:`vicinal.ANNClassifier.explain`; ``print`` one to see it as a table.
        """
        check_scalar(n_neighbors, "n_neighbors", Integral, min_val=1)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        votes = self._neighbor_votes(self._queries(X), int(n_neighbors))
        return [
            Explanation(
                prediction=prediction,
                probabilities=shares,
                neighbors=listed,
                other_weight=max(0.0, 1.0 - sum(vote.weight for vote in listed)),
                effective_neighbors=effective,
                feature_names=tuple(str(name) for name in names),
            )
            for (prediction, shares), (listed, effective) in zip(
                self._stated(X), votes, strict=True
            )
        ]

    def _stated(self, X: ArrayLike) -> list[tuple[Any, dict[object, float]]]:
        """Prediction and shares of the classes, if there are any, for every row of X."""
        raise NotImplementedError

    def _targets(self) -> LabelArray:
        """(n, ...) classes or numbers of the training rows."""
        raise NotImplementedError

    def _neighbor_votes(
        self, queries: FloatArray, k: int
    ) -> Iterator[tuple[tuple[NeighborVote, ...], float]]:
        """For every query (q, e) the k rows of largest weight, and the effective number of rows."""
        (term,) = self._voters.row_weights(self._embed(queries, self.scaler_, self.module_)).terms
        module, labels = copy.deepcopy(self.module_).double().eval(), self._targets()
        network: nn.Module = module
        if self._normalized:
            layers = module if isinstance(module, nn.Sequential) else (module,)
            network = nn.Sequential(*layers, _Directions())
        scaled = torch.as_tensor(self.scaler_.transform(self.X_fit_.astype(np.float64)))
        asked = torch.as_tensor(self.scaler_.transform(queries.astype(np.float64)))
        effective = self._effective(term.weights)
        for i, x in enumerate(asked):
            order = np.argsort(-term.weights[i], kind="stable")[:k]
            rows, weights = term.ids[i, order], term.weights[i, order]
            parts = feature_contributions(network, x, scaled[rows])
            distances = np.sqrt(np.maximum(parts.sum(axis=1), 0.0))
            if self.encoder_ is not None:
                parts = self.encoder_.sum_by_column(parts)
            votes = zip(rows, labels[rows], weights, distances, parts, strict=True)
            yield (
                tuple(NeighborVote(int(r), y, float(w), float(d), p) for r, y, w, d, p in votes),
                float(effective[i]),
            )

    # --------------------------------------------------------------------------------- fitting

    def _encoded(
        self, X: Any, y: Any, target_type: Literal["classes", "number"], **options: Any
    ) -> tuple[FitInput, TableEncoder | None]:
        """Checked samples as numbers, and the encoder that made them if there is one."""
        encoded = encode_samples(X, y, target_type)
        given = check_labeled(self, encoded.X, y, **options)
        if encoded.encoder is not None:
            given = replace(given, attributes=encoded.encoder.input_attributes)
        return given, encoded.encoder

    def _train(
        self, given: FitInput, targets: FloatArray | IndexArray, strata: IndexArray
    ) -> tuple[dict[str, Any], Training]:
        """Train on checked samples, and return the attributes that all networks have.

        Parameters
        ----------
        given : the samples
        targets : (n,) classes, or (n, q) standardized numbers
        strata : (n,) what the validation rows are drawn in equal shares of
        """
        if self.verbose:
            show_log()
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused later
            scaler = StandardScaler().fit(given.X)
        rng = check_random_state(self.random_state)
        device = choose_device(self.device)
        with seeded(rng.randint(2**31), device):
            trained = self._trained(scaler.transform(given.X), targets, strata, device, rng)
        module, training = trained.module, trained.training
        attributes = {
            **given.attributes,
            "scaler_": scaler,
            "module_": module,
            "temperature_": trained.loss.temperature,
            "best_epoch_": training.best_epoch,
            "n_iter_": len(training.history),
            "validation_loss_": np.array([-score.negative_loss for score in training.history]),
            "X_fit_": given.X,
            "embeddings_": self._embed(given.X, scaler, module),
        }
        return attributes, training

    def _trained(
        self,
        X: FloatArray,
        targets: FloatArray | IndexArray,
        strata: IndexArray,
        device: torch.device,
        rng: np.random.RandomState,
    ) -> Trained:
        rows = TrainingRows(
            torch.as_tensor(X, dtype=torch.float32, device=device),
            torch.as_tensor(targets, device=device),
        )
        if rows.y.is_floating_point():
            rows = replace(rows, y=rows.y.float())
        for name, values in (("X", rows.X), ("y", rows.y)):
            if not values.isfinite().all():
                raise ValueError(
                    f"{name} has numbers too large to be standardized; divide them by a constant"
                )
        module = self.module
        if module is None:
            module = table_network(
                rows.X.cpu(), self.embedding, self.hidden, self.n_components, self.dropout
            )
        module = copy.deepcopy(module).to(device, torch.float32)
        kept, held = stratified_split(strata, self.validation_fraction, rng)
        loss = self._make_loss(embed_tensor(module, rows.X)).to(device)
        budget = Budget(
            self.max_epochs,
            self.patience,
            self.batch_size,
            self.learning_rate,
            self.weight_decay,
            self.candidates,
        )
        training = train(
            module, loss, rows[kept], rows[held], budget, self._quality,
            rng=rng, verbose=self.verbose,
        )  # fmt: skip
        return Trained(module.cpu(), loss, training)

    def _make_loss(self, Z: torch.Tensor) -> EmbeddingLoss:
        """The loss, its temperature fitted to the embeddings Z of the untrained network."""
        raise NotImplementedError

    def _quality(self, Z: FloatArray, y: Any, Q: FloatArray, u: Any, temperature: float) -> float:
        """The score of votes of embeddings Z of targets y for embeddings Q of targets u."""
        raise NotImplementedError

    def _first_temperature(self, Z: torch.Tensor) -> float:
        """T as given; "auto" is that of a mean perplexity of 20 among the embeddings Z."""
        if self.temperature != "auto":
            return float(self.temperature)
        points = nn.functional.normalize(Z, dim=1) if self._normalized else Z
        squared = self.distance != "euclidean"
        scale = scale_for_perplexity(points.double().cpu().numpy(), PERPLEXITY, squared=squared)
        return (0.5 if self.distance == "cosine" else 1.0) / scale

    def _rows(self, Z: FloatArray, temperature: float) -> EmbeddedRows:
        """Embeddings that vote as this estimator says."""
        return EmbeddedRows(Z, self.vote, self.n_neighbors, self.distance, temperature)

    # ------------------------------------------------------------------------------ prediction

    def _queries(self, X: ArrayLike) -> FloatArray:
        """X as numbers (n, e), gaps filled with the medians of the training rows."""
        check_is_fitted(self)
        X = dense(on_host(X))
        if self.encoder_ is not None:
            return np.asarray(self.encoder_.transform(X))
        options: dict[str, Any] = {"dtype": DTYPES, "ensure_all_finite": "allow-nan"}
        numbers = np.asarray(validate_data(self, X, reset=False, **options))
        gaps = np.isnan(numbers)
        return np.where(gaps, np.median(self.X_fit_, axis=0), numbers) if gaps.any() else numbers

    def _embed(self, X: FloatArray, scaler: StandardScaler, module: nn.Module) -> FloatArray:
        """Embeddings in the precision of X, by a copy of the network on the device."""
        points = torch.as_tensor(scaler.transform(X))
        module = copy.deepcopy(module).to(choose_device(self.device), points.dtype)
        return embed(module, points, normalize=self._normalized)

    @prepared("embeddings_", "temperature_", "vote", "n_neighbors", "distance")
    def _voters(self) -> EmbeddedRows:
        """The embeddings of the training rows, ready for queries."""
        return self._rows(self.embeddings_, self.temperature_)

    @property
    def _normalized(self) -> bool:
        return self.normalize or self.distance == "cosine"

    @property
    def _n_features_out(self) -> int:
        return int(self.embeddings_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags
