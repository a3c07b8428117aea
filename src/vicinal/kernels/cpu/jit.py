"""Decorators that compile functions with Numba, and a fast exponential for them."""

from __future__ import annotations

import hashlib
import math
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from llvmlite import ir
from numba import float32, float64, njit, types, version_info
from numba.core.caching import FunctionCache, NullCache
from numba.extending import intrinsic, overload

NEWEST_TESTED = (0, 68)
"""Version of Numba up to which functions are compiled by `numba_pipelines`."""

_SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


class _Cache(FunctionCache):
    """Numba's cache on disk, made to notice a change in any file of this package.

    Numba compares only the file that defines a function, not those of the functions it calls:
    after an upgrade it would go on using the machine code of the old ones. Damaged files are
    replaced, and a cache that cannot be written is not used: neither may stop a fit.
    """

    def _index_key(self, sig, codegen):
        return (*super()._index_key(sig, codegen), _SOURCES)

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file can fail in any way: compile again
            return None

    def save_overload(self, sig, data):
        try:
            try:
                super().save_overload(sig, data)
            except Exception:  # perhaps the index is damaged: begin a new one
                self.flush()
                super().save_overload(sig, data)
        except Exception:
            _warn_without_cache()


def _cache_of(function):
    try:
        return _Cache(function)
    except RuntimeError:  # no folder can be written to
        _warn_without_cache()
        return NullCache()


@cache
def _warn_without_cache():
    warnings.warn(
        "compiled functions cannot be cached on disk, so that every process compiles them again, "
        "which takes seconds; set NUMBA_CACHE_DIR to a folder that can be written to",
        RuntimeWarning,
        stacklevel=2,
    )


# Fused multiply-add is allowed everywhere. Reordering is not: it would let LLVM cancel
# (x + SHIFT) − SHIFT and break the range reduction of the exponential below. Only functions that
# are nothing but sums may be reordered, to vectorize.
_EXACT = {"contract"}
_SUM = {"contract", "reassoc", "nsz"}

_INNER, _OUTER = {}, {}  # later versions of Numba compile as they do, only slower
if version_info.short <= NEWEST_TESTED:
    from vicinal.kernels.cpu.numba_pipelines import InnerCompiler, OuterCompiler

    _INNER, _OUTER = {"pipeline_class": InnerCompiler}, {"pipeline_class": OuterCompiler}


def _inner(function, fastmath):
    return njit(
        **_INNER,
        nogil=True,
        error_model="numpy",
        fastmath=fastmath,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)


def _compiled(function, fastmath):
    dispatcher = njit(
        **_OUTER,
        nogil=True,
        error_model="numpy",
        fastmath=fastmath,
        no_cfunc_wrapper=True,
    )(function)
    dispatcher._cache = _cache_of(function)
    return dispatcher


def inner(function):
    """Compile for other compiled functions only: no way in from Python, no cache of its own."""
    return _inner(function, _EXACT)


def inner_sum(function):
    """As ``inner``, for functions that are nothing but sums."""
    return _inner(function, _SUM)


def compiled(function):
    """Compile to machine code at the first call, without the interpreter lock, cached on disk."""
    return _compiled(function, _EXACT)


def compiled_sum(function):
    """As ``compiled``, for functions that are nothing but sums."""
    return _compiled(function, _SUM)


@intrinsic
def _as_bits(typing_context, x):
    """The bits of a float as an integer of the same width."""
    to = types.int64 if x == float64 else types.int32

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(to.bitwidth))

    return to(x), codegen


@intrinsic
def _as_float(typing_context, x):
    """The float that these bits are."""
    to = float64 if x == types.int64 else float32

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType() if to == float64 else ir.FloatType())

    return to(x), codegen


def _exponential_polynomial(degree, dtype):
    """Coefficients of the near-minimax polynomial of eʳ on |r| ≤ ln(2)/2, lowest first."""
    half = 0.5 * math.log(2) * (1 + 1e-4)
    chebyshev = np.polynomial.Chebyshev.interpolate(np.exp, degree, domain=[-half, half])
    power = chebyshev.convert(kind=np.polynomial.Polynomial, domain=[-1, 1])
    # e⁰ = 1 exactly: the nearest neighbor of a row has weight 1 and nothing else.
    return (dtype(1), *(dtype(c) for c in power.coef[1:]))


# eˣ = 2ᵏ eʳ with k = round(x / ln 2). Adding 1.5·2⁵² (1.5·2²³) leaves k in the low bits of the
# sum, ready to be shifted into the exponent; ln 2 is split so that k·LN2_HIGH is exact.
_LOG2E = math.log2(math.e)
_SHIFT = 1.5 * 2.0**52
_LN2_HIGH, _LN2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6
_UNDERFLOW = -708.0
_P = _exponential_polynomial(9, float)

_LOG2E_32 = np.float32(_LOG2E)
_SHIFT_32 = np.float32(1.5 * 2.0**23)
_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_UNDERFLOW_32 = np.float32(-87.0)
_ZERO_32 = np.float32(0.0)
_Q = _exponential_polynomial(6, np.float32)


@njit(forceinline=True, fastmath={"contract"})
def _exp_float64(x):
    t = x * _LOG2E + _SHIFT
    k = t - _SHIFT
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (_P[0] + _P[1] * r) + (_P[2] + _P[3] * r) * r2
    middle = (_P[4] + _P[5] * r) + (_P[6] + _P[7] * r) * r2
    high = _P[8] + _P[9] * r
    p = low + (middle + high * r4) * r4
    scaled = _as_float(_as_bits(p) + (_as_bits(t) << 52))
    return scaled if x > _UNDERFLOW else 0.0


@njit(forceinline=True, fastmath={"contract"})
def _exp_float32(x):
    t = x * _LOG2E_32 + _SHIFT_32
    k = t - _SHIFT_32
    r = (x - k * _LN2_HIGH_32) - k * _LN2_LOW_32
    r2 = r * r
    low = (_Q[0] + _Q[1] * r) + (_Q[2] + _Q[3] * r) * r2
    high = (_Q[4] + _Q[5] * r) + _Q[6] * r2
    p = low + high * (r2 * r2)
    scaled = _as_float(np.int32(_as_bits(p) + (_as_bits(t) << np.int32(23))))
    return scaled if x > _UNDERFLOW_32 else _ZERO_32


def fast_exp(x):
    """Vectorizable eˣ for x ≤ 700 (float32: 88): relative error below 1e-13 (1e-6).

    Exactly 0 below −708 (−87), where eˣ leaves the normal numbers; 0 at −inf.
    """
    raise NotImplementedError("for compiled code only")


@overload(fast_exp)
def _overload_fast_exp(x):
    if x == float64:
        return _exp_float64.py_func
    if x == float32:
        return _exp_float32.py_func
    return None
