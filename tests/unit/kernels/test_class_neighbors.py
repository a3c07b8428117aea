"""Class-wise neighbors against naive loops: order, ties, duplicates, digits, memory, threads."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vicinal.kernels.cpu import class_neighbors as engine
from vicinal.kernels.cpu.class_neighbors import NeighborIndex


def class_neighbors(queries, references, offsets, k, *, ids=None, **options):
    return NeighborIndex(references, ids).search(queries, offsets, k, **options)


def all_neighbors(queries, references, k, **options):
    return NeighborIndex(references).nearest(queries, k, **options)


def naive(queries, references, offsets, k, ids=None, barred=lambda i, r: False):
    """Sort exact rational distances, one query, class and reference at a time."""
    ids = range(len(references)) if ids is None else ids
    n, c = len(queries), len(offsets) - 1
    distances = np.full((n, c, k), np.inf)
    found = np.full((n, c, k), -1)
    exact_queries = [[Fraction(float(v)) for v in row] for row in queries]
    exact_references = [[Fraction(float(v)) for v in row] for row in references]
    for i, q in enumerate(exact_queries):
        for j in range(c):
            pairs = sorted(
                (sum((a - b) ** 2 for a, b in zip(q, exact_references[r], strict=True)), ids[r])
                for r in range(offsets[j], offsets[j + 1])
                if not barred(i, r)
            )
            for place, (distance, name) in enumerate(pairs[:k]):
                distances[i, j, place] = float(distance)
                found[i, j, place] = name
    return distances, found


def assert_same(actual, expected):
    np.testing.assert_array_equal(actual.ids, expected[1])
    np.testing.assert_allclose(actual.distances, expected[0], rtol=1e-13, atol=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def always_threads(monkeypatch):
    monkeypatch.setattr(engine, "_WORTH_THREADS", 0)


DATA = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "float32": lambda rng, shape: rng.normal(size=shape).astype(np.float32),
    "far from the origin": lambda rng, shape: 1e6 + rng.normal(size=shape),
    "very far from the origin": lambda rng, shape: 1e12 + rng.normal(size=shape),
    "tiny": lambda rng, shape: 1e-12 * rng.normal(size=shape),
    "near duplicates": lambda rng, shape: rng.normal(size=shape[1]) + 1e-9 * rng.normal(size=shape),
    "one outlier": lambda rng, shape: np.r_[np.full((1, shape[1]), 1e9), rng.normal(size=shape)][
        : shape[0]
    ],
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("d", [2, 20])
def test_against_exact_rational_arithmetic(kind, d, rng):
    points = DATA[kind](rng, (60, d))
    queries, references = points[:15], points[15:]
    offsets = [0, 3, 3, 25, 45]  # one class smaller than k, one empty
    expected = naive(queries, references, offsets, 5)
    assert_same(class_neighbors(queries, references, offsets, 5), expected)
    distances, ids = naive(queries, references, [0, 45], 7)
    assert_same(all_neighbors(queries, references, 7), (distances[:, 0], ids[:, 0]))


def test_one_feature(rng):
    points = rng.normal(size=(60, 1))
    expected = naive(points, points, [0, 30, 60], 4)
    assert_same(class_neighbors(points, points, [0, 30, 60], 4), expected)


def test_squares_that_underflow(rng):
    """With one feature a distance is one product, rounded once: also where that is subnormal."""
    points = 1e-162 * rng.integers(0, 1000, size=(200, 1))
    squares = (points - points.T) ** 2
    assert 0 < squares[squares > 0].min() < squares.max() < np.finfo(float).tiny
    actual = all_neighbors(points, points, 9)
    order = np.argsort(squares, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(actual.ids, order)
    np.testing.assert_array_equal(actual.distances, np.take_along_axis(squares, order, axis=1))


@pytest.mark.parametrize(("d", "radius", "offset"), [(400, 1, 0), (3, 0.01, 1), (20, 0.1, 1)])
def test_distances_that_single_precision_cannot_tell_apart(d, radius, offset, rng):
    """Thin shells: the filter sees only its own rounding and must let all of it pass."""
    centers = offset * rng.choice([-1.0, 1.0], size=(4, d))
    directions = rng.normal(size=(4, 80, d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    radii = radius * (1 + 1e-12 * rng.permutation(320).reshape(4, 80, 1))
    references = (centers[:, None] + radii * directions).reshape(-1, d)
    offsets = [0, 80, 160, 240, 320]
    expected = naive(centers, references, offsets, 3)
    assert_same(class_neighbors(centers, references, offsets, 3), expected)


def test_points_that_vanish_beside_a_far_query(rng):
    """One query sets the scale, at which the squares of all others are subnormal in float32."""
    points = 1e-22 * rng.normal(size=(400, 3))
    queries = np.r_[np.ones((1, 3)), points[:20]]
    _, ids = all_neighbors(queries, points, 5)
    _, expected = all_neighbors(queries[1:], points, 5)
    np.testing.assert_array_equal(ids[1:], expected)


def test_ties_go_to_the_smaller_id(rng):
    references = rng.integers(0, 3, size=(60, 3)).astype(float)  # 27 different points
    queries = rng.integers(0, 3, size=(15, 3)).astype(float)
    ids = rng.permutation(1000)[:60]
    offsets = [0, 20, 60]
    assert_same(
        class_neighbors(queries, references, offsets, 9, ids=ids),
        naive(queries, references, offsets, 9, ids=ids),
    )


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(1, 4),
    st.integers(1, 45),
    st.integers(1, 5),
)
def test_integer_data_exactly(seed, n, m, d, k, c):
    """Integers have many ties and exact distances: every number and index is determined."""
    rng = np.random.default_rng(seed)
    queries = rng.integers(-2, 3, size=(n, d)) + 1_000_000
    references = rng.integers(-2, 3, size=(m, d)) + 1_000_000
    offsets = np.r_[0, np.sort(rng.integers(0, m + 1, size=c - 1)), m]
    exclude = rng.integers(-1, m, size=n)
    groups = rng.integers(0, 3, size=n), rng.integers(0, 3, size=m)
    actual = class_neighbors(
        queries,
        references,
        offsets,
        k,
        exclude=exclude,
        query_groups=groups[0],
        reference_groups=groups[1],
        memory=int(rng.integers(0, 5000)),
    )
    expected = naive(
        queries,
        references,
        offsets,
        k,
        barred=lambda i, r: r == exclude[i] or groups[0][i] == groups[1][r],
    )
    np.testing.assert_array_equal(actual.distances, expected[0])
    np.testing.assert_array_equal(actual.ids, expected[1])


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e15])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_duplicates_are_at_exactly_zero(offset, dtype, rng):
    points = (offset + rng.normal(size=(300, 7))).astype(dtype)
    distances, ids = all_neighbors(points, points, 1)
    np.testing.assert_array_equal(distances, 0)
    first = np.array([np.flatnonzero((points == p).all(axis=1))[0] for p in points])
    np.testing.assert_array_equal(ids[:, 0], first)


def test_all_points_equal(rng):
    """Nothing can be skipped: every reference ties with every other."""
    points = np.full((40, 5), 0.1)
    distances, ids = all_neighbors(points, points, 3, exclude=np.arange(40))
    np.testing.assert_array_equal(distances, 0)
    expected = [[j for j in range(4) if j != i][:3] for i in range(40)]
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize("offset", [0, 1e8])
def test_distances_are_symmetric_and_never_negative(offset, rng):
    points = offset + rng.normal(size=(60, 4))
    distances, ids = all_neighbors(points, points, 60)
    square = np.empty((60, 60))
    np.put_along_axis(square, ids, distances, axis=1)
    np.testing.assert_array_equal(square, square.T)
    assert square.min() == 0


@pytest.mark.usefixtures("always_threads")
@pytest.mark.parametrize("memory", [20_000, 100_000, 10**6])
@pytest.mark.parametrize("d", [2, 50])
def test_the_result_does_not_depend_on_the_memory(memory, d, rng):
    points = rng.normal(size=(1500, d))
    queries, references = points[:300], points[300:]
    offsets = [0, 100, 700, 703, 1200]
    large = class_neighbors(queries, references, offsets, 6, memory=2**30)
    small = class_neighbors(queries, references, offsets, 6, memory=memory)
    np.testing.assert_array_equal(small.distances, large.distances)
    np.testing.assert_array_equal(small.ids, large.ids)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("memory", [10**5, 10**6, 64 * 2**20])
@pytest.mark.parametrize("d", [1, 16, 1000])
@pytest.mark.parametrize("n", [1, 100, 10**6])
def test_tiles_stay_within_the_memory(n, d, threads, memory):
    height, width = engine._tile_shape((n, 10**6, d), threads, memory)
    assert min(height, width) >= 1

    def taken(b, t):
        return threads * (4 * b * t + 16 * (b + t) * (d + 3))

    assert taken(height, width) <= max(memory, taken(1, 1))


def test_working_memory_is_bounded():
    """The peak of NumPy's allocations: the result, 2 MB of tiles, and small change."""
    rng = np.random.default_rng(0)
    queries, references = rng.normal(size=(2000, 8)), rng.normal(size=(20_000, 8))
    all_neighbors(queries[:10], references, 3)  # compile
    tracemalloc.start()
    all_neighbors(queries, references, 3, memory=2 * 2**20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result, codes = 2000 * 3 * 16, (2000 + 20_000) * 8
    assert peak <= result + codes + 2.5 * 2**20 < 2000 * 20_000


@pytest.mark.usefixtures("always_threads")
def test_concurrent_searches_agree(rng):
    points = rng.normal(size=(800, 6))
    expected = all_neighbors(points, points, 4)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: all_neighbors(points, points, 4), range(8)):
            np.testing.assert_array_equal(found.ids, expected.ids)
            np.testing.assert_array_equal(found.distances, expected.distances)


def test_many_classes_and_large_k(rng):
    references = rng.integers(0, 50, size=(600, 2)).astype(float)
    queries = rng.integers(0, 50, size=(4, 2)).astype(float)
    offsets = np.arange(0, 601, 3)  # 200 classes of 3
    expected = naive(queries, references, offsets, 4)
    assert_same(class_neighbors(queries, references, offsets, 4), expected)
    everything = naive(queries, references, [0, 600], 600)
    assert_same(class_neighbors(queries, references, [0, 600], 600), everything)


def test_mixed_types_and_layouts(rng):
    references = rng.normal(size=(50, 4))
    queries = rng.normal(size=(9, 4)).astype(np.float32)
    expected = naive(queries, references, [0, 50], 3)
    for R in (references, np.asfortranarray(references), references[::-1].copy()[::-1]):
        assert_same(class_neighbors(queries, R, [0, 50], 3), expected)
    read_only = references.copy()
    read_only.flags.writeable = False
    assert_same(class_neighbors(queries, read_only, [0, 50], 3), expected)


def test_empty_sides():
    nothing = np.empty((0, 2))
    assert all_neighbors(nothing, np.ones((3, 2)), 2).ids.shape == (0, 2)
    distances, ids = class_neighbors(np.ones((3, 2)), nothing, [0, 0, 0], 2)
    assert np.all(np.isinf(distances))
    assert np.all(ids == -1)
    assert ids.shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.ones((2, 3))}, "queries have 3 features, references 2"),
        ({"queries": np.ones(2)}, "queries must have two dimensions"),
        ({"queries": np.array([[np.nan, 0]])}, "queries has NaN"),
        ({"references": np.full((4, 2), 1e200)}, "overflow"),
        ({"k": 0}, "k must be at least 1"),
        ({"offsets": [0, 3]}, "offsets must ascend from 0 to 4"),
        ({"offsets": [0, 3, 2, 4]}, "offsets must ascend"),
        ({"offsets": [4]}, "offsets must ascend"),
        ({"ids": [1, 2]}, "ids must be 4 integers"),
        ({"exclude": [0.5, 1.0]}, "exclude must be 2 integers"),
        ({"query_groups": [1, 2]}, "give both"),
    ],
)
def test_clear_errors(change, message):
    arguments = {
        "queries": np.ones((2, 2)),
        "references": np.ones((4, 2)),
        "offsets": [0, 4],
        "k": 1,
    }
    with pytest.raises(ValueError, match=message):
        class_neighbors(**arguments | change)


def test_importing_does_not_import_numba():
    code = "import sys, vicinal.kernels.cpu.class_neighbors; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
