"""The order of a search: every point once, each from a neighbor that was visited before."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from vicinal.search.grid import GridPoint, alpha_steps, gamma_steps, grid_steps, warm_start_chain

ALPHAS = st.lists(st.floats(allow_nan=False), min_size=1, max_size=7, unique=True)
GAMMAS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6, unique=True)


@given(ALPHAS, GAMMAS, st.floats(1e-3, 1e3))
def test_grid(alphas, gammas, gamma):
    steps = list(grid_steps(alphas, gammas, gamma))
    points = [step.point for step in steps]
    assert len(points) == len(set(points))
    assert set(points) == {GridPoint(a, g) for a in alphas for g in gammas}
    for i, step in enumerate(steps):
        assert step.start is None or step.start in points[:i]
    # One beginning a sign; all others from a neighbor on the grid, of the same sign.
    assert sum(step.start is None for step in steps) == len({a >= 0 for a in alphas})
    a, g = sorted(alphas), sorted(gammas)
    for here, there in ((step.point, step.start) for step in steps if step.start):
        distance = abs(a.index(here.alpha) - a.index(there.alpha))
        assert distance + abs(g.index(here.gamma) - g.index(there.gamma)) == 1
        assert (here.alpha >= 0) == (there.alpha >= 0)
        assert abs(here.alpha) >= abs(there.alpha)  # from 0 outward


def test_origin_is_the_nearest_gamma_by_ratio():
    steps = list(grid_steps([1.0], [0.1, 1.0, 9.0], 3.2))
    assert steps[0].point == GridPoint(1.0, 9.0)


def test_separate_paths():
    along_alpha = [
        (s.point.alpha, s.start and s.start.alpha) for s in alpha_steps([1, -2, 0, -1], 3)
    ]
    assert along_alpha == [(0, None), (1, 0), (-1, None), (-2, -1)]
    along_gamma = [(s.point.gamma, s.start.gamma) for s in gamma_steps(1, [8, 1, 2, 4, 0.5], 2)]
    assert along_gamma == [(1, 2), (0.5, 1), (4, 2), (8, 4)]


def test_warm_start_chain_leads_from_a_beginning_to_the_point():
    steps = list(grid_steps([-1.0, 1.0, 2.0], [0.5, 1.0, 2.0, 4.0], 1.0))
    path = warm_start_chain(steps, GridPoint(2.0, 4.0))
    values = [(s.point.alpha, s.point.gamma) for s in path]
    assert values == [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (2.0, 4.0)]
    assert path[0].start is None
    assert all(b.start == a.point for a, b in pairwise(path))
