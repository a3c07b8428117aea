"""Fit several learners to the same samples, those that are alike as one batch.

Cross-validation fits one learner for a handful of penalties to the rows of one fold. What the
penalty does not change (triplets, bases) is then found once, and the small problems that remain
are solved in step (:mod:`vicinal.solvers.in_step`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Number
from typing import Any

from sklearn.utils.validation import validate_data


def fit_together(learners: Sequence[Any], X: Any, y: Any) -> None:
    """Fit each of them to (X, y), with the results of ``learner.fit(X, y)`` one by one.

    Learners are alike where their class says in which parameters they may differ and all others
    are equal. Those that draw (``random_state`` is no integer), report (``callback``, ``verbose``)
    or go on from an earlier fit (``warm_start``) are fitted one by one.

    A warning about the samples is given once a batch. Ctrl-C keeps what is fitted by then.

    Parameters
    ----------
    learners : estimators; other ones than vicinal's are fitted one by one
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Class labels.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> import vicinal as vc
    >>> X, y = load_wine(return_X_y=True)
    >>> path = [vc.SCML(beta, random_state=0) for beta in (1e-1, 1e-3, 1e-5)]
    >>> fit_together(path, scale(X), y)
    >>> cheap, dear = path[-1].bases_, path[0].bases_
    >>> len(cheap) > len(dear)
    True
    """
    for batch in _batches(learners):
        if len(batch) == 1:
            batch[0].fit(X, y)
        else:
            type(batch[0])._fit_alike(batch, X, y)


def take_checked(learners: Sequence[Any], X: Any) -> None:
    """Set what checking samples sets, in all but the first, which has checked them.

    Parameters
    ----------
    learners : estimators of one class
    X : array-like of shape (n_samples, n_features), as it was given
    """
    first, *others = learners
    for learner in others:
        validate_data(learner, X, skip_check_array=True)  # number and names of the features
        for name in ("classes_", "n_excluded_"):
            if hasattr(first, name):
                setattr(learner, name, getattr(first, name))


def keep_all(keep: Iterable[Callable[[], object]]) -> None:
    """Keep what each of several fits has found, then raise the interrupt that ended one of them.

    Parameters
    ----------
    keep : functions that store the outcome of a fit
    """
    interrupt: KeyboardInterrupt | None = None
    for each in keep:
        try:
            each()
        except KeyboardInterrupt as reported:
            interrupt = reported
    if interrupt is not None:
        raise interrupt


def _batches(learners: Sequence[Any]) -> list[list[Any]]:
    batches: list[list[Any]] = []
    for learner in learners:
        for batch in batches:
            if _alike(batch[0], learner):
                batch.append(learner)
                break
        else:
            batches.append([learner])
    return batches


def _alike(first: Any, second: Any) -> bool:
    differ_in: frozenset[str] = getattr(first, "_differ_in", frozenset())
    if type(first) is not type(second) or not differ_in or not _fits_in_batches(type(first)):
        return False
    given = first.get_params(), second.get_params()
    return not _stands_alone(given[0]) and all(
        _same(name, *given) for name in given[0] if name not in differ_in
    )


def _fits_in_batches(kind: type) -> bool:
    """Whether ``_fit_alike`` is about the ``fit`` of this class, not about one it overrides."""
    for base in kind.__mro__:
        if "_fit_alike" in vars(base):
            return True
        if "fit" in vars(base):
            return False
    return False


def _stands_alone(given: Mapping[str, Any]) -> bool:
    """Whether a fit draws, reports or depends on what was fitted before."""
    draws = not isinstance(given.get("random_state", 0), Integral)
    reports = given.get("callback") is not None or given.get("verbose", 0) != 0
    return draws or reports or bool(given.get("warm_start", False))


def _same(name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether it is one value; of arrays and functions only the very same are."""
    a, b = first[name], second[name]
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, Number | str) and bool(a == b)
