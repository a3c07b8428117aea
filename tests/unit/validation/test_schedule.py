"""Tasks in threads: the same results, in order, with a deadline and safe to interrupt."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numba
import pytest

from vicinal.validation.schedule import Deadline, FitStage, Schedule, run_tasks, thread_count


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_the_order_of_the_tasks(n_threads):
    def work(task):
        time.sleep(0.002 * (5 - task))
        return task * task

    told = []
    schedule = Schedule(n_threads=n_threads)
    results = run_tasks(work, range(5), schedule, lambda *one: told.append(one))
    assert results == [0, 1, 4, 9, 16]
    assert sorted(told) == list(enumerate(results))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("kernel_threads", [None, 1])
def test_threads_of_compiled_code(n_threads, kernel_threads):
    before = numba.get_num_threads()
    schedule = Schedule(n_threads=n_threads, kernel_threads=kernel_threads)
    found = run_tasks(lambda task: numba.get_num_threads(), range(4), schedule)
    assert set(found) == {kernel_threads or before}
    assert numba.get_num_threads() == before


def test_one_thread_is_the_calling_thread():
    (name,) = run_tasks(lambda task: threading.current_thread().name, [0], Schedule())
    assert name == threading.current_thread().name


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_exception_stops_all_tasks(n_threads, error):
    schedule, begun = Schedule(n_threads=n_threads), []

    def work(task):
        begun.append(task)
        if task == 1:
            raise error
        deadline = time.monotonic() + 5.0
        while n_threads > 1 and not schedule.deadline.is_over():
            assert time.monotonic() < deadline, "was not told to stop"
            time.sleep(0.001)

    with pytest.raises(error):
        run_tasks(work, range(50), schedule)
    assert len(begun) < 50


def test_deadlines():
    assert Deadline.after(None).remaining is None
    assert not Deadline.after(None).is_over()
    assert 0.0 < Deadline.after(60.0).remaining <= 60.0
    over = Deadline.after(0.0)
    assert over.is_over()
    assert over.remaining == 0.0


def test_stages_tell_their_progress_and_stop_at_the_deadline():
    told = []
    deadline = Deadline.after(None)
    schedule = Schedule(deadline, listener=lambda stage, done: told.append((stage, done)))
    third = FitStage("fits", schedule, begin=0.25, share=0.25)
    whole = FitStage("fit", schedule)
    assert not third.callback(10)(SimpleNamespace(n_iter=4))
    assert not third.callback(None)(SimpleNamespace(n_iter=4))
    assert not whole.callback(None)(SimpleNamespace(n_iter=4))
    count = whole.fit_counter(4)
    for n_iter in (1, 2, 1):
        assert not count(SimpleNamespace(n_iter=n_iter))
    assert told == [
        ("fits", 0.35), ("fits", 0.25), ("fit", None), ("fit", 0.25), ("fit", 0.25), ("fit", 0.5)
    ]  # fmt: skip
    deadline.interrupted.set()
    assert whole.callback(10)(SimpleNamespace(n_iter=4))
    assert count(SimpleNamespace(n_iter=2))
    FitStage("nobody listens", Schedule()).tell(0.5)


def test_thread_count():
    assert thread_count(None) == numba.get_num_threads()
    assert thread_count(3) == 3
    assert thread_count(-1) >= 1
