"""Types that annotations share: arrays, and parameters that many estimators have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating]
"""float32 or float64."""
IndexArray: TypeAlias = NDArray[np.intp]
"""Row indices, class codes and counts."""
LabelArray: TypeAlias = NDArray[Any]
"""Labels, targets, groups, or the values of a column, of any type."""
Array: TypeAlias = Any
"""A NumPy array, or a tensor of PyTorch, which is not imported for an annotation."""
Table: TypeAlias = Any
"""A data frame of pandas or polars, a pyarrow table or an array: none is imported for this."""
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What JSON can hold."""
Document: TypeAlias = dict[str, Any]
"""A JSON object that is written or shown."""

Seed: TypeAlias = int | np.random.RandomState | None
"""The parameter ``random_state``."""
ClassWeight: TypeAlias = str | Mapping[Any, float] | None
"""The parameter ``class_weight``: "balanced", a weight for each label, or None."""
