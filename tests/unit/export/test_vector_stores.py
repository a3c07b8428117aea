"""The nearest rows that a vector store finds are those of the model."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import vicinal as vc
from vicinal.export import STORES, to_vector_store
from vicinal.export.committee_map import learn_map

X, Y = load_wine(return_X_y=True)
NAMES = np.array(["zero", "one", "two\t\\n"])[Y]
QUERIES = X[1::4] * np.random.default_rng(0).uniform(0.9, 1.1, size=X[1::4].shape)
K = 7

MODELS = {
    "low rank": make_pipeline(StandardScaler(), vc.NCA(n_components=2, max_iter=20)),
    "full rank": make_pipeline(StandardScaler(), vc.GMML(), vc.ClassMeanKNN()),
    "not affine": make_pipeline(MinMaxScaler(), vc.GMML()),
}


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        return {name: model.fit(X, Y) for name, model in MODELS.items()}


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A server with pgvector; psql(text) runs it, and its URI connects."""
    pgserver = pytest.importorskip("pgserver")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the folder for run-time files
        server = pgserver.get_server(tmp_path_factory.mktemp("pg") / "data", cleanup_mode="delete")
    yield server
    server.cleanup()


@pytest.fixture
def search(tmp_path, request):
    """Export, load where that takes a server, and ask by the exported query.py."""

    def export_and_ask(store, model, features, **options):
        if store != "pgvector":
            pytest.importorskip(store)
        folder = tmp_path / store
        to_vector_store(model, X, folder, store, labels=NAMES, **options)
        ask = runpy.run_path(str(folder / "query.py"))["search"]
        if store != "pgvector":
            return ask(features, K)
        psycopg, server = pytest.importorskip("psycopg"), request.getfixturevalue("postgres")
        server.psql("DROP TABLE IF EXISTS vicinal_rows;")
        server.psql((folder / "load.sql").read_text())
        with psycopg.connect(server.get_uri()) as connection:
            return ask(features, K, connection)

    return export_and_ask


def ours(model, queries=QUERIES):
    """Distances and rows (q, K) by brute force in the learned space."""
    transform = model.transform if hasattr(model, "transform") else model[:-1].transform
    index = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(transform(X))
    return index.kneighbors(transform(queries))


def check(found, expected):
    distances, rows = found
    np.testing.assert_allclose(distances, expected[0], rtol=2e-3, atol=2e-3)
    np.testing.assert_array_equal(rows, expected[1])


@pytest.mark.parametrize("keep_raw", [False, True], ids=["z", "raw"])
@pytest.mark.parametrize("name", ["low rank", "full rank"])
@pytest.mark.parametrize("store", STORES)
def test_a_store_finds_the_same_neighbors(store, name, keep_raw, fitted, search):
    model = fitted[name]
    check(search(store, model, QUERIES, keep_raw=keep_raw), ours(model))


@pytest.mark.parametrize("store", ["duckdb", "usearch"])
def test_steps_that_are_not_affine_come_before_the_features(store, fitted, search, tmp_path):
    model = fitted["not affine"]
    check(search(store, model, model[0].transform(QUERIES)), ours(model))
    card = json.loads((tmp_path / store / "card.json").read_text())
    assert card["features"] == {"number": 13, "names": None, "made_by": ["MinMaxScaler"]}


def test_the_kernel_form_has_a_z_but_no_raw_form(tmp_path):
    model = vc.RVML(kernel="rbf").fit(StandardScaler().fit_transform(X), Y)
    card = to_vector_store(model, StandardScaler().fit_transform(X), tmp_path / "a", "pgvector")
    assert card["features"]["made_by"] == ["RVML"]
    with pytest.raises(ValueError, match="no M"):
        to_vector_store(
            model, StandardScaler().fit_transform(X), tmp_path / "b", "pgvector", keep_raw=True
        )
    assert os.listdir(tmp_path) == ["a"]


def test_raw_vectors_stay_in_the_table(fitted, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    to_vector_store(fitted["full rank"], X, tmp_path / "out", "duckdb", ids=NAMES, keep_raw=True)
    with duckdb.connect(str(tmp_path / "out" / "vectors.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT id, embedding FROM vicinal_rows ORDER BY row_id")
        names, vectors = zip(*rows.fetchall(), strict=True)
    np.testing.assert_array_equal(np.array(vectors)[:, :-1], X.astype(np.float32))
    assert list(names) == NAMES.tolist()


def test_names_arrive_in_postgres_as_they_are(fitted, search, postgres):
    psycopg = pytest.importorskip("psycopg")
    search("pgvector", fitted["full rank"], QUERIES)
    with psycopg.connect(postgres.get_uri()) as connection:
        labels = connection.execute("SELECT label FROM vicinal_rows ORDER BY row_id").fetchall()
    assert [label for (label,) in labels] == NAMES.tolist()


def test_the_index_of_pgvector_is_used_and_finds_nearly_all(fitted, search, postgres, tmp_path):
    psycopg = pytest.importorskip("psycopg")
    search("pgvector", fitted["full rank"], QUERIES)
    postgres.psql((tmp_path / "pgvector" / "index.sql").read_text())
    with psycopg.connect(postgres.get_uri()) as connection:
        connection.execute("SET enable_seqscan = off")
        ask = runpy.run_path(str(tmp_path / "pgvector" / "query.py"))["search"]
        assert recall(ask(QUERIES, K, connection)[1], fitted["full rank"]) > 0.95


def recall(found, model):
    """The share of the nearest rows that was found."""
    pairs = zip(found, ours(model)[1], strict=True)
    return np.mean([len(set(row) & set(exact)) / K for row, exact in pairs])


@pytest.mark.parametrize("store", ["usearch", "hnswlib"])
def test_graphs_find_nearly_all_and_none_by_inner_product(store, fitted, tmp_path):
    pytest.importorskip(store)
    model = fitted["full rank"]
    for keep_raw in (False, True):
        to_vector_store(model, X, tmp_path / "out", store, keep_raw=keep_raw)
        ask = runpy.run_path(str(tmp_path / "out" / "query.py"))["search"]
        if keep_raw:
            with pytest.raises(ValueError, match="exact=True"):
                ask(QUERIES, K, exact=False)
        else:
            assert recall(ask(QUERIES, K, exact=False)[1], model) > 0.95


@pytest.mark.parametrize(
    ("metric", "keep_raw", "reason"),
    [
        ("ip", False, "lacks the term"),
        ("l2", True, "means nothing"),
        ("cosine", False, "how long"),
        ("cosine", True, "how long"),
        ("manhattan", False, "unknown"),
    ],
)
def test_metrics_with_other_neighbors_are_refused(metric, keep_raw, reason, fitted, tmp_path):
    with pytest.raises(ValueError, match=reason):
        to_vector_store(
            fitted["low rank"], X, tmp_path / "out", "pgvector", metric=metric, keep_raw=keep_raw
        )
    assert os.listdir(tmp_path) == []


def test_the_refused_inner_product_is_indeed_wrong(fitted):
    """Raw x against M q: the reason for the refusal above, in numbers."""
    model = fitted["full rank"]
    A = model[1].components_ / model[0].scale_
    by_product = np.argsort(-(X @ (A.T @ A @ QUERIES.T)).T, axis=1)[:, :K]
    assert np.mean(by_product == ours(model)[1]) < 0.1


def test_float32_that_loses_the_neighbors_is_refused(tmp_path):
    shifted = X.copy()
    shifted[:, -1] += 1e9  # proline: differences of 1e2
    model = vc.GMML().fit(X, Y)
    with pytest.raises(ValueError, match="float32.*export without keep_raw"):
        to_vector_store(model, shifted, tmp_path / "raw", "pgvector", keep_raw=True)
    to_vector_store(model, shifted, tmp_path / "z", "pgvector")


def test_the_card_lists_every_file_with_its_checksum(fitted, tmp_path):
    card = to_vector_store(fitted["low rank"], X, tmp_path / "out", "pgvector", labels=Y)
    assert json.loads((tmp_path / "out" / "card.json").read_text()) == card
    assert set(card["files"]) == set(os.listdir(tmp_path / "out")) - {"card.json"}
    for name, digest in card["files"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    assert (card["rows"], card["dimension"], card["metric"]) == (178, 2, "l2")


def test_the_query_program_runs_by_itself(fitted, tmp_path):
    pytest.importorskip("usearch")
    to_vector_store(fitted["full rank"], X, tmp_path / "out", "usearch")
    np.save(tmp_path / "q.npy", QUERIES)
    words = [sys.executable, str(tmp_path / "out" / "query.py"), str(tmp_path / "q.npy"), str(K)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    np.testing.assert_array_equal(np.array(rows, dtype=int), ours(fitted["full rank"])[1])


def test_a_folder_with_other_files_is_kept(fitted, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(OSError, match="other files"):
        to_vector_store(fitted["low rank"], X, folder, "pgvector")
    assert os.listdir(tmp_path) == ["mine"]
    assert os.listdir(folder) == ["thesis.txt"]
    first = tmp_path / "out"
    to_vector_store(fitted["low rank"], X, first, "pgvector")
    card = to_vector_store(fitted["full rank"], X, first, "pgvector")  # an earlier export
    assert card["dimension"] == 13
    assert sorted(os.listdir(tmp_path)) == ["mine", "out"]


FULL_DISK = """
import resource, signal, sys
import numpy as np
import vicinal as vc
from vicinal.export import to_vector_store

rng = np.random.default_rng(0)
X, y = rng.normal(size=(4000, 13)), rng.integers(3, size=4000)
model = vc.Covariance().fit(X, y)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    to_vector_store(model, X, "out", sys.argv[1])
except OSError as error:
    print("OSError", error)
"""


@pytest.mark.parametrize("store", STORES)
def test_a_full_disk_is_an_os_error_and_leaves_nothing(store, tmp_path):
    """A limit on the size of files, which only the vectors exceed, stands for the disk."""
    pytest.importorskip("resource")
    if store != "pgvector":
        pytest.importorskip(store)
    words = [sys.executable, "-c", FULL_DISK, store]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.startswith("OSError")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "values"), [("ids", [1, 2]), ("labels", ["a"] * 3)])
def test_names_of_other_lengths_are_refused(name, values, fitted, tmp_path):
    with pytest.raises(ValueError, match=name):
        to_vector_store(fitted["low rank"], X, tmp_path / "out", "pgvector", **{name: values})


# ----------------------------------------------------------------------------------- committees


def divergence(L, rows, W):
    """Σ_i KL(W_i ‖ p_i) by naive sums."""
    D = cdist(rows @ L.T, rows @ L.T, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    P = np.exp(-D + D.min(axis=1)[:, None])
    P /= P.sum(axis=1)[:, None]
    listed = W > 0
    return float(np.sum(W[listed] * np.log(W[listed] / P[listed])))


def test_the_map_recovers_the_metric_whose_weights_it_is_given():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 4)) * [1, 2, 3, 4]
    truth = rng.normal(size=(4, 4)) * 0.3
    D = cdist(rows @ truth.T, rows @ truth.T, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    W = np.exp(-D) / np.exp(-D).sum(axis=1)[:, None]
    found = learn_map(rows, csr_array(5.0 * W), np.eye(4))  # rows are divided by their sums
    assert divergence(found, rows, W) < 0.02 * divergence(np.eye(4) * 0.2, rows, W)
    np.testing.assert_allclose(found.T @ found, truth.T @ truth, atol=0.05)


def test_the_map_is_a_minimum_of_the_divergence():
    rng = np.random.default_rng(2)
    rows, W = rng.normal(size=(40, 3)), rng.uniform(size=(40, 40)) ** 8
    np.fill_diagonal(W, 0.0)
    W /= W.sum(axis=1)[:, None]
    found = learn_map(rows, csr_array(W), np.eye(3))
    best = divergence(found, rows, W)
    for step in rng.normal(size=(20, 3, 3)):
        assert divergence(found + 0.05 * step, rows, W) > best - 1e-4


@pytest.fixture(scope="module")
def committee():
    return vc.ANNClassifier(effort=0.3, random_state=0).fit(X, NAMES)


def test_a_committee_is_replaced_by_one_map_and_the_card_says_what_that_costs(committee, tmp_path):
    card = to_vector_store(committee, X, tmp_path / "out", "pgvector", labels=NAMES)
    told = card["replaces_a_committee"]
    out_of_fold = committee.classes_[committee.oof_proba_.argmax(axis=1)]
    accuracy = np.mean(out_of_fold == NAMES[committee.oof_rows_])
    assert told["committee_accuracy_out_of_fold"] == pytest.approx(accuracy)
    assert told["map_accuracy_cross_validated"] > 0.9
    assert told["learned_on_rows"] == len(X)
    # Votes by distances of the exported map: as good as the card says, about.
    query = runpy.run_path(str(Path(tmp_path / "out" / "query.py")))
    Z = query["embed"](X)
    D = cdist(Z, Z, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    votes = np.exp(D.min(axis=1)[:, None] - D) @ (NAMES[:, None] == committee.classes_)
    right = np.mean(committee.classes_[votes.argmax(axis=1)] == NAMES)
    assert right > told["map_accuracy_cross_validated"] - 0.03


def test_weights_without_the_own_vote(committee):
    weights, prior_share = committee.vote_weights()
    assert weights.diagonal().max() == 0
    np.testing.assert_allclose(weights.sum(axis=1) + prior_share, 1.0)
