"""RCA and RCA_Supervised."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from vicinal._typing import FloatArray, IndexArray, Seed
from vicinal.compat.metric_learn.base_metric import MahalanobisMixin
from vicinal.compat.metric_learn.constraints import Constraints
from vicinal.compat.metric_learn.deprecated import DEPRECATED, renamed
from vicinal.compat.metric_learn.starts import check_rank
from vicinal.compat.metric_learn.tuple_input import Preprocessor
from vicinal.exceptions import warn_user
from vicinal.learners import rca as native
from vicinal.learners.parameters import COUNT


def _learn(estimator: RCA | RCA_Supervised, X: FloatArray, chunks: IndexArray) -> None:
    learner = native.RCA(check_rank(estimator.n_components, X.shape[1]))
    estimator._learn(learner, lambda: learner.fit_chunks(X, chunks))
    if learner.regularized_:
        warn_user(
            "The inner covariance matrix is not invertible, so the transformation matrix may "
            "contain Nan values. You should remove any linearly dependent features and/or reduce "
            "the dimensionality of your input, for instance using `sklearn.decomposition.PCA` as a "
            "preprocessing step.",
            UserWarning,
        )


class RCA(TransformerMixin, MahalanobisMixin):
    """Relevant Components Analysis: :class:`vicinal.RCA`.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features.
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    """

    _needs_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        preprocessor: ArrayLike | Preprocessor | None = None,
    ) -> None:
        super().__init__(preprocessor)
        self.n_components = n_components

    def fit(self, X: object, chunks: object) -> Self:
        """Learn from samples and the chunk of each (n_samples,); −1 is in none."""
        samples, given = self._prepare_inputs(X, chunks, ensure_min_samples=2)
        _learn(self, samples, given.astype(int))
        return self


class RCA_Supervised(TransformerMixin, MahalanobisMixin):
    """Relevant Components Analysis of chunks that are drawn from class labels.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features.
    n_chunks : int, default=100
        How many chunks to draw.
    chunk_size : int, default=2
        Samples per chunk.
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    random_state : int, RandomState or None, default=None
        For the chunks.
    num_chunks : deprecated
        The old name of ``n_chunks``.
    """

    _needs_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        n_chunks: int = 100,
        chunk_size: int = 2,
        preprocessor: ArrayLike | Preprocessor | None = None,
        random_state: Seed = None,
        num_chunks: int | str = DEPRECATED,
    ) -> None:
        super().__init__(preprocessor)
        self.n_components = n_components
        self.n_chunks = renamed("num_chunks", num_chunks, "n_chunks", n_chunks)
        self.chunk_size = chunk_size
        self.random_state = random_state
        self.num_chunks = DEPRECATED

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels, −1 where unknown."""
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        COUNT.check("n_chunks", self.n_chunks)
        n_chunks = int(self.n_chunks)
        chunks = Constraints(labels).chunks(n_chunks, self.chunk_size, self.random_state)
        if n_chunks * (self.chunk_size - 1) < samples.shape[1]:
            warn_user(
                "Due to the parameters of RCA_Supervised, the inner covariance matrix is not "
                "invertible, so the transformation matrix will contain Nan values. Increase the "
                "number or size of the chunks to correct this problem.",
                UserWarning,
            )
        _learn(self, samples, chunks)
        return self
