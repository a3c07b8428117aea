"""What other software computes from an export is what the model computes."""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import vicinal as vc
from vicinal.automatic.classifier import ANNClassifier
from vicinal.export import to_faiss, to_npy, to_onnx
from vicinal.search.search_cv import ANNSearchCV

X, Y = load_wine(return_X_y=True)
Z = StandardScaler().fit_transform(X)
QUERIES = X[1::2] * np.random.default_rng(0).uniform(0.9, 1.1, size=X[1::2].shape)

ONNX_TYPES = {np.float32: "tensor(float)", np.float64: "tensor(double)"}

MODELS = {
    "learner": vc.NCA(n_components=2, max_iter=20),
    "full rank": vc.GMML(),
    "scaler, learner, K-NN": make_pipeline(
        StandardScaler(), vc.NCA(n_components=3, max_iter=20), KNeighborsClassifier()
    ),
    "scaler, PCA, learner, class means": make_pipeline(
        StandardScaler(), PCA(5, whiten=True), vc.GMML(), vc.ClassMeanKNN()
    ),
    "scaler without center, PCA": make_pipeline(StandardScaler(with_mean=False), PCA(4), vc.GMML()),
    "scaler without center": make_pipeline(StandardScaler(with_mean=False), vc.GMML()),
    "ANNClassifier": ANNClassifier(mode="single"),
    "ANNSearchCV": ANNSearchCV(
        vc.PNCA(n_components=2, max_iter=5),
        alphas=[1.0],
        n_neighbors=[1, 3],
        cv=2,
        standardize=True,
    ),
}


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture(scope="module", params=MODELS)
def case(request, dtype):
    """A fitted model, queries, and what the model makes of them."""
    model = MODELS[request.param]
    rows, queries = X.astype(dtype), QUERIES.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        model.fit(rows, Y)
    embed = model if hasattr(model, "transform") else model[:-1]
    return model, rows, queries, embed.transform


def test_onnxruntime_computes_the_transform(case, dtype, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, _, queries, transform = case
    to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (source,), (target,) = session.get_inputs(), session.get_outputs()
    assert (source.name, target.name) == ("X", "Z")
    assert source.type == target.type == ONNX_TYPES[dtype]
    expected = transform(queries)
    for n in (1, len(queries)):
        (found,) = session.run(None, {"X": queries[:n]})
        assert found.dtype == dtype
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected[:n], rtol=1e-5, atol=1e-5 * scale)


def test_faiss_finds_the_same_neighbors(case, tmp_path):
    faiss = pytest.importorskip("faiss")
    model, rows, queries, transform = case
    ids = 1000 - np.arange(len(rows))
    to_faiss(model, rows, tmp_path / "model.faiss")
    to_faiss(model, rows, tmp_path / "named.faiss", ids=ids)
    queries, references = (np.asarray(transform(a), dtype=np.float32) for a in (queries, rows))
    found_d, found = faiss.read_index(str(tmp_path / "model.faiss")).search(queries, 5)
    named = faiss.read_index(str(tmp_path / "named.faiss")).search(queries, 5)[1]
    search = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(references.astype(float))
    distances, expected = search.kneighbors(queries.astype(float))
    scale = np.square(distances).max()
    np.testing.assert_allclose(found_d, distances**2, rtol=1e-4, atol=1e-5 * scale)
    # Rows as near as float32 can tell may change places.
    assert np.mean(found == expected) > 0.99
    np.testing.assert_array_equal(named, ids[found])


def test_faiss_agrees_with_the_neighbors_of_our_own_classifier(tmp_path):
    faiss = pytest.importorskip("faiss")
    model = make_pipeline(StandardScaler(), vc.GMML(), vc.ClassMeanKNN()).fit(X, Y)
    to_faiss(model, X, tmp_path / "model.faiss")
    queries = model[:-1].transform(QUERIES)
    _, ours = model[-1].kneighbors(queries, n_neighbors=3)
    index = faiss.read_index(str(tmp_path / "model.faiss"))
    _, theirs = index.search(queries.astype(np.float32), 3)
    np.testing.assert_array_equal(theirs, ours)


def test_plain_arrays_compute_the_transform(case, dtype, tmp_path):
    model, _, queries, transform = case
    to_npy(model, tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    card = json.loads((folder / "card.json").read_text())
    assert sorted(os.listdir(folder)) == ["A.npy", "card.json", "center.npy", "offset.npy"]
    arrays = {name: np.load(folder / entry["file"]) for name, entry in card["arrays"].items()}
    for name, array in arrays.items():
        assert list(array.shape) == card["arrays"][name]["shape"]
        assert array.dtype == dtype
        assert card["arrays"][name]["dtype"] == np.dtype(dtype).name
    A, center, offset = (arrays[name] for name in ("A", "center", "offset"))
    expected = transform(queries)
    found = (queries - center) @ A.T + offset
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_arrays_of_an_earlier_model_stay_together(tmp_path, monkeypatch):
    """Where the second array cannot be written, none is replaced."""

    def saved(file, array, **options):
        if array.ndim == 1:  # the center, after A
            raise OSError(errno.ENOSPC, "No space left on device")
        save(file, array, **options)

    to_npy(vc.GMML().fit(Z, Y), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    save = np.save
    monkeypatch.setattr(np, "save", saved)
    with pytest.raises(OSError, match="No space"):
        to_npy(vc.GMML().fit(2.0 * Z, Y), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_card_names_the_features(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Z[:, :3], columns=["größe", "b", "c"])
    to_npy(vc.GMML().fit(frame, Y), tmp_path)
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["feature_names"] == ["größe", "b", "c"]
    assert card["steps"] == ["GMML"]


EXPORTS = {
    "onnx": lambda model, folder: to_onnx(model, folder / "out"),
    "faiss": lambda model, folder: to_faiss(model, Z, folder / "out"),
    "npy": lambda model, folder: to_npy(model, folder / "out"),
}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (vc.NCA(), NotFittedError, "not fitted"),
        (ANNClassifier(effort=0.02), ValueError, r"ANNClassifier\(mode='single'\)"),
        (vc.ClassMeanKNN(), TypeError, "no transform"),
        (
            ANNSearchCV(vc.PNCA(max_iter=3), alphas=[1.0], n_neighbors=[1], cv=2, refit=False),
            NotFittedError,
            "refit=True",
        ),
    ],
)
def test_models_without_a_transform(export, model, error, message, tmp_path):
    if not isinstance(model, vc.NCA):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few iterations
            model.fit(Z, Y)
    with pytest.raises(error, match=message):
        EXPORTS[export](model, tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("export", ["onnx", "npy"])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (vc.RVML(kernel="rbf"), "kernel='linear'"),
        (make_pipeline(MinMaxScaler(), vc.GMML()), "StandardScaler and PCA"),
    ],
)
def test_transforms_that_are_not_affine(export, model, message, tmp_path):
    with pytest.raises((ValueError, TypeError), match=message):
        EXPORTS[export](model.fit(Z, Y), tmp_path)
    if export == "onnx":
        EXPORTS["faiss"](model, tmp_path)  # which needs only the transformed rows


@pytest.mark.parametrize("export", EXPORTS)
def test_what_is_no_estimator(export, tmp_path):
    with pytest.raises(TypeError, match="is not an estimator"):
        EXPORTS[export]({"components_": Z}, tmp_path)


@pytest.mark.parametrize("ids", [["a"] * len(Z), [1, 2], np.arange(len(Z)) / 2])
def test_ids_must_be_integers_one_per_row(ids, tmp_path):
    with pytest.raises(ValueError, match=f"ids must be {len(Z)} integers"):
        to_faiss(vc.GMML().fit(Z, Y), Z, tmp_path / "out", ids=ids)


@pytest.mark.parametrize("export", ["onnx", "faiss"])
def test_a_missing_package_names_the_extra(export, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, export, None)
    with pytest.raises(ImportError, match=r"vicinal\[export\]"):
        EXPORTS[export](vc.GMML().fit(Z, Y), tmp_path)


def test_an_index_on_a_full_disk_is_an_error(tmp_path, monkeypatch):
    pytest.importorskip("faiss")

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        to_faiss(vc.GMML().fit(Z, Y), Z, tmp_path / "out")
    assert os.listdir(tmp_path) == []
