from __future__ import annotations

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import (
    DATASETS,
    SMALLEST,
    DatasetUnavailable,
    checksum,
    load,
    load_available,
)


def test_manifest_lists_the_papers_fifteen_sets_smallest_first():
    sizes = [info.n for info in DATASETS.values()]
    assert len(sizes) == 15
    assert sizes[:10] == sorted(sizes[:10])
    assert set(SMALLEST) == {
        "iris", "wine", "glass", "solar", "ecoli", "cars", "monk1", "australian",
    }  # fmt: skip


@pytest.mark.parametrize("name", DATASETS)
def test_the_folder_is_what_the_manifest_says(name, data_dir):
    if not (data_dir / f"{name}.npz").is_file():
        pytest.skip("not in the folder")
    data = load(name, data_dir)
    assert (*data.X.shape, len(np.unique(data.y))) == DATASETS[name].shape
    assert data.source == f"sha256:{DATASETS[name].sha256[:12]}"


def test_checksum_is_of_the_values_not_of_their_type():
    X, y = np.array([[1, 2], [3, 255]], dtype=np.uint8), np.array([0, 1], dtype=np.int8)
    by_hand = hashlib.sha256()
    by_hand.update(X.astype("<f8").tobytes() + y.astype("<i8").tobytes())
    assert checksum(X, y) == by_hand.hexdigest()
    assert checksum(np.asfortranarray(X), y) == checksum(X.astype(np.float32), y)


def test_other_content_and_other_sizes_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "iris.npz", X=rng.normal(size=(150, 4)), y=np.arange(150) % 3)
    with pytest.raises(DatasetUnavailable, match="other content"):
        load("iris", tmp_path)
    np.savez(tmp_path / "iris.npz", X=rng.normal(size=(149, 4)), y=np.arange(149) % 3)
    with pytest.raises(DatasetUnavailable, match=r"\(149, 4, 3\), expected \(150, 4, 3\)"):
        load("iris", tmp_path)


def _text(path):
    path.write_text("no archive")


def _empty(path):
    path.write_bytes(b"")


def _cut(path):
    path.write_bytes(path.read_bytes()[:200])


def _flipped_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def _without_labels(path):
    np.savez(path, X=np.zeros((150, 4)))


def _words(path):
    np.savez(path, X=np.full((150, 4), "a"), y=np.arange(150) % 3)


def _objects(path):
    np.savez(path, X=np.full((150, 4), None), y=np.arange(150) % 3)


@pytest.mark.parametrize(
    "damage", [_text, _empty, _cut, _flipped_byte, _without_labels, _words, _objects]
)
def test_a_damaged_file_is_reported_like_a_missing_one(damage, tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", _offline)
    np.savez(tmp_path / "iris.npz", X=np.ones((150, 4)), y=np.arange(150) % 3)
    damage(tmp_path / "iris.npz")
    loaded, missing = load_available(["iris", "cars"], tmp_path)
    assert loaded == {}
    assert missing["iris"].startswith("iris.npz cannot be read: ")
    assert "--data" in missing["cars"]


def test_what_cannot_be_had_is_reported_and_the_rest_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", _offline)
    np.savez(tmp_path / "x.npz", X=np.zeros(1))
    loaded, missing = load_available(["cars", "iris", "nonsense"], tmp_path)
    assert loaded == {}
    assert "--data" in missing["cars"]
    assert "no network" in missing["iris"]
    assert "unknown" in missing["nonsense"]


def _offline(**options):
    raise OSError("no network")


def test_openml_is_asked_where_no_folder_has_it(monkeypatch, tmp_path):
    asked = []

    def fetch(data_id, **options):
        asked.append(data_id)
        names = np.array(["a", "c", "b"])
        return SimpleNamespace(data=np.ones((150, 4)), target=names[np.arange(150) % 3])

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    monkeypatch.setenv("VICINAL_DATA", str(tmp_path))
    data = load("iris")
    assert asked == [61]
    assert data.source == "openml:61"
    assert data.y[:3].tolist() == [0, 2, 1]
    with pytest.raises(DatasetUnavailable, match="expected"):
        load("wine")  # 150 × 4 is not wine


def test_vicinal_data_names_the_folder(monkeypatch, data_dir):
    monkeypatch.setenv("VICINAL_DATA", str(data_dir))
    assert load("iris").source.startswith("sha256:")
    assert datasets.load("iris", data_dir).X.shape == (150, 4)
