"""NCA: the exact special case α = 1 of the framework."""

from __future__ import annotations

from vicinal.learners.neighbor_fit import Configuration, check_configuration
from vicinal.learners.neighbor_learner import NeighborLearner


class NCA(NeighborLearner):
    """Neighborhood Components Analysis.

    Maximizes Σ_i p_i, the expected number of samples that a stochastic leave-one-out nearest
    neighbor classifies correctly, or minimizes J = Σ_i (1 − p_i), with

    .. code-block:: text

        p_i = Σ_{j∈S_i} e^{−d_ij} / Σ_{k≠i} e^{−d_ik},    d_ij = ‖L(x_i − x_j)‖²

    The same function as scikit-learn's ``NeighborhoodComponentsAnalysis``, without its n×n arrays.
    It is :class:`ANN` with α = γ = 1, the sigmoid loss, plain soft averages and no regularizer.

    Parameters
    ----------
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
        of the run; a true return value stops it. A function of two arguments is
        called as by scikit-learn: with L, flat, and the number of iterations.
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

    References
    ----------
    Goldberger, Roweis, Hinton, Salakhutdinov: Neighbourhood Components Analysis. NIPS 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import vicinal as vc
    >>> X, y = load_iris(return_X_y=True)
    >>> nca = vc.NCA(n_components=2).fit(X, y)
    >>> nca.components_.shape, nca.objective_ < 5
    ((2, 4), True)
    """

    def _configuration(self) -> Configuration:
        return check_configuration(
            alpha=1.0,
            gamma=1.0,
            loss="sigmoid",
            plain=True,
            similar="all",
            dissimilar="all",
            regularization=0.0,
        )
