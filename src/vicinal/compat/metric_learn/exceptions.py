"""The errors that metric-learn has of its own."""

from __future__ import annotations

from numpy.linalg import LinAlgError


class PreprocessorError(Exception):
    """The preprocessor failed; the message shows its own error."""

    def __init__(self, original_error: Exception) -> None:
        super().__init__(
            f"An error occurred when trying to use the preprocessor: {original_error!r}"
        )


class NonPSDError(LinAlgError):
    """A matrix that should be positive semidefinite is not."""

    def __init__(self) -> None:
        super().__init__("Matrix is not positive semidefinite (PSD).")
