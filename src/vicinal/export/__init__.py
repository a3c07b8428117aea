"""Learned metrics for other software: ONNX graphs, FAISS indices, plain arrays.

All three hold the transform z = A (x − μ) + b of a fitted model, under which Euclidean distances
are the learned ones; a scaler or a PCA before the learner is part of it.
"""

from vicinal.export.faiss_index import to_faiss
from vicinal.export.transform_files import to_npy, to_onnx

__all__ = ["to_faiss", "to_npy", "to_onnx"]
