"""The compiled sums over pairs of :mod:`vicinal.learners.composition`; imported when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from vicinal.kernels.compiled import compiled as _compiled
from vicinal.kernels.compiled import compiled_sum as _compiled_sum

FloatArray: TypeAlias = NDArray[np.floating]
IndexArray: TypeAlias = NDArray[np.intp]
Function = TypeVar("Function", bound=Callable[..., Any])
compiled: Callable[[Function], Function] = _compiled
compiled_sum: Callable[[Function], Function] = _compiled_sum


@compiled_sum
def pair_distances(Z: FloatArray, a: IndexArray, b: IndexArray, out: FloatArray) -> None:
    """out_p ← ‖z_a − z_b‖² of every pair p = (a, b), by direct differences."""
    for p in range(a.shape[0]):
        x, y = Z[a[p]], Z[b[p]]
        total = 0.0
        for k in range(Z.shape[1]):
            step = x[k] - y[k]
            total += step * step
        out[p] = total


@compiled
def add_laplacian(
    V: FloatArray,
    a: IndexArray,
    b: IndexArray,
    c: FloatArray,
    out: FloatArray,
) -> None:
    """Out += Lap·V with Σ_p c_p (v_a − v_b)(v_a − v_b)ᵀ = Vᵀ·Lap·V; pairs of weight 0 are free."""
    for p in range(a.shape[0]):
        weight = c[p]
        if weight == 0.0:
            continue
        x, y = V[a[p]], V[b[p]]
        to_x, to_y = out[a[p]], out[b[p]]
        for k in range(V.shape[1]):
            flow = weight * (x[k] - y[k])
            to_x[k] += flow
            to_y[k] -= flow
