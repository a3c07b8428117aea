"""Training of a network on a loss: batches, random candidates, validation rows, early stopping."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from vicinal._typing import FloatArray, IndexArray
from vicinal.deep.loss import ANNLoss
from vicinal.deep.network import embed_tensor, keep_threads
from vicinal.deep.number_loss import MLKRLoss
from vicinal.learners.descent import logger
from vicinal.validation.folds import sample_strata

GROUP = 4
"""Samples of one class that stay together, so that anchors meet their class in every batch."""

EmbeddingLoss: TypeAlias = ANNLoss | MLKRLoss


@dataclass(frozen=True)
class Budget:
    """Length of the training, and size of its steps."""

    max_epochs: int
    patience: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    candidates: float = 0.0
    """Share of the rows outside of a batch that it is compared with, drawn anew for every step."""


@dataclass(frozen=True)
class TrainingRows:
    """Samples X (n, ...) and their classes (n,) or numbers (n, q), on one device."""

    X: Tensor
    y: Tensor

    def __getitem__(self, rows: IndexArray) -> TrainingRows:
        index = torch.as_tensor(rows, device=self.X.device)
        return TrainingRows(self.X[index], self.y[index])


Judge: TypeAlias = Callable[[FloatArray, Any, FloatArray, Any, float], float]
"""(Z, y, Q, u, temperature) → how well embeddings Z of targets y vote for Q of targets u."""


@dataclass(frozen=True, order=True)
class Score:
    """Quality of an epoch: that of the votes, then, as few validation rows tie often, the loss."""

    quality: float
    negative_loss: float


DIVERGED = Score(-math.inf, -math.inf)
"""Of an epoch that ends with embeddings or a loss that are not finite: worse than any other."""


@dataclass
class Training:
    """History of a run: one score per epoch, and the best epoch, counted from 1."""

    history: list[Score] = field(default_factory=list)
    best_epoch: int = 1


def train(
    module: nn.Module,
    loss: EmbeddingLoss,
    data: TrainingRows,
    validation: TrainingRows,
    budget: Budget,
    judge: Judge,
    *,
    rng: np.random.RandomState,
    verbose: int = 0,
) -> Training:
    """Train ``module`` in place; its weights end as they were after its best epoch.

    Without validation rows the score is the loss of the training rows among themselves. Raises a
    ValueError if no epoch ends with finite embeddings and a finite loss.
    """
    optimizer = torch.optim.AdamW(
        [*module.parameters(), *loss.parameters()],
        lr=budget.learning_rate,
        weight_decay=budget.weight_decay,
    )
    training, best = Training(), copy.deepcopy(module.state_dict())
    for epoch in range(1, budget.max_epochs + 1):
        module.train()
        for rows in _batches(data, budget.batch_size, rng):
            optimizer.zero_grad()
            value = _batch_loss(module, loss, data, rows, budget.candidates, rng)
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        score = _score(module, loss, data, validation, judge)
        training.history.append(score)
        if verbose:
            logger.info(
                "epoch %d of a network: quality %.4f, loss %.5g",
                epoch, score.quality, -score.negative_loss,
            )  # fmt: skip
        if epoch == 1 or score > training.history[training.best_epoch - 1]:
            training.best_epoch, best = epoch, copy.deepcopy(module.state_dict())
        elif epoch - training.best_epoch >= budget.patience:
            break
    if training.history[training.best_epoch - 1] == DIVERGED:
        scales = [name for name in ("temperature", "gamma", "alpha") if hasattr(loss, name)]
        raise ValueError(
            "the training has diverged: no epoch ends with finite embeddings and a finite loss; "
            f"use a smaller learning_rate or weight_decay, or the defaults of {', '.join(scales)}"
        )
    module.load_state_dict(best)
    return training


def _batches(
    data: TrainingRows, batch_size: int, rng: np.random.RandomState
) -> Sequence[IndexArray]:
    if not data.y.is_floating_point():
        return class_batches(data.y.cpu().numpy(), batch_size, rng)
    n = len(data.y)
    return np.array_split(rng.permutation(n), max(1, round(n / batch_size)))


def _batch_loss(
    module: nn.Module,
    loss: EmbeddingLoss,
    data: TrainingRows,
    rows: IndexArray,
    share: float,
    rng: np.random.RandomState,
) -> Tensor:
    """The loss of a batch among itself and a random share of the other rows.

    A single row is compared with one other at least: batch normalization needs two.
    """
    outside, b = np.setdiff1d(np.arange(len(data.X)), rows), len(rows)
    drawn = rng.choice(outside, size=max(int(share * len(outside)), 2 - b), replace=False)
    both = data[np.concatenate([rows, drawn])]
    Z = module(both.X)
    return loss.with_candidates(Z[:b], both.y[:b], Z[b:], both.y[b:])


@torch.no_grad()
def _score(
    module: nn.Module,
    loss: EmbeddingLoss,
    data: TrainingRows,
    validation: TrainingRows,
    judge: Judge,
) -> Score:
    Z = embed_tensor(module, data.X)
    if len(validation.X) == 0:
        value = float(loss(Z, data.y))
        return Score(0.0, -value) if Z.isfinite().all() and math.isfinite(value) else DIVERGED
    Q = embed_tensor(module, validation.X)
    if not (Z.isfinite().all() and Q.isfinite().all()):
        return DIVERGED
    value = float(loss(Q, validation.y, ref_emb=Z, ref_labels=data.y))
    if not math.isfinite(value):
        return DIVERGED
    with keep_threads():
        y, u = (each.cpu().numpy() for each in (data.y, validation.y))
        quality = judge(Z.cpu().numpy(), y, Q.cpu().numpy(), u, loss.temperature)
    return Score(quality, -value)


def class_batches(
    codes: IndexArray, batch_size: int, rng: np.random.RandomState
) -> list[IndexArray]:
    """Deal all samples into batches of about ``batch_size``, made of small groups of one class.

    With few classes that hardly differs from a random order; with many, a random batch would hold
    one sample of most classes, and anchors without a similar sample have no loss. ``codes`` (n,)
    are the classes.
    """
    n = len(codes)
    shuffled = rng.permutation(n)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    sizes = np.bincount(codes)
    rank = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the class
    # The last sample of a class joins the group before it, where it would be alone.
    alone = (np.repeat(sizes, sizes) % GROUP == 1) & (rank == np.repeat(sizes, sizes) - 1)
    starts = (rank % GROUP == 0) & ~(alone & (rank > 0))
    group = np.cumsum(starts) - 1  # (n,)
    order = np.argsort(rng.permutation(group[-1] + 1)[group], kind="stable")
    return np.array_split(by_class[order], max(1, round(n / batch_size)))


def stratified_split(
    codes: IndexArray, fraction: float, rng: np.random.RandomState
) -> tuple[IndexArray, IndexArray]:
    """Split rows into training and validation rows, the latter about ``fraction`` of every class.

    Two samples of every class stay in the training part. Unlike scikit-learn's splitters this takes
    classes of any size: small classes are trained on. ``codes`` (n,) are the classes; rows without
    classes are all of one.
    """
    sizes = np.bincount(codes)
    held = np.minimum(np.rint(fraction * sizes), np.maximum(0, sizes - 2))
    validation = sample_strata(codes, held, rng)
    return np.setdiff1d(np.arange(len(codes)), validation), validation
