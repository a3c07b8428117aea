"""Embeddings of the training rows as a source of row weights."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from scipy.special import softmax

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.class_neighbors import NeighborIndex, Neighbors
from vicinal.voting.row_weights import RowWeights

Vote: TypeAlias = Literal["soft", "majority"]
N_NEIGHBORS: dict[str, int] = {"soft": 256, "majority": 5}
"""Rows that vote unless the user says so; of soft votes all that matter."""


class EmbeddedRows:
    """Votes of the nearest embeddings: the weights of the objective, or equal ones.

    A soft vote of row j counts exp(−d_j), with the distance and the temperature of the loss.

    Parameters
    ----------
    Z : (n, m) embeddings of the training rows
    vote : {"soft", "majority"}
    n_neighbors : number of rows that vote, or None
    distance, temperature : of the loss
    """

    def __init__(
        self, Z: FloatArray, vote: Vote, n_neighbors: int | None, distance: str, temperature: float
    ) -> None:
        self._index = NeighborIndex(Z)
        self._n = len(Z)
        self._vote, self._k = vote, int(n_neighbors or N_NEIGHBORS[vote])
        self._distance, self._temperature = distance, temperature

    def nearest(self, Q: FloatArray, k: int, own_rows: IndexArray | None = None) -> Neighbors:
        """Squared distances and rows (q, k) of the nearest embeddings."""
        return self._index.nearest(Q, k, exclude=own_rows)

    def row_weights(self, Q: FloatArray, own_rows: IndexArray | None = None) -> RowWeights:
        """Row weights of the embeddings Q (q, m) of queries; the prior has no share.

        ``own_rows`` (q,) names for each query a training row that may not vote: itself.
        """
        k = min(self._k, self._n - (own_rows is not None))
        found = self.nearest(Q, k, own_rows)
        shares = np.full(found.ids.shape, 1.0 / k)
        if self._vote == "soft":
            shares = softmax(-self._distances(found.distances) / self._temperature, axis=1)
        return RowWeights.of(found.ids, shares, np.zeros(len(Q)))

    def _distances(self, squared: FloatArray) -> FloatArray:
        if self._distance == "euclidean":
            return np.sqrt(squared)
        return 0.5 * squared if self._distance == "cosine" else squared
