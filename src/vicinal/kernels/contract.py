"""What every compute kernel promises: row soft averages, and the weighted Laplacian they define."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from vicinal._typing import FloatArray, IndexArray

Respond: TypeAlias = Callable[[IndexArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""``respond(rows, s, t) -> (ds, dt)``: what the objective makes of a block of soft averages.

``ds[i]`` and ``dt[i]`` are the derivatives of the objective with respect to ``s[i]`` and ``t[i]``.
It may be called from several threads at once, never twice for the same row.
"""


@dataclass(frozen=True)
class IndexLists:
    """One list of row indices a row: row i has ``indices[indptr[i]:indptr[i + 1]]``."""

    indptr: IndexArray
    indices: IndexArray

    @property
    def counts(self) -> IndexArray:
        """(n,) how many each row has."""
        return np.diff(self.indptr)

    def of(self, rows: IndexArray) -> IndexArray:
        """The lists of these rows, one after the other."""
        counts = self.counts[rows]
        starts = np.cumsum(counts) - counts
        return self.indices[np.repeat(self.indptr[rows] - starts, counts) + np.arange(counts.sum())]


@dataclass(frozen=True)
class Comparisons:
    """Who is compared with whom; rows are sorted by class.

    A side that is None is complete: all other rows of the class (similar), all rows of the other
    classes (dissimilar). Rows of one group are never compared; without groups a row excludes
    only itself.
    """

    offsets: IndexArray
    """(c + 1,) class j is the slice ``offsets[j]:offsets[j + 1]`` of the rows."""
    anchors: IndexArray
    """The rows that enter the objective: both of their sets have at least one member."""
    n_similar: IndexArray
    """(n,) sizes of the sets S_i."""
    n_dissimilar: IndexArray
    """(n,) sizes of the sets D_i."""
    similar: IndexLists | None = None
    dissimilar: IndexLists | None = None
    groups: IndexArray | None = None

    @property
    def class_of_row(self) -> IndexArray:
        """(n,) the class of every row."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


class Kernel(Protocol):
    """Bound to the comparisons of n points; knows distances and soft averages, no losses."""

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        respond: Respond,
        *,
        alpha: float,
        beta: float = 1.0,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> FloatArray:
        """Visit the anchor rows in blocks; return what they contribute to the Laplacian.

        For every anchor row i, with d_ij = ‖z_i − z_j‖²,

            s_i = b(α; {d_ij : j ∈ S_i}),   t_i = b(β; {d_il : l ∈ D_i})

        are handed to ``respond``, whose answer weighs row i of

            W_ij = ds_i · ∂s_i/∂d_ij + dt_i · ∂t_i/∂d_ij.

        Parameters
        ----------
        Z : (n, m)
            The points whose distances count.
        V : (n, c)
            What the Laplacian is applied to.
        respond : callable
            See :data:`Respond`.
        alpha, beta : float
            Exponents of the similar and of the dissimilar soft average; any real, 0, ±inf.
        symmetric : bool
            What is returned, with Δ = diag(W·1 + Wᵀ·1):

            * False: the half H = ½ Δ V − W V, for which VᵀH + HᵀV = Σ_ij W_ij v_ij v_ijᵀ;
            * True: the whole Lap V = (Δ − W − Wᵀ) V, at the cost of one more product.
        rows : (b,), optional
            The anchors to visit; all of them by default.

        Returns
        -------
        (n, c) array
        """
        ...
