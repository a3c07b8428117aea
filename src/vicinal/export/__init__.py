"""Learned metrics for other software: ONNX graphs, plain arrays, FAISS and vector stores.

They hold the transform z = A (x − μ) + b of a fitted model, under which Euclidean distances
are the learned ones; a scaler or a PCA before the learner is part of it.
"""

from vicinal.export.faiss_index import to_faiss
from vicinal.export.transform_files import to_npy, to_onnx
from vicinal.export.vector_stores import STORES, to_vector_store

__all__ = ["STORES", "to_faiss", "to_npy", "to_onnx", "to_vector_store"]
