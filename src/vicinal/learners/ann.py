"""Adaptive Nearest Neighbor: the general framework as one learner."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from vicinal._typing import ClassWeight, Seed
from vicinal.learners.descent import FitCallback
from vicinal.learners.neighbor_fit import Configuration, check_configuration
from vicinal.learners.neighbor_learner import NeighborLearner


class ANN(NeighborLearner):
    r"""Adaptive Nearest Neighbor metric learning.

    Minimizes, over positive semidefinite M = LᵀL,

    .. code-block:: text

        J = Σ_i w_i ℓ((s_i − t_i)/γ) + λ Σ_i w_i Σ_{j∈S_i} d_ij,     d_ij = ‖L(x_i − x_j)‖²

        s_i = b(α; {d_ij : j ∈ S_i})      soft average of the distances to similar samples
        t_i = b(1; {d_il : l ∈ D_i})      soft average of the distances to dissimilar ones

    with b(γ; a) = −(1/γ) ln mean exp(−γ a), which runs from the maximum (γ = −∞) over the mean
    (γ = 0) to the minimum (γ = +∞) of a. α > 0 is the paper's ANN⁺, α < 0 its ANN⁻, convex in M.

    Parameters
    ----------
    alpha : float, default=1.0
        Exponent of the similar side: which of a sample's own class count. Any real number or
        ±inf. Positive: the near ones. Negative: the far ones among ``similar``.
    gamma : float, default=1.0
        How sharply the loss reacts to the margin s − t. Positive.
    loss : {"hinge", "squared_hinge", "logistic", "linear", "sigmoid"} or pair, default="hinge"
        ℓ, increasing in z. A pair (value, slope) of elementwise functions is accepted too.
    similar : {"auto", "all"}, int or array-like, default="auto"
        S_i: all of the class, the k nearest of it (Euclidean, in the space of X), or given lists
        (n_samples, k) of row indices, negative entries being padding. "auto" is 10 for alpha < 0
        and "all" otherwise.
    dissimilar : "all", int or array-like, default="all"
        D_i: all samples of other classes, the k nearest of them, or given lists.
    regularization : "auto" or float, default="auto"
        λ; "auto" is 1/n².
    plain : bool, default=False
        Use soft averages without the 1/n, as NCA does.
    refresh_every : int, default=None
        Choose the nearest neighbors anew, under the metric learned so far, every so many
        iterations. None keeps those of the start.
    n_components : int, default=None
        Rows of L; None keeps all features.
    init : {"auto", "identity", "pca", "lda", "random", "paper"} or array, default="auto"
        Where to start. "auto" is the identity (for fewer components LDA or PCA directions),
        scaled by ``perplexity``, as "pca", "lda" and "random" are. "identity", "paper"
        (M = I/√n) and arrays of shape (n_components, n_features) are taken as they are.
    perplexity : float, default=20.0
        Mean effective number of neighbors of a sample at the start.
    solver : {"auto", "lbfgs", "pgd", "apg", "sgd"}, default="auto"
        "lbfgs" minimizes over L; "pgd" is the paper's Algorithm 1 over M, "apg" its accelerated
        sister for convex problems (alpha < 0); "sgd" takes mini-batches of samples. "auto" is
        "lbfgs" up to 50,000 samples, beyond that "sgd"; ``solver_`` says what was used. Where the
        objective has kinks (the hinge, an infinite alpha), "lbfgs" and "apg" smooth them less and
        less; "pgd" and "sgd" do not, and end above the minimum. Where it is convex or has kinks,
        "lbfgs" descends in coordinates in which the features are about uncorrelated.
    max_iter : int, default=200
        Iterations (epochs of "sgd").
    tol : float, default=1e-5
        Stop when the objective's mean relative decrease per iteration, over 5 of them, or the
        relative size of the gradient is below this.
    backend : {"auto", "numba", "numpy", "cuda", "cuda:fast"}, default="auto"
        What computes it; "numpy" is the slow, readable reference, "cuda" needs ``vicinal[gpu]``.
    class_weight : "balanced", dict or None, default=None
        Weight of every class in the objective, as in scikit-learn.
    batch_size : int, default=256
        Samples per mini-batch of "sgd".
    n_references : int or "auto", default="auto"
        Samples that a mini-batch of "sgd" is compared with, drawn anew each time. "auto" is
        8,192, or all where there are fewer.
    warm_start : bool, default=False
        Start from the ``components_`` of the previous fit.
    callback : callable, default=None
        Called after every iteration with ``n_iter``, ``objective``, ``step`` and ``components``
        of the run; a true return value stops it.
    verbose : int, default=0
        1 logs every tenth iteration, 2 every one, on the logger "vicinal".
    random_state : int, RandomState or None, default=None
        For init="random" and solver="sgd".

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        L.
    objective_ : float
        J at ``components_``, regularizer included.
    history_ : ndarray
        J of the start and of every accepted iterate.
    n_iter_, converged_, stop_reason_, solver_
        How the run ended: "stationary", "gradient", "decrease" or "step" (converged); "stalled",
        "unbounded", "max_iter", "callback". Where the objective is convex, or has kinks, "lbfgs"
        and "apg" end as "stationary" only where the smallest subgradient proves the minimum (of a
        convex objective; else a stationary point); "pgd" has no such proof.
    n_excluded_ : int
        Samples without a similar or a dissimilar one, left out of the objective.
    classes_ : ndarray
        The class labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Song, Han: Adaptive Nearest Neighbor: A General Framework for Distance Metric Learning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), vc.ANN(n_components=2), KNeighborsClassifier())
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        *,
        loss: Any = "hinge",
        similar: str | int | ArrayLike = "auto",
        dissimilar: str | int | ArrayLike = "all",
        regularization: float | str = "auto",
        plain: bool = False,
        refresh_every: int | None = None,
        n_components: int | None = None,
        init: str | ArrayLike = "auto",
        perplexity: float = 20.0,
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        backend: str = "auto",
        class_weight: ClassWeight = None,
        batch_size: int = 256,
        n_references: int | str = "auto",
        warm_start: bool = False,
        callback: FitCallback | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.loss = loss
        self.similar = similar
        self.dissimilar = dissimilar
        self.regularization = regularization
        self.plain = plain
        self.refresh_every = refresh_every
        super().__init__(
            n_components=n_components,
            init=init,
            perplexity=perplexity,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            backend=backend,
            class_weight=class_weight,
            batch_size=batch_size,
            n_references=n_references,
            warm_start=warm_start,
            callback=callback,
            verbose=verbose,
            random_state=random_state,
        )

    def _configuration(self) -> Configuration:
        return check_configuration(
            alpha=self.alpha,
            gamma=self.gamma,
            loss=self.loss,
            plain=self.plain,
            similar=self.similar,
            dissimilar=self.dissimilar,
            regularization=self.regularization,
            refresh_every=self.refresh_every,
        )
