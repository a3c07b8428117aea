"""PNCA: NCA with an exponent on the similar side."""

from __future__ import annotations

from numpy.typing import ArrayLike

from vicinal._typing import ClassWeight, Seed
from vicinal.learners.descent import FitCallback
from vicinal.learners.neighbor_fit import Configuration, check_configuration
from vicinal.learners.neighbor_learner import NeighborLearner


class PNCA(NeighborLearner):
    """NCA with a power: the paper's Eq. 37.

    Maximizes Σ_i p_i, or minimizes J = Σ_i (1 − p_i), with

    .. code-block:: text

        p_i = A_i / (A_i + B_i),   A_i = (Σ_{j∈S_i} e^{−α d_ij})^{1/α},   B_i = Σ_{l∈D_i} e^{−d_il}

    It is :class:`ANN` with the sigmoid loss, plain soft averages, γ = 1 and no regularizer, because
    1 − p_i = σ(s̃_i − t̃_i). With α = 1 it is NCA.

    Parameters
    ----------
    alpha : float, default=1.0
        Exponent of the similar side: the larger, the fewer of a sample's own class count.
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
        "lbfgs" up to 50,000 samples, beyond that "sgd"; ``solver_`` says what was used.
    max_iter : int, default=200
        Iterations (epochs of "sgd").
    tol : float, default=1e-5
        Stop when the objective's mean relative decrease an iteration, over 5 of them, or the
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
        J = Σ_i w_i (1 − p_i) at ``components_``.
    history_ : ndarray
        J of the start and of every accepted iterate.
    n_iter_, converged_, stop_reason_, solver_
        How the run ended: "gradient", "decrease" or "step" (converged), "max_iter", "callback".
    n_excluded_ : int
        Samples without a similar or a dissimilar one, left out of the objective.
    classes_ : ndarray
        The class labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> import vicinal as vc
    >>> X, y = load_wine(return_X_y=True)
    >>> learner = vc.PNCA(alpha=2.0, n_components=2).fit(scale(X), y)
    >>> learner.transform(scale(X)).shape
    (178, 2)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
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
            gamma=1.0,
            loss="sigmoid",
            plain=True,
            similar="all",
            dissimilar="all",
            regularization=0.0,
        )
