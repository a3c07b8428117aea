"""Data that are tensors: taken where they are, or brought to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from vicinal.kernels import DEVICE_BACKENDS


def on_host(values: Any) -> Any:
    """An array for a torch tensor on whatever device; anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach()
    if values.is_floating_point() and values.element_size() < 4:
        values = values.double()  # NumPy has no bfloat16
    return values.cpu().numpy()


def stays_on_device(X: Any, backend: str) -> bool:
    """Whether a fit computes on the GPU that its samples are on: no backend asks for the CPU."""
    return bool(getattr(X, "is_cuda", False)) and backend in ("auto", *DEVICE_BACKENDS)


def check_device_data(learner: Any, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """What scikit-learn's ``validate_data`` does, for samples that are a tensor: they stay one."""
    from vicinal.kernels.gpu import check_samples  # imports torch

    X = check_samples(X)
    y = np.asarray(column_or_1d(y, warn=True))
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    learner.n_features_in_ = int(X.shape[1])
    if hasattr(learner, "feature_names_in_"):
        del learner.feature_names_in_  # of an earlier fit
    return X, y
