"""The objective as a loss for deep networks: the embedding takes the place of X Lᵀ.

Needs PyTorch: ``pip install 'vicinal[deep]'``. ``import vicinal`` does not import this package.
"""

try:
    import torch as _torch  # noqa: F401  (only to say clearly that it is missing)
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "vicinal.deep needs PyTorch: pip install 'vicinal[deep]'", name="torch"
    ) from error

from vicinal.deep.estimator import DeepANN, DeepANNRegressor
from vicinal.deep.loss import ANNLoss, cross_batch_memory
from vicinal.deep.network import embed
from vicinal.deep.number_loss import MLKRLoss

__all__ = ["ANNLoss", "DeepANN", "DeepANNRegressor", "MLKRLoss", "cross_batch_memory", "embed"]
