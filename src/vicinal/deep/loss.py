"""The neighbor objective as a loss of embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from vicinal.deep.comparisons import Comparisons, LabelComparisons, MinedComparisons
from vicinal.deep.soft_averages import RowAverages, row_averages
from vicinal.learners.configuration import check_choice, check_configuration

Elementwise: TypeAlias = Callable[[Tensor], Tensor]

REDUCTIONS = ("mean", "sum", "none")


def _sigmoid(z: Tensor) -> Tensor:
    """σ(z); its derivative is exact in both tails, where σ(1 − σ) would round to 0 for z ≫ 0."""
    return torch.where(z > 0, 1 - torch.sigmoid(-z), torch.sigmoid(z))


LOSSES: dict[str, Elementwise] = {
    "hinge": lambda z: torch.relu(1 + z),
    "squared_hinge": lambda z: torch.relu(1 + z).square(),
    "logistic": lambda z: torch.logaddexp(z, torch.zeros_like(z)),  # softplus is z beyond 20
    "linear": lambda z: z,
    "sigmoid": _sigmoid,
}
"""The losses of :mod:`vicinal.objective.losses`; autograd supplies the slopes."""


class ANNLoss(nn.Module):
    r"""Adaptive Nearest Neighbor as a loss for embedding networks.

    The mean over the anchors i of a batch of

    .. code-block:: text

        ℓ((s_i − t_i)/γ),    d_ij = ‖e_i − e_j‖² / T

        s_i = b(α; {d_ij : j ∈ S_i})      soft average of the distances to similar samples
        t_i = b(1; {d_il : l ∈ D_i})      soft average of the distances to dissimilar ones

    with b(γ; a) = −(1/γ) ln mean exp(−γ a): the objective of :class:`vicinal.ANN` with embeddings e
    in the place of L x. Everything is computed in log space, so that even an anchor that is
    hopelessly far from its class keeps its gradient, 2·Lap·Z as in the linear learner.

    Parameters
    ----------
    alpha : float, default=1.0
        Exponent of the similar side. Positive (ANN⁺): the near ones of the class count. Negative
        (ANN⁻): the far ones. 0 is the mean, ±inf the nearest and the farthest.
    gamma : float, default=1.0
        How sharply the loss reacts to the margin s − t. Positive.
    loss : {"hinge", "squared_hinge", "logistic", "linear", "sigmoid"} or callable, default="hinge"
        ℓ, increasing in z; a callable is an elementwise, differentiable function of a tensor.
    plain : bool, default=False
        Use soft averages without the 1/n, as NCA does.
    temperature : float, default=None
        T. None is 1, and 0.1 with ``normalize``, where no squared distance exceeds 4. It may be set
        at any time, for a schedule: ``loss.temperature = 0.05``.
    learn_temperature : bool, default=False
        Make ln T a parameter: give ``loss.parameters()`` to the optimizer.
    normalize : bool, default=False
        Scale every embedding to length 1 first.
    similar : "all" or int, default="all"
        S_i: all of the class in the batch, or so many nearest of them.
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
    Called as the losses of pytorch-metric-learning are, and so usable with its miners, its trainers
    and, through :func:`cross_batch_memory`, its memory bank. Half-precision embeddings are
    computed with in float32, also under autocast. Distances to n columns are held for a block of
    anchors at a time: memory does not grow with the product of batch and memory bank.

    ============  ======================================================
    NCA           ``ANNLoss(loss="sigmoid", plain=True)``
    −Σ ln p_i     ``ANNLoss(loss="logistic", plain=True)``
    PNCA          ``ANNLoss(alpha, loss="sigmoid", plain=True)``
    ANN⁺          ``ANNLoss(alpha)``, alpha > 0
    ANN⁻          ``ANNLoss(alpha, similar=10)``, alpha < 0
    ============  ======================================================

    Examples
    --------
    >>> import torch
    >>> from vicinal.deep import ANNLoss
    >>> embeddings = torch.tensor([[0.0], [1.0], [5.0], [7.0]], requires_grad=True)
    >>> loss = ANNLoss()(embeddings, torch.tensor([0, 1, 1, 0]))
    >>> loss.backward()
    >>> round(loss.item(), 3), embeddings.grad.shape
    (30.307, torch.Size([4, 1]))
    """

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        *,
        loss: str | Elementwise = "hinge",
        plain: bool = False,
        temperature: float | None = None,
        learn_temperature: bool = False,
        normalize: bool = False,
        similar: Any = "all",
        reduction: Literal["mean", "sum", "none"] = "mean",
    ) -> None:
        super().__init__()
        check_configuration(
            alpha=alpha,
            gamma=gamma,
            loss="hinge" if callable(loss) else loss,
            plain=plain,
            similar=similar,
            dissimilar="all",
            regularization=0.0,
        )
        if not isinstance(similar, str | Integral):
            raise ValueError(f"similar={similar!r} is not possible; use 'all' or a number")
        check_choice("reduction", reduction, REDUCTIONS)
        self.alpha, self.gamma = float(alpha), float(gamma)
        self.loss, self.plain = loss, plain
        self.normalize, self.similar, self.reduction = normalize, similar, reduction
        self._nearest = None if isinstance(similar, str) else int(similar)
        start = torch.tensor(0.0)
        if learn_temperature:
            self.log_temperature = nn.Parameter(start)
        else:
            self.register_buffer("log_temperature", start)
        self.temperature = (0.1 if normalize else 1.0) if temperature is None else temperature
        self._n_excluded = torch.tensor(0)

    @property
    def temperature(self) -> float:
        """T, which divides the squared distances."""
        return float(self.log_temperature.detach().exp())

    @temperature.setter
    def temperature(self, value: float) -> None:
        if not isinstance(value, Real | Tensor) or not 0 < value < math.inf:
            raise ValueError(f"temperature={value!r} must be a number, positive and finite")
        with torch.no_grad():
            self.log_temperature.fill_(math.log(value))

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
        _check_embeddings("embeddings", embeddings)
        Z = R = self._scaled(embeddings)
        itself = ref_emb is None or ref_emb is embeddings
        if ref_emb is not None and not itself:
            _check_embeddings("ref_emb", ref_emb, embeddings.shape[1])
            R = self._scaled(ref_emb)
        if indices_tuple is not None:
            comparisons: Comparisons = MinedComparisons.of(indices_tuple, len(Z), len(R))
        else:
            ref_labels = labels if itself else ref_labels
            comparisons = _by_labels(labels, ref_labels, (len(Z), len(R)), itself)
        averages = row_averages(Z, R, comparisons, alpha=self.alpha, nearest=self._nearest)
        return self._reduce(averages)

    def _scaled(self, embeddings: Tensor) -> Tensor:
        """Z = e/√T in float32 at least: the scale of the embedding is the scale of M."""
        with torch.autocast(embeddings.device.type, enabled=False):
            half = embeddings.dtype in (torch.float16, torch.bfloat16)
            Z = embeddings.float() if half else embeddings
            if self.normalize:
                Z = nn.functional.normalize(Z, dim=1)
            return Z * torch.exp(-0.5 * self.log_temperature).to(Z.dtype)

    def _reduce(self, averages: RowAverages) -> Tensor:
        kept = (averages.n_similar > 0) & (averages.n_dissimilar > 0)
        self._n_excluded = (~kept).sum()
        margin = averages.s - averages.t
        if self.plain:  # b̃(γ) = b(γ) − ln(n)/γ
            n_similar, n_dissimilar = (
                count.clamp(min=1).to(margin.dtype)
                for count in (averages.n_similar, averages.n_dissimilar)
            )
            margin = margin - n_similar.log() / self.alpha + n_dissimilar.log()
        value = self.loss if callable(self.loss) else LOSSES[self.loss]
        losses = value(margin / self.gamma).masked_fill(~kept, 0.0)
        if self.reduction == "none":
            return losses
        total = losses.sum()
        return total / kept.sum().clamp(min=1) if self.reduction == "mean" else total

    def extra_repr(self) -> str:
        """The configuration, for ``print(loss)``."""
        shown = ("alpha", "gamma", "loss", "plain", "normalize", "similar")
        texts = [f"{name}={getattr(self, name)!r}" for name in shown]
        return ", ".join([*texts, f"temperature={self.temperature:.6g}"])


def _check_embeddings(name: str, given: Any, components: int | str = "components") -> None:
    if not isinstance(given, Tensor) or not given.is_floating_point():
        kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
        raise ValueError(f"{name} must be a tensor of floats, got {kind}")
    if given.ndim != 2 or components not in ("components", given.shape[1]):
        raise ValueError(f"{name} must have shape (rows, {components}), got {tuple(given.shape)}")


def _by_labels(
    labels: Tensor | None, ref_labels: Tensor | None, lengths: tuple[int, int], itself: bool
) -> LabelComparisons:
    if labels is None or ref_labels is None:
        raise ValueError(
            "labels are needed (and ref_labels with ref_emb), or the indices_tuple of a miner"
        )
    for name, given, length in zip(
        ("labels", "ref_labels"), (labels, ref_labels), lengths, strict=True
    ):
        if not isinstance(given, Tensor):
            kind = type(given).__name__
            raise ValueError(f"{name} must be a tensor, got {kind}; use torch.as_tensor({name})")
        if given.shape != (length,):
            raise ValueError(f"{name} must have shape ({length},), got {tuple(given.shape)}")
    return LabelComparisons(labels, ref_labels, exclude_self=itself)
