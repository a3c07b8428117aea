"""Array types that annotations share."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating]
"""float32 or float64."""
IndexArray: TypeAlias = NDArray[np.intp]
"""Row indices, class codes and counts."""
Array: TypeAlias = Any
"""A NumPy array, or a tensor of PyTorch, which is not imported for an annotation."""
