"""The objective J on a device: parameters and gradients travel, nothing of size n does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal._typing import FloatArray, IndexArray
from vicinal.kernels.contract import Comparisons
from vicinal.objective.losses import LOSSES, Loss, get_loss
from vicinal.objective.neighbor_objective import NeighborObjective, check_exponents
from vicinal.objective.neighbor_sets import compare
from vicinal.objective.parametrization import Factor, Metric, Parametrization

if TYPE_CHECKING:
    from vicinal.kernels.gpu.gpu_kernel import GpuKernel

Tensor: TypeAlias = Any
"""A torch tensor; this module does not import torch, its kernel does."""
PROMISED = 1e-5
"""The relative error of a gradient in "high" precision."""


@dataclass(frozen=True)
class DeviceObjective:
    """The same J as :class:`~vicinal.objective.neighbor_objective.NeighborObjective`.

    Its arrays of n rows are tensors on the kernel's device. Where a process group has been joined
    each rank takes a range of rows, and value and gradient are summed over all ranks.
    """

    X: Tensor
    """(n, d) the samples, sorted by class, centered."""
    comparisons: Comparisons
    kernel: GpuKernel
    parametrization: Parametrization
    loss: Loss
    alpha: float
    gamma: float
    shift: Tensor
    """(n,) what is added to s_i − t_i."""
    weights: Tensor
    """(n,) what each sample counts as an anchor."""
    pull: FloatArray
    """(d, d) λ Σ_i w_i Σ_{j∈S_i} X_ij, on the host."""

    @property
    def n_rows(self) -> int:
        return len(self.comparisons.anchors)

    def project(self, params: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        return self.parametrization.project(params)

    def value_and_gradient(
        self, params: FloatArray, rows: IndexArray | None = None
    ) -> tuple[float, FloatArray]:
        """J and ∂J/∂params; with ``rows``, unbiased estimates from these of the anchors."""
        kernel = self.kernel
        anchors = kernel.anchors
        if rows is not None:
            anchors = kernel.tensor(np.sort(self.comparisons.anchors[rows]))
        L = kernel.tensor(np.asarray(self.parametrization.factor(params), dtype=np.float64))
        kernel.ranks.check_agreement(L)
        Z = self.X.double() @ L.T
        pull, pull_gradient = self.parametrization.linear(params, self.pull)
        value, gradient = self._evaluate(Z, anchors)
        # A mini-batch is an estimate: its noise is larger than any rounding.
        if rows is None:
            size = float(np.linalg.norm(gradient + pull_gradient) * np.linalg.norm(params))
            level = self._level(Z, PROMISED * size / abs(value) if value else np.inf)
            if level > 0:
                value, gradient = self._evaluate(Z, anchors, level)
        return value + pull, (gradient + pull_gradient).astype(params.dtype, copy=False)

    def _level(self, Z: Tensor, tolerable: float) -> int:
        """The lowest level of precision whose errors are tolerable, or the highest there is.

        An error ε of the exponents is one of about εJ/‖θ‖ of the gradient.
        """
        errors = self.kernel.exponent_errors(Z, self.alpha)
        return next((k for k, error in enumerate(errors) if error <= tolerable), len(errors) - 1)

    def _evaluate(self, Z: Tensor, anchors: Tensor, level: int = 0) -> tuple[float, FloatArray]:
        """Σ_i w_i ℓ(z_i) and its gradient, summed over all ranks."""
        kernel, ranks = self.kernel, self.kernel.ranks
        scale = self.n_rows / len(anchors)
        share, everybody = ranks.share(kernel.n), anchors
        if share is not None:
            anchors = anchors[(anchors >= share[0]) & (anchors < share[1])]
        sweep = kernel.evaluate(Z, self.alpha, level=level)
        s, t = sweep.soft_averages(anchors)
        z = (s - t + self.shift[anchors]) / self.gamma
        w = scale * self.weights[anchors]
        losses, slopes = self._loss(z)
        slope = w * slopes / self.gamma
        all_slopes = ranks.sum(kernel.slopes(anchors, slope, -slope))
        sweep.share_state(anchors, everybody)

        by_metric = isinstance(self.parametrization, Metric)
        laplacian = sweep.laplacian(self.X.double() if by_metric else None, all_slopes, share)
        X = self.X if share is None else self.X[slice(*share)]
        gradient = ranks.sum((1.0 if by_metric else 2.0) * laplacian.T @ X.double())
        value = float(ranks.sum((w * losses).sum()))
        return value, gradient.cpu().numpy()

    def _loss(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """ℓ(z) and ℓ′(z): on the device, but for a user's own, whose functions know NumPy."""
        if LOSSES.get(self.loss.name) is self.loss:
            value, slope = self.kernel.loss(self.loss.name)
            return value(z), slope(z)
        host = z.cpu().numpy()
        return self.kernel.tensor(self.loss.value(host)), self.kernel.tensor(self.loss.slope(host))


def on_device(objective: NeighborObjective) -> DeviceObjective:
    """The same objective where its kernel is: all arrays of n rows are moved, once."""
    kernel: Any = objective.kernel
    moved = {name: kernel.tensor(getattr(objective, name)) for name in ("X", "shift", "weights")}
    return DeviceObjective(**{**vars(objective), **moved})


def device_problem(
    X: Tensor,
    y: Tensor | NDArray[Any],
    *,
    alpha: float = 1.0,
    gamma: float = 1.0,
    loss: Any = "hinge",
    precision: str = "high",
) -> DeviceObjective:
    """J as a function of L, for samples that are on a device already; they are never copied off it.

    Parameters
    ----------
    X : (n, d) tensor of finite numbers on any device; in float64 unless it is float32
    y : (n,) tensor or array of class labels
    alpha, gamma, loss : as in :class:`~vicinal.ANN`; every class is compared completely
    precision : "high" or "fast"

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> X, y = torch.tensor([[0.0], [1.0], [3.0], [4.0]]), torch.tensor([0, 0, 1, 1])
    >>> value, gradient = device_problem(X, y, loss="linear").value_and_gradient(np.eye(1))
    >>> gradient.shape
    (1, 1)
    """
    from vicinal.kernels.gpu import GpuKernel, check_samples

    check_exponents(alpha, gamma)
    X, comparisons = _sorted_by_class(check_samples(X), y)
    each = X.double()[:, 0]  # (n,) of the right kind
    return DeviceObjective(
        X=X,
        comparisons=comparisons,
        kernel=GpuKernel(comparisons, X.device, precision),
        parametrization=Factor(),
        loss=get_loss(loss),
        alpha=float(alpha),
        gamma=float(gamma),
        shift=each.new_zeros(len(X)),
        weights=each.new_ones(len(X)),
        pull=np.zeros((X.shape[1], X.shape[1])),
    )


def _sorted_by_class(X: Tensor, y: Tensor | NDArray[Any]) -> tuple[Tensor, Comparisons]:
    """(n, d) the samples sorted by class, centered; every class is compared completely."""
    if not hasattr(y, "device") or not hasattr(y, "unique"):
        y = np.asarray(y)
    if tuple(y.shape) != (len(X),):
        raise ValueError(
            f"y must be one label for each of the {len(X)} rows of X, got shape {tuple(y.shape)}"
        )
    if bool((y != y).any()):
        raise ValueError("y contains NaN; drop the samples without a label first")
    if isinstance(y, np.ndarray):
        integers = X[:0, 0].long()  # where X is; floats would merge the codes of many classes
        y = integers.new_tensor(np.unique(y, return_inverse=True)[1])
    y = y.to(X.device)
    sizes = y.unique(return_counts=True)[1].cpu().numpy()
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = X[y.argsort(stable=True)]
    return X - X.mean(0), compare(np.empty((0, 0)), offsets)
