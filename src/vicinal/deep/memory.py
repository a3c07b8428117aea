"""The memory bank of pytorch-metric-learning around an ANNLoss."""

from __future__ import annotations

from typing import Any

from torch import nn

from vicinal.deep.loss import ANNLoss


def cross_batch_memory(
    loss: ANNLoss, embedding_size: int, memory_size: int = 1024, miner: Any = None
) -> nn.Module:
    """A ``CrossBatchMemory`` of pytorch-metric-learning that takes an :class:`ANNLoss`.

    Anchors of the batch are compared with the embeddings of the last ``memory_size`` samples. That
    package looks a loss up by name in a list of its own losses and refuses all others; nothing
    else keeps this loss from its memory bank.

    Parameters
    ----------
    loss : ANNLoss
    embedding_size : int
        Components of an embedding.
    memory_size : int, default=1024
        Embeddings that are kept; at least a batch.
    miner : callable, optional
        A miner of pytorch-metric-learning, which chooses among the memory.

    Returns
    -------
    module : CrossBatchMemory
        Called with (embeddings, labels), as ``loss`` is.

    Examples
    --------
    >>> import torch
    >>> from vicinal.deep import ANNLoss, cross_batch_memory
    >>> memory = cross_batch_memory(ANNLoss(), embedding_size=2, memory_size=100)
    >>> labels = torch.arange(8) % 4
    >>> for batch in torch.randn(3, 8, 2):
    ...     loss = memory(batch, labels)
    >>> memory.queue_idx
    24
    """
    try:
        from pytorch_metric_learning.losses import CrossBatchMemory
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "cross_batch_memory needs pytorch-metric-learning: pip install pytorch-metric-learning",
            name="pytorch_metric_learning",
        ) from error

    class ANNCrossBatchMemory(CrossBatchMemory):
        @staticmethod
        def supported_losses() -> list[str]:
            return [*CrossBatchMemory.supported_losses(), ANNLoss.__name__]

    return ANNCrossBatchMemory(loss, embedding_size, memory_size=memory_size, miner=miner)
