"""The compiled sums over pairs of :mod:`vicinal.learners.triplet_margins`; imported when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.cpu.jit import compiled as _compiled
from vicinal.kernels.cpu.jit import compiled_sum as _compiled_sum

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
    near: IndexArray,
    far: IndexArray,
    u: FloatArray,
    out: FloatArray,
) -> None:
    """out += Lap·V, with Vᵀ·Lap·V = Σ_r u_r (v_il v_ilᵀ − v_ij v_ijᵀ).

    The pair (i, j) of triplet r is near_r, the pair (i, l) far_r; pair p is (a_p, b_p). Pairs that
    weigh nothing are free.
    """
    pull, push = np.zeros(a.shape[0]), np.zeros(a.shape[0])
    for r in range(u.shape[0]):
        push[far[r]] += u[r]
        pull[near[r]] += u[r]
    for p in range(a.shape[0]):
        weight = push[p] - pull[p]
        if weight == 0.0:
            continue
        x, y = V[a[p]], V[b[p]]
        to_x, to_y = out[a[p]], out[b[p]]
        for k in range(V.shape[1]):
            flow = weight * (x[k] - y[k])
            to_x[k] += flow
            to_y[k] -= flow
