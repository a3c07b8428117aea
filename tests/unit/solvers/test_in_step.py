"""Problems solved in step: the solutions of each alone, for fewer evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.solvers.accelerated import accelerate, accelerated_projected_gradient
from vicinal.solvers.in_step import solve_in_step

OPTIONS = {"max_iter": 60, "tol": 1e-6}


class Quadratics:
    """1 + ½(x − b)ᵀH(x − b) + ‖x‖₁-like kinks over x ≥ 0, one for each b; it counts its calls."""

    n_rows = 1

    def __init__(self, n, d=12, kink=0.0, seed=0):
        rng = np.random.default_rng(seed)
        Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
        self.H = (Q * np.geomspace(1, 1e-2, d)) @ Q.T
        self.b = rng.normal(size=(n, d)) * np.geomspace(1, 30, n)[:, None]
        self.kink, self.calls, self.evaluations = kink, 0, 0

    def values_and_gradients(self, members, params):
        self.calls += 1
        self.evaluations += len(members)
        pairs = [self.one(number, x) for number, x in zip(members, params, strict=True)]
        return np.array([value for value, _ in pairs]), np.stack([g for _, g in pairs])

    def one(self, number, x):
        away = x - self.b[number]
        value = 1 + away @ self.H @ away / 2 + self.kink * np.abs(x - 1).sum()
        return value, self.H @ away + self.kink * np.sign(x - 1)

    def project(self, x):
        return np.maximum(x, 0.0)


class Alone:
    n_rows = 1

    def __init__(self, batch, number):
        self.batch, self.number = batch, number

    def value_and_gradient(self, x, rows=None):
        return self.batch.one(self.number, x)

    def project(self, x):
        return self.batch.project(x)


def in_step(batch, starts, callbacks=None, **options):
    callbacks = callbacks or [None] * len(starts)
    return solve_in_step(accelerate, batch, starts, callbacks=callbacks, **OPTIONS | options)


def assert_same(solution, other):
    np.testing.assert_array_equal(solution.params, other.params)
    np.testing.assert_array_equal(solution.history, other.history)
    assert (solution.value, solution.n_iter, solution.stop_reason) == (
        other.value,
        other.n_iter,
        other.stop_reason,
    )


@pytest.mark.parametrize("kink", [0.0, 0.3])
def test_each_takes_the_steps_that_it_would_take_alone(kink):
    batch = Quadratics(6, kink=kink)
    starts = list(np.random.default_rng(1).uniform(size=(6, 12)))
    found = in_step(batch, starts)
    assert len({solution.n_iter for solution in found}) > 1  # some end before others
    for number, solution in enumerate(found):
        alone = accelerated_projected_gradient(Alone(batch, number), starts[number], **OPTIONS)
        assert_same(solution, alone)


def test_what_is_asked_for_at_once_is_evaluated_at_once():
    batch = Quadratics(8)
    found = in_step(batch, [np.ones(12)] * 8)
    longest = max(solution.n_iter for solution in found)
    assert batch.calls - 8 <= 2.6 * longest + 1  # the 8 starts one by one, then in step
    assert batch.evaluations > 3 * batch.calls


def test_a_callback_stops_its_own_run():
    batch = Quadratics(3)
    starts = [np.ones(12)] * 3
    found = in_step(batch, starts, [None, lambda progress: progress.n_iter == 4, None])
    assert (found[1].stop_reason, found[1].n_iter) == ("callback", 4)
    for number in (0, 2):
        alone = accelerated_projected_gradient(Alone(batch, number), starts[number], **OPTIONS)
        assert_same(found[number], alone)


def test_an_interrupt_keeps_the_best_of_each():
    def interrupt(progress):
        if progress.n_iter == 3:
            raise KeyboardInterrupt

    batch = Quadratics(3)
    found = in_step(batch, [np.ones(12)] * 3, [None, interrupt, None])
    assert [solution.stop_reason for solution in found] == ["interrupted"] * 3
    assert all(solution.value < solution.history[0] for solution in found)


def test_one_that_has_ended_stays_ended_when_others_are_interrupted():
    def interrupt(progress):
        if progress.n_iter == 8:
            raise KeyboardInterrupt

    batch = Quadratics(2)
    found = in_step(batch, [batch.b[0], np.ones(12)], [lambda p: p.n_iter == 2, interrupt])
    assert [solution.stop_reason for solution in found] == ["callback", "interrupted"]


def test_a_start_that_is_not_finite_is_an_error():
    with pytest.raises(ValueError, match="not finite at the start"):
        in_step(Quadratics(2), [np.ones(12), np.full(12, np.nan)])


def test_a_value_that_is_not_finite_stops_no_other():
    class Walled(Quadratics):
        def one(self, number, x):
            value, gradient = super().one(number, x)
            return (np.nan if number == 0 and x.sum() > 14 else value), gradient

    batch = Walled(3)
    found = in_step(batch, [np.ones(12)] * 3)
    assert np.isfinite(found[0].value)
    assert found[0].params.sum() <= 14
    assert_same(found[1], accelerated_projected_gradient(Alone(batch, 1), np.ones(12), **OPTIONS))


def test_a_batch_of_nothing():
    assert in_step(Quadratics(0), []) == []
