"""
A learned metric in a vector index
==================================

Vector stores (FAISS, pgvector, and others) search by Euclidean distance. A learned
metric *is* a Euclidean distance, after one linear map: store ``transform(X)``, ask with
``transform(query)``. Here FAISS does the search; the neighbors are those of the model,
and the index needs 10 numbers per row instead of 64.
"""

# %%
# For PostgreSQL with pgvector the same map is applied before ``INSERT`` and in the
# query: ``ORDER BY embedding <-> $1 LIMIT 5``.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

import vicinal as vc

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)
learner = vc.NCA(n_components=10, max_iter=60, tol=1e-3).fit(X_train[:700], y_train[:700])
stored, asked = (learner.transform(part).astype(np.float32) for part in (X_train, X_test))

try:
    import faiss

    path = Path(tempfile.mkdtemp()) / "digits.faiss"
    vc_index = faiss.IndexFlatL2(10)
    vc_index.add(stored)
    faiss.write_index(vc_index, str(path))
    rows = faiss.read_index(str(path)).search(asked, 5)[1]
    print(f"FAISS index of {path.stat().st_size / 1000:.0f} kB")
except ImportError:
    rows = NearestNeighbors(n_neighbors=5).fit(stored).kneighbors(asked, return_distance=False)
    print("faiss is not installed: scikit-learn searches instead")

raw = NearestNeighbors(n_neighbors=5).fit(X_train).kneighbors(X_test, return_distance=False)
same = {
    name: (y_train[r] == y_test[:, None]).mean()
    for name, r in {"64 pixels": raw, "10 learned": rows}.items()
}
print(
    ", ".join(
        f"{name}: {share:.1%} of the neighbors show the same digit" for name, share in same.items()
    )
)

# %%
# A few queries (left) with what the index returns.

fig, axes = plt.subplots(4, 6, figsize=(6, 4.2))
for line, i in zip(axes, np.linspace(0, len(asked) - 1, 4, dtype=int), strict=True):
    for ax, image in zip(line, [X_test[i], *X_train[rows[i]]], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    line[0].set_facecolor("C4")
    for side in ("left", "right", "top", "bottom"):
        line[0].spines[side].set(color="C1", linewidth=2, visible=True)
plt.show()
