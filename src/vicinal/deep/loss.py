"""The neighbor objective as a loss of embeddings, alone or with a memory bank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from vicinal.deep.comparisons import (
    BatchComparisons,
    MinedComparisons,
    check_embeddings,
    compare_by_labels,
)
from vicinal.deep.scaled_embeddings import ScaledEmbeddings
from vicinal.deep.soft_averages import AverageRule, RowAverages, row_averages
from vicinal.learners.neighbor_fit import check_configuration
from vicinal.learners.parameters import COUNT, Number, OneOf, check_choice
from vicinal.objective.losses import Loss

Elementwise: TypeAlias = Callable[[Tensor], Tensor]
LossPair: TypeAlias = Loss | tuple[Elementwise, Elementwise]
"""A value and a slope."""

REDUCTIONS = ("mean", "sum", "none")
CONTRASTS = ("dissimilar", "all")


class _Elementwise(torch.autograd.Function):
    """A loss of the objective, whose slope is exact also where autograd's is not."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, loss: Loss) -> Tensor:
        value, slope = loss.value_and_slope(z)
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return grad * slope, None


class ANNLoss(ScaledEmbeddings):
    r"""Adaptive Nearest Neighbor as a loss for embedding networks.

    The mean over the anchors i of a batch of

    .. code-block:: text

        ℓ((s_i − t_i + margin)/γ),    d_ij = distance(e_i, e_j) / T

        s_i = b(α; {d_ij : j ∈ S_i})      soft average of the distances to similar samples
        t_i = b(1; {d_il : l ∈ D_i})      soft average of the distances to dissimilar samples

    with b(γ; a) = −(1/γ) ln mean exp(−γ a): the objective of :class:`vicinal.ANN` with embeddings e
    in the place of L x. Everything is computed in log space, so that even an anchor that is
    hopelessly far from its class keeps its gradient, 2·Lap·Z as in the linear learner.

    Parameters
    ----------
    alpha : float, default=0.0
        Exponent of the similar side. Positive (ANN⁺): the near samples of the class count. Negative
        (ANN⁻): the far ones. 0 is the mean, ±inf the nearest and the farthest.
    gamma : float, default=1.0
        How sharply the loss reacts to s − t. Positive.
    loss : str, pair or callable, default="logistic"
        ℓ, increasing in z: "hinge", "squared_hinge", "logistic", "linear" or "sigmoid"; a pair of
        elementwise functions (value, slope), as for :class:`vicinal.ANN`; or an elementwise,
        differentiable function of a tensor.
    plain : bool or "dissimilar", default="dissimilar"
        Use soft averages without the 1/n, as NCA does: on both sides, or for t alone, which is also
        possible with ``alpha=0``.
    distance : {"squared", "euclidean", "cosine"}, default="squared"
        The squared Euclidean distance, the Euclidean distance, or 1 − cos.
    margin : float, default=0.0
        Added to s − t, in units of d: by how much t must exceed s before the loss is what it is at
        s = t without a margin.
    contrast : {"dissimilar", "all"}, default="dissimilar"
        The set that t averages over: D_i, or all samples but the anchor, S_i ∪ D_i.
    temperature : float, default=None
        T. None is 1, and for normalized embeddings, none of which are farther apart than 2, 0.2
        with squared distances and 0.1 with others. It may be set at any time, for a schedule:
        ``loss.temperature = 0.05``.
    learn_temperature : bool, default=False
        Make ln T a parameter: give ``loss.parameters()`` to the optimizer.
    normalize : bool, default=True
        Scale every embedding to length 1 first; the cosine distance always does.
    similar : "all" or int, default="all"
        S_i: all samples of the class in the batch, or this number of nearest ones.
    reduction : {"mean", "sum", "none"}, default="mean"
        Over the anchors that have both sets; "none" returns (b,) values, 0 for the others.

    Attributes
    ----------
    log_temperature : Tensor
        ln T: a parameter, or a buffer.
    n_excluded : int
        Anchors of the last call without a similar or without a dissimilar sample.

    Notes
    -----
    The default was chosen among twelve configurations by validation on two sets of images, see
    ``docs/deep.md``, which also tells which configuration is which known loss. ANN⁺ and ANN⁻ of the
    linear learner are ``ANNLoss(alpha, loss="hinge", plain=False, normalize=False)``.

    Called as the losses of pytorch-metric-learning are, and so usable with its miners, its trainers
    and, through :func:`cross_batch_memory`, its memory bank. Half-precision embeddings are
    converted to float32, also under autocast. Distances to n columns are held for a block of
    anchors at a time: memory does not grow with the product of batch and memory bank.

    Examples
    --------
    >>> import torch
    >>> from vicinal.deep import ANNLoss
    >>> embeddings = torch.tensor([[1.0, 0], [2, 1], [0, 2], [1, 3]], requires_grad=True)
    >>> loss = ANNLoss()(embeddings, torch.tensor([0, 0, 1, 1]))
    >>> loss.backward()
    >>> round(loss.item(), 3), embeddings.grad.shape
    (0.062, torch.Size([4, 2]))
    """

    def __init__(
        self,
        alpha: float = 0.0,
        gamma: float = 1.0,
        *,
        loss: str | LossPair | Elementwise = "logistic",
        plain: bool | Literal["dissimilar"] = "dissimilar",
        distance: Literal["squared", "euclidean", "cosine"] = "squared",
        margin: float = 0.0,
        contrast: Literal["dissimilar", "all"] = "dissimilar",
        temperature: float | None = None,
        learn_temperature: bool = False,
        normalize: bool = True,
        similar: str | int = "all",
        reduction: Literal["mean", "sum", "none"] = "mean",
    ) -> None:
        super().__init__(distance, temperature, learn_temperature, normalize)
        if isinstance(plain, str):
            check_choice("plain", plain, ("dissimilar",))
        if not isinstance(similar, str | Integral):
            raise ValueError(f"similar={similar!r} is not possible; use 'all' or a number")
        OneOf(("all",), COUNT).check("similar", similar)
        configuration = check_configuration(
            alpha=alpha,
            gamma=gamma,
            loss="hinge" if callable(loss) else loss,
            plain=not isinstance(plain, str) and plain,
            similar=similar,
            dissimilar="all",
            regularization=0.0,
        )
        check_choice("contrast", contrast, CONTRASTS)
        check_choice("reduction", reduction, REDUCTIONS)
        Number().check("margin", margin)
        self.alpha, self.gamma, self.margin = float(alpha), float(gamma), float(margin)
        self.loss, self.plain, self._loss = loss, plain, configuration.loss
        self.contrast, self.similar, self.reduction = contrast, similar, reduction
        self._rule = AverageRule(
            self.alpha,
            None if similar == "all" else int(similar),
            self._distance,
            contrast == "all",
        )
        self._n_excluded = torch.tensor(0)

    @property
    def n_excluded(self) -> int:
        """Anchors of the last call without a similar or without a dissimilar sample."""
        return int(self._n_excluded)

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Sequence[Tensor] | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch; 0, with a gradient of 0, where no anchor has both sets.

        Parameters
        ----------
        embeddings : (b, m) tensor
            The anchors.
        labels : (b,) tensor
            Their classes; may be left out where ``indices_tuple`` is given.
        indices_tuple : tuple of tensors, optional
            What a miner returns: pairs (a, p, a′, n) or triplets (a, p, n). S_i and D_i then
            are the positives and the negatives paired with anchor i.
        ref_emb : (n, m) tensor, optional
            What anchors are compared with, a memory bank say; the batch itself by default, in which
            no anchor is its own neighbor.
        ref_labels : (n,) tensor, optional
            The classes of ``ref_emb``.
        """
        check_embeddings("embeddings", embeddings)
        Z = R = self._scaled(embeddings)
        itself = ref_emb is None or ref_emb is embeddings
        if ref_emb is not None and not itself:
            check_embeddings("ref_emb", ref_emb, embeddings.shape[1])
            R = self._scaled(ref_emb)
        if indices_tuple is not None:
            comparisons: BatchComparisons = MinedComparisons.of(indices_tuple, len(Z), len(R))
        else:
            ref_labels = labels if itself else ref_labels
            comparisons = compare_by_labels(labels, ref_labels, (len(Z), len(R)), itself)
        return self._reduce(row_averages(Z, R, comparisons, self._rule))

    def with_candidates(
        self, embeddings: Tensor, labels: Tensor, others: Tensor, other_labels: Tensor
    ) -> Tensor:
        """The loss of a batch that is compared with itself and with other samples.

        Parameters
        ----------
        embeddings, labels : (b, m) and (b,) tensors
            The anchors, none of which is its own neighbor.
        others, other_labels : (n, m) and (n,) tensors
            Further samples, which are not in the batch.
        """
        check_embeddings("embeddings", embeddings)
        check_embeddings("others", others, embeddings.shape[1])
        Z = self._scaled(embeddings)
        R, columns = torch.cat([Z, self._scaled(others)]), torch.cat([labels, other_labels])
        comparisons = compare_by_labels(labels, columns, (len(Z), len(R)), True)
        return self._reduce(row_averages(Z, R, comparisons, self._rule))

    def _reduce(self, averages: RowAverages) -> Tensor:
        self._n_excluded = (~averages.complete).sum()
        z = (averages.s - averages.t + self._shift(averages)) / self.gamma
        apply: Any = _Elementwise.apply
        values = self.loss(z) if callable(self.loss) else apply(z, self._loss)
        losses = values.masked_fill(~averages.complete, 0.0)
        if self.reduction == "none":
            return losses
        total = losses.sum()
        return total / averages.complete.sum().clamp(min=1) if self.reduction == "mean" else total

    def _shift(self, averages: RowAverages) -> Tensor | float:
        """The margin, and what plain soft averages b̃(γ) = b(γ) − ln(n)/γ add to s − t."""
        if not self.plain:
            return self.margin
        shift = averages.n_contrast.clamp(min=1).to(averages.t.dtype).log() + self.margin
        if self.plain == "dissimilar":
            return shift
        return shift - averages.n_similar.clamp(min=1).to(shift.dtype).log() / self.alpha

    def extra_repr(self) -> str:
        """The configuration, for ``print(loss)``."""
        shown = (
            "alpha",
            "gamma",
            "loss",
            "plain",
            "distance",
            "margin",
            "contrast",
            "normalize",
            "similar",
        )
        texts = [f"{name}={getattr(self, name)!r}" for name in shown]
        return ", ".join([*texts, f"temperature={self.temperature:.6g}"])


def cross_batch_memory(
    loss: ANNLoss,
    embedding_size: int,
    memory_size: int = 1024,
    miner: Callable[..., tuple[Tensor, ...]] | None = None,
) -> nn.Module:
    """Return a ``CrossBatchMemory`` of pytorch-metric-learning around an :class:`ANNLoss`.

    Anchors of the batch are compared with the embeddings of the last ``memory_size`` samples. That
    package accepts only losses whose names it knows; this wrapper adds the name of ANNLoss.

    Parameters
    ----------
    loss : ANNLoss
    embedding_size : int
        Components of an embedding.
    memory_size : int, default=1024
        Embeddings that are kept; at least a batch.
    miner : callable, optional
        A miner of pytorch-metric-learning, which chooses among the memory.

    Returns
    -------
    module : CrossBatchMemory
        Called with (embeddings, labels), as ``loss`` is.

    Examples
    --------
    >>> import torch
    >>> from vicinal.deep import ANNLoss, cross_batch_memory
    >>> memory = cross_batch_memory(ANNLoss(), embedding_size=2, memory_size=100)
    >>> labels = torch.arange(8) % 4
    >>> for batch in torch.randn(3, 8, 2):
    ...     loss = memory(batch, labels)
    >>> memory.queue_idx
    24
    """
    try:
        from pytorch_metric_learning.losses import CrossBatchMemory
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "cross_batch_memory needs pytorch-metric-learning: pip install pytorch-metric-learning",
            name="pytorch_metric_learning",
        ) from error

    class ANNCrossBatchMemory(CrossBatchMemory):
        @staticmethod
        def supported_losses() -> list[str]:
            return [*CrossBatchMemory.supported_losses(), ANNLoss.__name__]

    return ANNCrossBatchMemory(loss, embedding_size, memory_size=memory_size, miner=miner)
