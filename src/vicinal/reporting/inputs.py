"""The arguments of a report, checked and in one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, column_or_1d

from vicinal._typing import FloatArray, IndexArray, LabelArray, Table
from vicinal.features.table_encoder import EncodedSamples, TableEncoder
from vicinal.fitted_model import FittedModel, NumberVotes
from vicinal.reporting.evaluation import ReportRows
from vicinal.reporting.feature_columns import FeatureColumns

CLASSES_LISTED = 40


@dataclass(frozen=True)
class Inputs:
    """Training rows, held-out rows if any, and the names of everything."""

    train: ReportRows
    test: ReportRows | None
    labels: NDArray[np.generic]
    """(c,) the distinct labels of both, sorted; none of numbers."""
    columns: FeatureColumns
    encoder: TableEncoder | None
    """What made the features of a table."""
    ids: tuple[str, ...]
    """Of the training rows, then of the held-out ones."""

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.labels.tolist())

    @property
    def pooled_codes(self) -> IndexArray:
        """Classes of the training rows, then of the held-out ones."""
        return np.concatenate([part.codes for part in self._parts().values()])

    def pooled_features(self) -> FloatArray:
        """Features of the same rows."""
        return np.concatenate([part.A for part in self._parts().values()])

    def pooled_numbers(self) -> FloatArray:
        """Targets of the same rows, where numbers are predicted."""
        parts = [part.numbers for part in self._parts().values() if part.numbers is not None]
        return np.concatenate(parts)

    def shapes(self) -> dict[str, tuple[int, int]]:
        return {name: (part.A.shape[0], part.A.shape[1]) for name, part in self._parts().items()}

    def class_counts(self) -> dict[str, str]:
        """'setosa 40, virginica 42' for each set of rows."""
        lines: dict[str, str] = {}
        if not len(self.labels):
            return lines
        for name, part in self._parts().items():
            counts = np.bincount(part.codes, minlength=len(self.labels))
            pairs = list(zip(self.classes, counts.tolist(), strict=True))
            more = len(pairs) - CLASSES_LISTED
            text = ", ".join(f"{label} {count:,}" for label, count in pairs[:CLASSES_LISTED])
            lines[name] = text + (f", and {more} more" if more > 0 else "")
        return lines

    def summary(self, method: str) -> str:
        rows = " + ".join(f"{n:,} {name}" for name, (n, _) in self.shapes().items())
        d, c = len(self.columns.names), len(self.labels)
        what = ("feature" if self.encoder is None else "column") + "s" * (d > 1)
        told = f"{c} classes" if c else "a numeric target"
        return f"{rows} rows · {d:,} {what} · {told} · {method}"

    def _parts(self) -> dict[str, ReportRows]:
        parts = {"training": self.train}
        return parts if self.test is None else {**parts, "held-out": self.test}


def check_inputs(
    fitted: FittedModel,
    X: Table,
    y: ArrayLike,
    X_test: Table | None,
    y_test: ArrayLike | None,
    feature_names: Sequence[object] | None,
    ids: Sequence[object] | None,
) -> Inputs:
    """Inputs, or an error that says what does not fit together."""
    if (X_test is None) != (y_test is None):
        raise ValueError("give X_test and y_test together, or neither")
    of_train: LabelArray = column_or_1d(y)
    of_test: LabelArray = of_train[:0] if y_test is None else column_or_1d(y_test)
    both, n = np.concatenate([of_train, of_test]), len(of_train)
    numbers: FloatArray | None = None
    if isinstance(fitted.votes, NumberVotes):
        numbers = np.asarray(check_array(both, ensure_2d=False, input_name="y"), dtype=np.float64)
        labels, codes = np.empty(0), quantile_intervals(numbers)
    else:
        labels, codes = np.unique(both, return_inverse=True)
    train = _rows(fitted, X, "X", codes[:n], None if numbers is None else numbers[:n])
    test = None
    if X_test is not None:
        numbers = None if numbers is None else numbers[n:]
        test = _rows(fitted, X_test, "X_test", codes[n:], numbers)
    if fitted.committee is not None and n != fitted.committee.n_samples_fit_:
        raise ValueError(
            f"X has {n} rows, but the model was fitted on {fitted.committee.n_samples_fit_}: "
            "give the training data as they were given to fit"
        )
    if train.numbers is None:
        _check_classes(fitted, labels, train)
    encoder = _encoder(fitted, X)
    columns = _columns(fitted, X, feature_names, train.A.shape[1], encoder)
    train = replace(train, of_features=columns.of_features)
    return Inputs(train, test, labels, columns, encoder, _ids(ids, n, len(of_test)))


def quantile_intervals(numbers: FloatArray) -> IndexArray:
    """(n,) the tenth of the distribution that each of n numbers belongs to, from 0."""
    return np.searchsorted(np.quantile(numbers, np.linspace(0, 1, 11)[1:-1]), numbers)


def _check_classes(fitted: FittedModel, labels: NDArray[np.generic], train: ReportRows) -> None:
    if fitted.committee is not None and not np.isin(fitted.committee.classes_, labels).all():
        raise ValueError("the model knows classes that y does not have: give the labels of the fit")
    if len(np.unique(train.codes)) < 2:
        raise ValueError("y has one class only: there is nothing to tell apart, nor to report")


def _rows(
    fitted: FittedModel, X: Table, name: str, codes: IndexArray, numbers: FloatArray | None
) -> ReportRows:
    if isinstance(X, EncodedSamples):
        X = np.asarray(X.X, dtype=np.float64)
    committee = fitted.committee
    if name == "X" and fitted.preparation and committee is not None and _is_encoded(fitted):
        A: FloatArray = np.asarray(
            committee.X_fit_, dtype=np.float64
        )  # cross-fitted, where it matters
    else:
        A = fitted.prepare(X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n != len(codes):
        raise ValueError(f"{name} has {n} rows but {len(codes)} labels")
    return ReportRows(X, A, codes, numbers)


def _is_encoded(fitted: FittedModel) -> bool:
    """Whether the features were made by the encoder of the model itself."""
    return len(fitted.preparation) == 1 and isinstance(fitted.preparation[0], TableEncoder)


def _encoder(fitted: FittedModel, X: Table) -> TableEncoder | None:
    """What made the features, if they are columns of a table."""
    if isinstance(X, EncodedSamples):
        return X.encoder
    last = fitted.preparation[-1] if fitted.preparation else None
    return last if isinstance(last, TableEncoder) else None


def _columns(
    fitted: FittedModel,
    X: Table,
    given: Sequence[object] | None,
    d: int,
    encoder: TableEncoder | None,
) -> FeatureColumns:
    """The names of the features, and of the columns that they were made of."""
    if encoder is None:
        names = _feature_names(fitted, X, given, d)
        return FeatureColumns(names, names, np.arange(d))
    if given is not None and len(given) not in (d, len(encoder.columns_)):
        raise ValueError(
            f"feature_names has {len(given)} names for {len(encoder.columns_)} columns"
        )
    of_columns = given is not None and len(given) == len(encoder.columns_)
    return FeatureColumns.of_encoder(encoder, given if of_columns else None)


def _feature_names(
    fitted: FittedModel, X: Table, given: Sequence[object] | None, d: int
) -> tuple[str, ...]:
    """The caller's names, the model's, those of the columns of X, or numbers."""
    if given is not None and fitted.preparation and len(given) != d:
        given = list(_names_out(fitted.preparation, np.asarray(given, dtype=object)))
    if given is not None:
        if len(given) != d:
            raise ValueError(f"feature_names has {len(given)} names for {d} features")
        return tuple(str(name) for name in given)
    named = getattr(fitted.estimator, "feature_names_in_", None)
    if named is None and fitted.preparation:
        try:
            named = _names_out(fitted.preparation, None)
        except (AttributeError, ValueError):  # a step that knows no names
            named = None
    elif named is None:
        named = getattr(X, "columns", None)
    if named is None or len(named) != d:
        return tuple(f"feature {i + 1}" for i in range(d))
    return tuple(str(name) for name in named)


def _names_out(steps: Sequence[BaseEstimator], names: LabelArray | None) -> LabelArray:
    """The names of the features after all the steps."""
    for step in steps:
        names = step.get_feature_names_out(names)
    return np.asarray(names)


def _ids(given: Sequence[object] | None, n: int, n_test: int) -> tuple[str, ...]:
    if given is None:
        return (*(f"row {i}" for i in range(n)), *(f"held-out {i}" for i in range(n_test)))
    names = tuple(str(name) for name in given)
    if len(names) == n:
        return (*names, *(f"held-out {i}" for i in range(n_test)))
    if len(names) != n + n_test:
        also = f" (or {n + n_test}, held-out rows included)" if n_test else ""
        raise ValueError(f"ids has {len(names)} entries for {n} rows{also}")
    return names
