"""The columns of a table that the features of a model were made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vicinal._typing import FloatArray, IndexArray
from vicinal.features.table_encoder import TableEncoder


@dataclass(frozen=True)
class FeatureColumns:
    """Features, and the column that each was made of: its levels, its periods, its gaps.

    Examples
    --------
    >>> import numpy as np
    >>> columns = FeatureColumns.named(
    ...     ["size", "color=red", "color=blue"], ["size", *["color"] * 2]
    ... )
    >>> columns.names
    ('size', 'color')
    >>> columns.sums(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 5.]])
    """

    features: tuple[str, ...]
    names: tuple[str, ...]
    """(p,) of the columns that features were made of."""
    of_features: IndexArray
    """(d,) into ``names``."""

    @classmethod
    def named(cls, features: Sequence[str], columns: Sequence[str]) -> FeatureColumns:
        """Features with the names of their columns; a name that returns is the same column."""
        names = tuple(dict.fromkeys(columns))
        return cls(tuple(features), names, np.array([names.index(name) for name in columns]))

    @classmethod
    def of_encoder(cls, encoder: TableEncoder, names: Sequence[object] | None) -> FeatureColumns:
        """What an encoder makes; columns are called as given, or else as in its table."""
        own = [encoding.name for encoding in encoder.columns_]
        called = own if names is None else [str(name) for name in names]
        used, of_features = np.unique(encoder.feature_columns_, return_inverse=True)
        features = [
            called[column] + feature.removeprefix(own[column])
            for feature, column in zip(
                encoder.get_feature_names_out(), encoder.feature_columns_, strict=True
            )
        ]
        return cls(tuple(features), tuple(called[column] for column in used), of_features)

    @property
    def are_features(self) -> bool:
        """Whether every feature is a column of its own."""
        return len(self.names) == len(self.features)

    def members(self, column: int) -> IndexArray:
        """The features of a column."""
        return np.flatnonzero(self.of_features == column)

    def sums(self, parts: FloatArray) -> FloatArray:
        """(n, p) sums over the features of each column, of parts (n, d)."""
        if self.are_features:
            return parts
        return np.asarray(parts @ np.eye(len(self.names))[self.of_features])
