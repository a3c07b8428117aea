"""BoostMetric (Shen, Kim, Wang, van den Hengel 2009, 2012): boosted rank-one matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import brentq, nnls

from vicinal._typing import FloatArray, IndexArray
from vicinal.learners.descent import FitCallback, fit_callback
from vicinal.learners.fit_input import FitInput
from vicinal.learners.parameters import (
    COUNT,
    NOT_NEGATIVE,
    OneOf,
    ParameterConstraints,
    check_n_components,
)
from vicinal.learners.rank_one_metrics import (
    CONSTRAINTS,
    Composed,
    MarginLoss,
    TripletData,
    TripletSums,
    compose,
    exponential,
    logistic,
    store_composed,
    triplet_data,
)
from vicinal.learners.weakly_supervised import TripletLearner
from vicinal.solvers import Progress
from vicinal.supervision import Triplets

SEPARATED = -1.0
"""ln Σ exp(−ρ) at which every triplet holds by a margin of 1: from here on M need only grow."""
AT_ONCE = 16
"""Bases that a corrective round may try at once."""
RIDGE = 1e-10
"""Added to the curvature, relative to its trace: bases may be all but equal."""
MAX_NEWTON = 50


class BoostingLoss(NamedTuple):
    """A smooth loss of margins, and its second derivative diag(c(u)) − [shares] u uᵀ."""

    value_and_weights: MarginLoss
    curvature: Callable[[FloatArray], FloatArray]
    shares: bool
    """Whether the weights u sum to one."""


LOSSES = {
    "exponential": BoostingLoss(exponential, lambda u: u, shares=True),
    "logistic": BoostingLoss(logistic, lambda u: u * (1.0 - u), shares=False),
}


class Boosting:
    """F(w) = loss(ρ(M)) + v Σ w, M = Σ_k w_k ξ_k ξ_kᵀ, and the state of its minimization."""

    def __init__(self, sums: TripletSums, loss: BoostingLoss, v: float) -> None:
        self._sums, self._loss, self._v = sums, loss, v
        d = sums.X.shape[1]
        self.bases: FloatArray = np.empty((0, d))
        self.weights: FloatArray = np.empty(0)
        self.margins: FloatArray = np.zeros(sums.n_triplets)
        self.value, self._u = self._evaluate(self.margins, self.weights)

    @property
    def separated(self) -> bool:
        return self._loss.shares and self.value - self._v * self.weights.sum() <= SEPARATED

    def leading(self) -> tuple[float, FloatArray]:
        """λ, the leading eigenvalue of A = Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ).

        With it the eigenvectors ξ (k, d) of the leading eigenvalues above v, leading one first.
        """
        d = self.bases.shape[1]
        values, vectors = eigh(
            self._sums.scatter(self._u), subset_by_index=[max(0, d - AT_ONCE), d - 1]
        )
        return float(values[-1]), vectors.T[values > self._v][::-1]

    def add(self, xi: FloatArray) -> None:
        """Add w ξξᵀ with the w that minimizes F along it."""
        h = self._sums.margins(xi[None])
        w = self._line_search(h)
        self._move(np.append(self.weights, w), np.vstack([self.bases, xi]), self.margins + w * h)

    def correct(self, candidates: FloatArray, tol: float) -> None:
        """Minimize F over all weights w ≥ 0, those of further candidates too, to within tol.

        Newton's method, its quadratic models minimized over w ≥ 0; bases of weight zero are
        dropped. The trace may at most double: where few bases separate all triplets by a hair's
        breadth, F falls for ever along them, and better bases are to come.
        """
        most = 2.0 * float(self.weights.sum())
        self.bases = np.vstack([self.bases, candidates])
        self.weights = np.append(self.weights, np.zeros(len(candidates)))
        if len(self.weights) == 0:  # the line search found no weight worth having
            return
        for _ in range(MAX_NEWTON):
            try:
                step, slope = self._newton_step()
            except (np.linalg.LinAlgError, RuntimeError):  # a curvature beyond the arithmetic
                return
            if slope >= -tol or self.weights.sum() > 0.9 * most or self.separated:
                return
            if not self._descend(step, most):
                return

    def shrink_to_separated(self) -> None:
        """Scale M down to where the loss is just SEPARATED; F falls with its scale for ever."""

        def excess(scale: float) -> float:
            return self._evaluate(scale * self.margins, 0.0 * self.weights)[0] - SEPARATED

        scale = 1.0 if excess(1.0) >= 0 else float(brentq(excess, 0.0, 1.0))
        self._move(scale * self.weights, self.bases, scale * self.margins)

    def _evaluate(self, margins: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        loss, u = self._loss.value_and_weights(margins)
        return loss + self._v * float(weights.sum()), u

    def _move(self, weights: FloatArray, bases: FloatArray, margins: FloatArray) -> None:
        active = weights > 0
        self.weights, self.bases, self.margins = weights[active], bases[active], margins
        self.value, self._u = self._evaluate(margins, self.weights)

    def _line_search(self, h: FloatArray) -> float:
        """The root w of ∂F/∂w = v − Σ_r u_r(ρ + w h) h_r, which increases in w."""

        def slope(w: float) -> float:
            _, u = self._loss.value_and_weights(self.margins + w * h)
            return self._v - float(u @ h)

        largest = float(np.abs(h).max())
        if largest == 0 or slope(0.0) >= 0:
            return 0.0
        high = 1.0 / largest
        while slope(high) < 0:
            high *= 2.0
            if self._loss.shares and self._evaluate(self.margins + high * h, h[:0])[0] <= SEPARATED:
                return high
        return float(brentq(slope, 0.0, high, xtol=1e-12 * high, rtol=1e-12))

    def _newton_step(self) -> tuple[FloatArray, float]:
        """From w to the minimum of F's quadratic model over w ≥ 0, and the slope of F along it.

        With the curvature Q = RᵀR, the model is ½‖R w′ − (R w − R⁻ᵀ∇F)‖² up to a constant.
        """
        gain, Q = self._sums.moments(self.bases, self._u, self._loss.curvature(self._u))
        if self._loss.shares:
            Q -= np.outer(gain, gain)
        gradient = self._v - gain
        Q[np.diag_indices_from(Q)] += RIDGE * max(np.trace(Q), np.finfo(float).tiny)
        R = cholesky(Q)
        target = R @ self.weights - solve_triangular(R, gradient, trans="T")
        step = nnls(R, target, maxiter=100 * len(Q))[0] - self.weights
        return step, float(gradient @ step)

    def _descend(self, step: FloatArray, most: float) -> bool:
        """Move along the step, halved until F decreases; whether it ever did."""
        for _ in range(40):
            weights = np.maximum(self.weights + step, 0.0)  # against rounding
            if weights.sum() <= most:
                margins = self._sums.margins(compose(weights, self.bases))
                if self._evaluate(margins, weights)[0] < self.value:
                    self._move(weights, self.bases, margins)
                    return True
            step = 0.5 * step
        return False


NEGLIGIBLE = 1e-3
"""Less than this part of ``tol``: F no longer decreases."""


class BoostMetric(TripletLearner):
    r"""BoostMetric: a positive semidefinite metric, boosted from matrices of rank one.

    Minimized over positive semidefinite M is

    .. code-block:: text

        F(M) = ln Σ_r exp(−ρ_r) + v tr M                       (loss="exponential")
        F(M) = Σ_r ln(1 + exp(−ρ_r)) + v tr M                  (loss="logistic")

        ρ_r = d_il − d_ij,  d_ij = (x_i − x_j)ᵀ M (x_i − x_j),  for triplets r = (i, j, l)

    where i ought to be nearer to j than to l. From labels, these are the nearest ``n_similar`` of
    the class × the nearest ``n_dissimilar`` of the others for every sample. With the triplets'
    weights u = −∂loss/∂ρ and A = Σ_r u_r (x_il x_ilᵀ − x_ij x_ijᵀ), the steepest matrix of rank one
    is ξξᵀ, ξ the leading eigenvector of A. If its eigenvalue is at most v, no ξξᵀ lowers F.

    Parameters
    ----------
    v : float, default=1e-7
        Price of the trace.
    variant : {"corrective", "stagewise"}, default="corrective"
        "stagewise" (2009) adds w ξξᵀ with the best w and never touches it again. As earlier
        weights are never reduced, it can stop above the minimum. "corrective" (2012) finds all
        weights anew in every round, which leads to the minimum; a round here offers up to 16
        leading eigenvectors at once, which takes far fewer rounds than one.
    loss : {"exponential", "logistic"}, default="exponential"
    n_similar, n_dissimilar : int, default=3
        Neighbors of either kind that make a sample's triplets, Euclidean in the space of X.
    rescale : bool, default=True
        Measure the data in units of their root mean square distance from the mean, so that v does
        not depend on the features' units. False takes the data as they are.
    n_components : int, default=None
        Rows of L: that many leading eigenvectors of the learned M, the best approximation of this
        rank. None gives as many as M needs.
    max_iter : int, default=500
        Rounds: matrices of rank one that "stagewise" adds.
    tol : float, default=1e-6
        Stop when λ, the leading eigenvalue of A, is so near to v that (λ − v) tr M, to first order
        what F can still gain, is below this part of F at M = 0 (of 1 where that is less), or when
        a round gains less than a thousandth of that.
    callback : callable, default=None
        Called after every iteration with ``n_iter``, ``objective``, ``step`` and ``components`` of
        the run; a true return value stops it.
    verbose : int, default=0
        1 logs every tenth iteration, 2 every one, on the logger "vicinal".

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L with M = LᵀL.
    weights_, bases_ : ndarray of shape (n_active,) and (n_active, n_features)
        The positive w_k and their ξ_k: M = Σ_k w_k ξ_k ξ_kᵀ / scale_².
    scale_ : float
        The unit of the data (1 without ``rescale``).
    eigenvalues_ : ndarray
        λ before every round, and at the end.
    objective_ : float
        F at M.
    history_ : ndarray
        F of the start M = 0 and after every round.
    n_iter_, converged_, stop_reason_
        How the run ended: "gradient" (λ is v), "decrease" (F no longer decreases), "separated"
        (every triplet holds by a margin of 1, and a longer M would lower the exponential loss for
        ever), "max_iter", "callback".
    n_excluded_ : int
        Samples that are alone in their class and hence anchor no triplet (after ``fit``).
    classes_ : ndarray
        The class labels (after ``fit``).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Shen, Kim, Wang, van den Hengel: Positive Semidefinite Metric Learning with Boosting. NIPS 2009.

    Shen, Kim, Wang, van den Hengel: Positive Semidefinite Metric Learning Using Boosting-like
    Algorithms. JMLR 13, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import vicinal as vc
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), vc.BoostMetric(), KNeighborsClassifier(3))
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    _constraints: ClassVar[ParameterConstraints] = {
        **CONSTRAINTS,
        "v": NOT_NEGATIVE,
        "variant": OneOf(("corrective", "stagewise")),
        "loss": OneOf(tuple(LOSSES)),
        "max_iter": COUNT,
    }

    def __init__(
        self,
        v: float = 1e-7,
        *,
        variant: str = "corrective",
        loss: str = "exponential",
        n_similar: int = 3,
        n_dissimilar: int = 3,
        rescale: bool = True,
        n_components: int | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        callback: FitCallback | None = None,
        verbose: int = 0,
    ) -> None:
        self.v = v
        self.variant = variant
        self.loss = loss
        self.n_similar = n_similar
        self.n_dissimilar = n_dissimilar
        self.rescale = rescale
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose

    def _learn_triplets(
        self, given: FitInput, triplets: Triplets, codes: IndexArray | None
    ) -> None:
        check_n_components(self.n_components, given.n_features)
        data = triplet_data(given.X, triplets, codes, self.rescale)
        found, eigenvalues = self._boost(data)
        store_composed(
            self,
            given,
            found,
            scale=data.scale,
            n_components=self.n_components,
            tol=self.tol,
            eigenvalues_=eigenvalues,
        )

    def _boost(self, data: TripletData) -> tuple[Composed, FloatArray]:
        """The metric, and the leading eigenvalue before every round."""
        boosting = Boosting(data.sums, LOSSES[self.loss], float(self.v))
        report = fit_callback(
            type(self).__name__, self.callback, self.verbose, 0, lambda L: L / data.scale
        )
        history, eigenvalues = [boosting.value], []
        tol = self.tol * max(1.0, boosting.value)  # F of M = 0 says what is much
        try:
            reason = ""
            while not reason:
                eigenvalue, directions = boosting.leading()
                eigenvalues.append(eigenvalue)
                reason = self._stop_reason(boosting, eigenvalue, history, tol)
                if not reason:
                    self._add(boosting, directions, tol)
                    history.append(boosting.value)
                    reason = _report(report, boosting, len(history) - 1)
        except KeyboardInterrupt:
            reason = "interrupted"
        n_iter, steps = len(history) - 1, np.array(history)
        found = Composed(boosting.weights, boosting.bases, n_iter, reason, steps)
        return found, np.array(eigenvalues)

    def _add(self, boosting: Boosting, directions: FloatArray, tol: float) -> None:
        boosting.add(directions[0])
        if self.variant == "corrective" and not boosting.separated:
            boosting.correct(directions[1:], NEGLIGIBLE * tol)
        if boosting.separated:
            boosting.shrink_to_separated()

    def _stop_reason(
        self, boosting: Boosting, eigenvalue: float, history: list[float], tol: float
    ) -> str:
        """The reason to stop, or None."""
        trace = float(boosting.weights.sum())
        if eigenvalue <= self.v or (trace > 0 and (eigenvalue - self.v) * trace <= tol):
            return "gradient"
        if boosting.separated:
            return "separated"
        if len(history) > 1 and history[-2] - history[-1] <= NEGLIGIBLE * tol:
            return "decrease"
        return "max_iter" if len(history) > self.max_iter else ""


def _report(
    report: Callable[[Progress], bool | None] | None, boosting: Boosting, n_iter: int
) -> str:
    if report is None:
        return ""
    L = compose(boosting.weights, boosting.bases)
    step = float(boosting.weights[-1]) if len(boosting.weights) else 0.0
    return "callback" if report(Progress(n_iter, boosting.value, L, step)) else ""
