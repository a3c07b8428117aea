"""Effective neighbors and further rows of a committee that votes for classes."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from vicinal._typing import FloatArray, IndexArray, LabelArray
from vicinal.automatic.changing_rows import known_codes, rows_added
from vicinal.automatic.voting_model import VotingModel
from vicinal.voting.row_weights import VotingRows, class_prior


class ClassVotingModel(VotingModel):
    """A committee that votes for classes."""

    classes_: NDArray[np.generic]
    y_fit_: IndexArray
    exponent_: float = 1.0  # missing in models stored before there was calibration
    calibration_error_: FloatArray | None = None

    def effective_neighbors(self, X: ArrayLike) -> FloatArray:
        """Number of neighbors that the metrics look at, (n,): the K of the paper's Lemma 3.

        The mean of the K smallest squared distances to the predicted class equals their soft
        average at exponent 1, at which the metrics were learned; averaged over the members.
        """
        queries, committee = self.unfold(X), self._committee
        winners = committee.predictions(queries).argmax(axis=1)
        return committee.effective_neighbors(queries, winners, self.y_fit_)

    def add_rows(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Let further rows vote; the metrics stay as they are.

        The model is then the same as one that was prepared with all these rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Columns as in :meth:`fit`; ``encoder_`` makes numbers of them.
        y : array-like of shape (n_rows,)
            Their classes, each of which the fit has seen.
        sample_weight : array-like of shape (n_rows,), optional
            What each row counts, where the mean training row of :meth:`fit` counts 1. By
            default as much as the mean row of its class now.

        Returns
        -------
        self

        Notes
        -----
        They are the last rows of ``X_fit_``, which :meth:`kneighbors` counts from 0. ``prior_``
        becomes the weighted share of each class among all rows; the weights of the others stay.
        What tuning has found (``chosen_``, ``best_score_``, ``oof_proba_``, …) stays too: when many
        rows have come, :meth:`fit` may find better metrics.
        """
        X, votes = self._queries(X), known_codes(self.classes_, y)
        self._let_vote(rows_added(self, X, votes, sample_weight))
        return self

    def _let_vote(self, voters: dict[str, LabelArray]) -> None:
        codes, weights = voters["y_fit_"], voters["row_weights_"]
        prior = class_prior(codes, weights, len(self.classes_))
        n = {"n_samples_fit_": len(codes)}
        self.__dict__ = {**vars(self), **voters, **n, "prior_": prior}

    def _voters(self) -> VotingRows:
        return VotingRows(self.y_fit_, self.row_weights_, self.prior_)

    def _strength(self) -> float:
        return self.exponent_

    def _labels(self, rows: IndexArray) -> NDArray[np.generic]:
        return self.classes_[self.y_fit_[rows]]

    def _stated(self, p: FloatArray) -> tuple[object, dict[object, float]]:
        shares = dict(zip(self.classes_.tolist(), p.tolist(), strict=True))
        return self.classes_[np.argmax(p)], shares

    def _effective(self, queries: FloatArray, weights: csr_array, P: FloatArray) -> FloatArray:
        return self._committee.effective_neighbors(queries, P.argmax(axis=1), self.y_fit_)
