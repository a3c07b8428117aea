"""LFDA."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin

from vicinal.compat.metric_learn.base_metric import MahalanobisMixin
from vicinal.compat.metric_learn.starts import check_rank
from vicinal.compat.metric_learn.tuple_input import Preprocessor
from vicinal.exceptions import warn_user
from vicinal.learners import lfda as native
from vicinal.learners.parameters import OPTIONAL_COUNT


class LFDA(TransformerMixin, MahalanobisMixin):
    """Local Fisher Discriminant Analysis: :class:`vicinal.LFDA`.

    Parameters
    ----------
    n_components : int, default=None
        Rows of L; None keeps all features.
    k : int, default=None
        Which neighbor of the class gives a sample's scale; None is min(7, n_features − 1).
    embedding_type : {"weighted", "orthonormalized", "plain"}, default="weighted"
        The form of L.
    preprocessor : array-like or callable, default=None
        Where samples are given as indicators.
    """

    _needs_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        k: int | None = None,
        embedding_type: str = "weighted",
        preprocessor: ArrayLike | Preprocessor | None = None,
    ) -> None:
        super().__init__(preprocessor)
        self.n_components = n_components
        self.k = k
        self.embedding_type = embedding_type

    def fit(self, X: object, y: object) -> Self:
        """Learn from samples and their class labels."""
        if self.embedding_type not in native.EMBEDDINGS:
            raise ValueError(f"Invalid embedding_type: {self.embedding_type!r}")
        samples, labels = self._prepare_inputs(X, y, ensure_min_samples=2)
        d = samples.shape[1]
        m = check_rank(self.n_components, d)
        OPTIONAL_COUNT.check("k", self.k)
        k = min(7, d - 1) if self.k is None else int(self.k)
        if k >= d:
            warn_user(f"Chosen k ({k}) too large, using {d - 1} instead.", UserWarning)
            k = d - 1
        learner = native.LFDA(m, n_neighbors=max(k, 1), embedding=self.embedding_type)
        self._learn(learner, lambda: learner.fit(samples, labels))
        return self
