"""The objective of nearest-neighbor regression as a loss of embeddings."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from vicinal.deep.comparisons import check_embeddings
from vicinal.deep.scaled_embeddings import ScaledEmbeddings
from vicinal.learners.parameters import check_choice

NUMBER_LOSSES = {
    "squared": nn.functional.mse_loss,
    "absolute": nn.functional.l1_loss,
    "huber": nn.functional.smooth_l1_loss,
}


class MLKRLoss(ScaledEmbeddings):
    r"""Error of the averages over neighbors, as a loss for embedding networks.

    The mean over the anchors i of a batch, and over targets, of

    .. code-block:: text

        ℓ(y_i − ŷ_i),    ŷ_i = Σ_j p_ij y_j,    p_ij ∝ exp(−d_ij),    d_ij = distance(e_i, e_j) / T

    over all other samples j: the objective of :class:`vicinal.MLKR` with embeddings e in the place
    of L x.

    Parameters
    ----------
    loss : {"squared", "absolute", "huber"}, default="squared"
    distance : {"squared", "euclidean", "cosine"}, default="euclidean"
    temperature : float, default=None
        T; None is 1, and for normalized embeddings as for :class:`ANNLoss`.
    learn_temperature : bool, default=False
        Make ln T a parameter.
    normalize : bool, default=False
        Scale every embedding to length 1 first.

    Examples
    --------
    >>> import torch
    >>> from vicinal.deep import MLKRLoss
    >>> embeddings = torch.tensor([[0.0], [1.0], [3.0]], requires_grad=True)
    >>> loss = MLKRLoss()(embeddings, torch.tensor([0.0, 1.0, 5.0]))
    >>> loss.backward()
    >>> round(loss.item(), 3)
    6.841
    """

    def __init__(
        self,
        loss: Literal["squared", "absolute", "huber"] = "squared",
        *,
        distance: Literal["squared", "euclidean", "cosine"] = "euclidean",
        temperature: float | None = None,
        learn_temperature: bool = False,
        normalize: bool = False,
    ) -> None:
        super().__init__(distance, temperature, learn_temperature, normalize)
        check_choice("loss", loss, tuple(NUMBER_LOSSES))
        self.loss = loss

    def forward(
        self,
        embeddings: Tensor,
        targets: Tensor,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch (b, m) with targets (b,) or (b, q).

        Anchors are compared with ``ref_emb`` (n, m), of targets ``ref_labels``; by default with the
        batch itself, in which none is its own neighbor.
        """
        check_embeddings("embeddings", embeddings)
        if ref_emb is None or ref_labels is None:
            return self.with_candidates(embeddings, targets, embeddings[:0], targets[:0])
        check_embeddings("ref_emb", ref_emb, embeddings.shape[1])
        Z, R = self._scaled(embeddings), self._scaled(ref_emb)
        return self._error(self._distances(Z, R), targets, ref_labels)

    def with_candidates(
        self, embeddings: Tensor, targets: Tensor, others: Tensor, other_targets: Tensor
    ) -> Tensor:
        """The loss of a batch that is compared with itself and with other samples.

        ``others`` (n, m) are not in the batch.
        """
        check_embeddings("embeddings", embeddings)
        Z = self._scaled(embeddings)
        D = self._distances(Z, torch.cat([Z, self._scaled(others)]))
        itself = torch.eye(*D.shape, dtype=torch.bool, device=D.device)
        D = D.masked_fill(itself, math.inf)
        return self._error(D, targets, torch.cat([targets, other_targets]))

    def _distances(self, Z: Tensor, R: Tensor) -> Tensor:
        """(b, n); the slope of a distance of 0 is 0."""
        center = R.detach().mean(dim=0)
        Z, R = Z - center, R - center
        Q = torch.addmm(R.square().sum(dim=1)[None, :], Z, R.T, alpha=-2)
        Q = Q + Z.square().sum(dim=1, keepdim=True)
        positive = Q > 0
        return torch.where(positive, self._distance.value(torch.where(positive, Q, 1.0)), 0.0)

    def _error(self, D: Tensor, targets: Tensor, columns: Tensor) -> Tensor:
        P = torch.softmax(-D, dim=1)
        return NUMBER_LOSSES[self.loss](P @ columns, targets)

    def extra_repr(self) -> str:
        """The configuration, for ``print(loss)``."""
        return f"{self.loss!r}, distance={self.distance!r}, temperature={self.temperature:.6g}"
