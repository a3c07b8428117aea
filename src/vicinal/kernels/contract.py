"""The contract of compute kernels: averages per row, and the weighted Laplacian they define."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import Array, FloatArray, IndexArray


class Response(NamedTuple):
    """The objective's answer to the soft averages s and t of a block of b rows."""

    value: Array
    """(b,) the value of every row."""
    ds: Array
    """(b,) its derivative with respect to s."""
    dt: Array
    """(b,) its derivative with respect to t."""
    second: Array | None = None
    """(b,) another value of every row, which is only summed."""


Respond: TypeAlias = Callable[[Array, Array, Array], Response]
"""``respond(rows, s, t)``: pure, called from several threads, never twice for the same row."""


class TargetResponse(NamedTuple):
    """The objective's answer to the averages ŷ of the targets of a block of b rows."""

    value: Array
    """(b,) the value of every row."""
    slopes: Array
    """(b, q) its derivatives with respect to ŷ."""


RespondToTargets: TypeAlias = Callable[[Array, Array], TargetResponse]
"""``respond(rows, averages)``, for averages of shape (b, q); otherwise as :data:`Respond`."""


@dataclass(frozen=True)
class IndexLists:
    """One list of row indices per row: row i has ``indices[indptr[i]:indptr[i + 1]]``."""

    indptr: IndexArray
    indices: IndexArray

    @property
    def counts(self) -> IndexArray:
        """(n,) the length of every list."""
        return np.diff(self.indptr)

    def of(self, rows: IndexArray) -> IndexArray:
        """The lists of these rows, one after the other."""
        counts = self.counts[rows]
        starts = np.cumsum(counts) - counts
        return self.indices[np.repeat(self.indptr[rows] - starts, counts) + np.arange(counts.sum())]


@dataclass(frozen=True)
class Comparisons:
    """The similar and dissimilar rows of every row; rows are sorted by class.

    A side that is None is complete: all other rows of the class (similar), all rows of the other
    classes (dissimilar). Rows of one group are never compared; without groups a row excludes
    only itself.
    """

    offsets: IndexArray
    """(c + 1,) class j is the slice ``offsets[j]:offsets[j + 1]`` of the rows."""
    anchors: IndexArray
    """The rows that enter the objective: each of their sets has at least one member."""
    n_similar: IndexArray
    """(n,) sizes of the sets S_i."""
    n_dissimilar: IndexArray
    """(n,) sizes of the sets D_i."""
    similar: IndexLists | None = None
    dissimilar: IndexLists | None = None
    groups: IndexArray | None = None
    one_sided: bool = False
    """Whether only similar rows are asked for, as in a regression, where all are of one class."""

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(n,) whether each set that a row should have has a member."""
        return (self.n_similar > 0) & ((self.n_dissimilar > 0) | self.one_sided)

    @property
    def class_of_row(self) -> IndexArray:
        """(n,) the class of every row."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclass(frozen=True)
class SweepResult:
    """The sums over the visited rows."""

    value: Array
    """The sum of the values that ``respond`` gave."""
    laplacian: Array
    """(n, c) the Laplacian, or a half of it, applied to V."""
    second: Array = field(default=0.0, kw_only=True)
    """The sum of the second values, zero where there are none."""

    @property
    def rounding(self) -> float:
        """About how far rounding has moved the exponents; 0 where it is that of the arrays."""
        return 0.0

    def refined(self, tolerance: float) -> SweepResult:
        """The same sums with ``rounding`` below the tolerance, or the most precise there are."""
        return self

    def total(self, part: Array) -> Array:
        """The sum over all processes that share the rows, as a number or an array of NumPy.

        ``part`` is anything linear in this process's ``value`` and ``laplacian``.
        """
        return part


class Kernel(Protocol):
    """Soft averages and Laplacians of n points, whose comparisons are given once; no losses.

    Everything that an objective needs is in the sums of one sweep: over rows that have two soft
    averages of distances (`sweep`), or averages of targets, weighted by distance (`sweep_targets`).
    """

    half_is_cheaper: bool
    """Whether half of a Laplacian takes fewer products than the whole."""

    def asarray(self, values: Array) -> Array:
        """Real numbers as this kernel takes them: a NumPy array, or a tensor on its device."""
        ...

    def embed(self, X: Array, L: FloatArray) -> Array:
        """Z = X Lᵀ (n, m), for an X from ``asarray``."""
        ...

    def sweep(
        self,
        Z: Array,
        V: Array,
        respond: Respond,
        *,
        alpha: float,
        beta: float = 1.0,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> SweepResult:
        """Visit the anchor rows in blocks; return the sum of their values, and their Laplacian.

        For every anchor row i, with d_ij = ‖z_i − z_j‖²,

            s_i = b(α; {d_ij : j ∈ S_i}),   t_i = b(β; {d_il : l ∈ D_i})

        are handed to ``respond``, whose answer weighs row i of

            W_ij = ds_i · ∂s_i/∂d_ij + dt_i · ∂t_i/∂d_ij.

        Parameters
        ----------
        Z : (n, m)
            The points whose distances count, from ``embed``.
        V : (n, c)
            What the Laplacian is applied to: Z itself, or an array from ``asarray``.
        respond : callable
            See :data:`Respond`.
        alpha, beta : float
            Exponents of the similar and of the dissimilar soft average; any real, 0, ±inf.
        symmetric : bool
            What is returned, with Lap = Δ − W − Wᵀ and Δ = diag(W·1 + Wᵀ·1):

            * True: the whole Lap V;
            * False: a half H, for which VᵀH + HᵀV = Vᵀ Lap V. Where ``half_is_cheaper`` it is
              ½ Δ V − W V, one product instead of two; elsewhere ½ Lap V.
        rows : (b,), optional
            The anchors to visit; all of them by default.
        """
        ...

    def sweep_targets(
        self,
        Z: Array,
        V: Array,
        Y: Array,
        respond: RespondToTargets,
        *,
        symmetric: bool = False,
        rows: IndexArray | None = None,
    ) -> SweepResult:
        """The same for averages of targets Y (n, q), from ``asarray``, over the similar rows.

        For every anchor row i, with p_ij ∝ exp(−d_ij) over j ∈ S_i, Σ_j p_ij = 1,

            ŷ_i = Σ_j p_ij y_j

        is handed to ``respond``, whose slopes g_i (q,) define row i of

            W_ij = g_i · ∂ŷ_i/∂d_ij = p_ij g_i · (ŷ_i − y_j),

        which adds up to 0. The dissimilar side is not looked at.
        """
        ...


@dataclass(frozen=True)
class Push(SweepResult):
    """The push of the visited anchors: the sum of the hinges, and the Laplacian."""

    n_active: int
    """Triplets with a positive hinge."""


def hinge_losses(
    hinges: FloatArray, squared: bool, width: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """h or h², and the slopes, for h ≥ 0; the kink of h smoothed over ``width`` above it."""
    if squared:
        return hinges**2, 2.0 * hinges
    slopes = np.where(hinges >= width, 1.0, hinges / width if width > 0 else 0.0)
    slopes = np.where(hinges > 0, slopes, 0.0)
    return slopes * (hinges - 0.5 * width * slopes), slopes


class PushKernel(Protocol):
    """The push of n points away from targets that are given once; no weights, no pull."""

    def sweep(
        self,
        Z: FloatArray,
        V: FloatArray,
        *,
        squared: bool,
        symmetric: bool,
        rows: IndexArray | None = None,
        width: float = 0.0,
    ) -> Push:
        """The push of the anchors ``rows`` (all by default) among the points Z (n, m).

        V (n, c) and ``symmetric`` are those of :meth:`Kernel.sweep`; ``squared`` chooses the hinge.
        The kink of the plain hinge is smoothed over ``width``, by a parabola above it; the second
        value is the sum of the hinges as they are.
        """
        ...


@dataclass(frozen=True)
class LogisticSweep(SweepResult):
    """The logistic loss of all pairs, and the Laplacian."""

    bias_slope: float
    """The derivative with respect to the bias."""


class PairKernel(Protocol):
    """Bound to the pairs of n points, and to the weights of similar and dissimilar ones."""

    def sweep(self, Z: FloatArray, V: FloatArray, bias: float, *, symmetric: bool) -> LogisticSweep:
        """The loss of all pairs among the points Z (n, m), with V as in :meth:`Kernel.sweep`."""
        ...


class HostKernel:
    """Base of the kernels that compute with NumPy arrays."""

    half_is_cheaper = True

    def asarray(self, values: FloatArray) -> FloatArray:
        """See :meth:`Kernel.asarray`."""
        return np.asarray(values)

    def embed(self, X: FloatArray, L: FloatArray) -> FloatArray:
        """See :meth:`Kernel.embed`."""
        return X @ L.astype(X.dtype, copy=False).T
