"""Training a network on a loss, with early stopping on validation rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from vicinal._typing import IndexArray
from vicinal.deep.batches import class_batches
from vicinal.deep.loss import ANNLoss
from vicinal.deep.network import embed
from vicinal.learners.progress import logger

QUERIES = 1024
"""Validation rows that are classified at a time."""


@dataclass(frozen=True)
class Budget:
    """How long to train, and with what steps."""

    max_epochs: int
    patience: int
    batch_size: int
    learning_rate: float
    weight_decay: float


@dataclass(frozen=True)
class LabeledRows:
    """Samples X (n, ...) and their classes y (n,), on one device."""

    X: Tensor
    y: Tensor

    def __getitem__(self, rows: IndexArray) -> LabeledRows:
        index = torch.as_tensor(rows, device=self.X.device)
        return LabeledRows(self.X[index], self.y[index])


@dataclass(frozen=True, order=True)
class Score:
    """How good an epoch was: by accuracy, then, as few validation rows tie often, by the loss."""

    accuracy: float
    negative_loss: float


@dataclass
class Training:
    """What a run leaves: one score an epoch, and which epoch was the best, from 1."""

    history: list[Score] = field(default_factory=list)
    best_epoch: int = 1


def train(
    module: nn.Module,
    loss: ANNLoss,
    data: LabeledRows,
    validation: LabeledRows,
    budget: Budget,
    *,
    n_neighbors: int,
    rng: np.random.RandomState,
    verbose: int = 0,
) -> Training:
    """Train ``module`` in place; it ends as it was at its best epoch.

    Without validation rows the score is the loss of the training rows among themselves.
    """
    optimizer = torch.optim.AdamW(
        [*module.parameters(), *loss.parameters()],
        lr=budget.learning_rate,
        weight_decay=budget.weight_decay,
    )
    codes = data.y.cpu().numpy()
    training, best = Training(), module.state_dict()
    for epoch in range(1, budget.max_epochs + 1):
        module.train()
        for rows in class_batches(codes, budget.batch_size, rng):
            batch = data[rows]
            optimizer.zero_grad()
            loss(module(batch.X), batch.y).backward()
            optimizer.step()
        score = _score(module, loss, data, validation, n_neighbors)
        training.history.append(score)
        if verbose:
            logger.info(
                "DeepANN epoch %d: accuracy %.4f, loss %.5g",
                epoch,
                score.accuracy,
                -score.negative_loss,
            )
        if epoch == 1 or score > training.history[training.best_epoch - 1]:
            training.best_epoch, best = epoch, copy.deepcopy(module.state_dict())
        elif epoch - training.best_epoch >= budget.patience:
            break
    module.load_state_dict(best)
    return training


@torch.no_grad()
def _score(
    module: nn.Module, loss: ANNLoss, data: LabeledRows, validation: LabeledRows, n_neighbors: int
) -> Score:
    Z = embed(module, data.X)
    if len(validation.X) == 0:
        return Score(0.0, -float(loss(Z, data.y)))
    Q = embed(module, validation.X)
    accuracy = float((vote(Q, Z, data.y, n_neighbors) == validation.y).float().mean())
    return Score(accuracy, -float(loss(Q, validation.y, ref_emb=Z, ref_labels=data.y)))


def vote(Q: Tensor, Z: Tensor, y: Tensor, n_neighbors: int) -> Tensor:
    """The class of most of the nearest rows of Z, for every row of Q; ties to the lowest class."""
    nearest = [
        torch.cdist(part, Z).topk(min(n_neighbors, len(Z)), largest=False).indices
        for part in torch.split(Q, QUERIES)
    ]
    return torch.mode(y[torch.cat(nearest)], dim=1).values
