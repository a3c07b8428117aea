"""
A learned metric in PostgreSQL: a pgvector query
================================================

Vector stores search by Euclidean distance. A learned metric *is* a Euclidean distance,
after one linear map: ``to_vector_store`` writes the mapped rows, and the SQL that asks
for the nearest ones. Here PostgreSQL with pgvector does the search. Its neighbors are
those of the model, and a row takes 10 numbers instead of 64.
"""

# %%
# Learn ten coordinates of the digits, and export the rows. The folder holds the table,
# the query, an index, and a card that says what all of it is.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

import vicinal as vc
from vicinal.export import to_vector_store

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)
learner = vc.NCA(n_components=10, max_iter=60, tol=1e-3).fit(X_train[:700], y_train[:700])

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name) / "digits"
card = to_vector_store(learner, X_train, folder, "pgvector", labels=y_train)
print(sorted(card["files"]))
print((folder / "query.sql").read_text())

# %%
# Load the table into a server, and ask it for the five nearest rows of every test digit.
# The package ``pgserver`` carries PostgreSQL with pgvector; where it is not installed,
# scikit-learn searches the same coordinates instead. With a server of your own it is
# ``psql -f digits/load.sql``.

asked = learner.transform(X_test)
index = NearestNeighbors(n_neighbors=5).fit(learner.transform(X_train))
ours = index.kneighbors(asked, return_distance=False)
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the folder for run-time files
        import pgserver
    import psycopg
except ImportError:
    print("pgserver and psycopg are not installed: scikit-learn searches instead")
    rows = ours
else:
    import runpy

    server = pgserver.get_server(Path(temporary.name) / "server", cleanup_mode="delete")
    server.psql((folder / "load.sql").read_text())
    search = runpy.run_path(str(folder / "query.py"))[
        "search"
    ]  # or: from digits.query import search
    with psycopg.connect(server.get_uri()) as connection:
        distances, rows = search(X_test, 5, connection)
        version = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        print(f"pgvector {version.fetchone()[0]}")
    server.cleanup()
print(f"{np.mean(rows == ours):.1%} of the neighbors are those of the model, in the same order")

# %%
# Ten learned coordinates are as good as 64 pixels: as many of the neighbors show the same digit.

plain = NearestNeighbors(n_neighbors=5).fit(X_train).kneighbors(X_test, return_distance=False)
for name, found in {"64 pixels": plain, "10 learned coordinates": rows}.items():
    same = (y_train[found] == y_test[:, None]).mean()
    print(f"{name}: {same:.1%} of the neighbors show the same digit")

# %%
# Four queries (left) with what the database returns.

fig, axes = plt.subplots(4, 6, figsize=(6, 4.2))
for line, i in zip(axes, np.linspace(0, len(asked) - 1, 4, dtype=int), strict=True):
    for ax, image in zip(line, [X_test[i], *X_train[rows[i]]], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    for side in ("left", "right", "top", "bottom"):
        line[0].spines[side].set(color="C1", linewidth=2, visible=True)
axes[0, 0].set_title("query", fontsize=9)
axes[0, 1].set_title("nearest", fontsize=9)
plt.show()
temporary.cleanup()
