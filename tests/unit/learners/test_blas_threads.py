"""The limit on BLAS is lifted by the last to leave, whoever began first."""

from threading import Barrier, Thread

from vicinal.learners.blas_threads import _limit, single_threaded_blas


def blas_threads():
    """Threads of the libraries that were loaded at the first limit; later ones are not limited.

    Those that thread by OpenMP are left out: each thread of Python has a number of its own there.
    """
    found = _limit()._controller.select(user_api="blas").info()
    return [each["num_threads"] for each in found if each.get("threading_layer") != "openmp"]


def test_nested_limits_are_lifted_once():
    before = blas_threads()
    with single_threaded_blas():
        with single_threaded_blas():
            assert set(blas_threads()) <= {1}
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_overlapping_limits_of_two_threads():
    """The first enters before and leaves before the second: neither lifts the limit too early."""
    before, inside = blas_threads(), []
    both_in, first_out = Barrier(2, timeout=10), Barrier(2, timeout=10)

    def first():
        with single_threaded_blas():
            both_in.wait()
        first_out.wait()

    def second():
        with single_threaded_blas():
            both_in.wait()
            first_out.wait()
            inside.extend(blas_threads())

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(inside) <= {1}
    assert blas_threads() == before
