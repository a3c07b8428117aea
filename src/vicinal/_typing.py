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
"""Labels, targets or groups of any type."""
Array: TypeAlias = Any
"""A NumPy array, or a tensor of PyTorch, which is not imported for an annotation."""

Seed: TypeAlias = int | np.random.RandomState | None
"""The parameter ``random_state``."""
ClassWeight: TypeAlias = str | Mapping[Any, float] | None
"""The parameter ``class_weight``: "balanced", a weight for each label, or None."""
