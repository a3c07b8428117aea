"""What cannot be saved is refused in words that help, and leaves nothing behind."""

from __future__ import annotations

import os
from enum import Enum

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vicinal as vc
from vicinal.exceptions import ModelFileError
from vicinal.model_file import load, save
from vicinal.search.search_cv import ANNSearchCV

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.arange(30) % 2


def gmml() -> vc.GMML:
    return vc.GMML().fit(X + 3 * Y[:, None], Y)


@pytest.mark.parametrize(
    "model", [vc.NCA(), vc.ClassMeanKNN(), make_pipeline(StandardScaler(), vc.NCA())]
)
def test_unfitted_models(model, tmp_path):
    with pytest.raises(NotFittedError):
        save(model, tmp_path / "model.vicinal")
    assert os.listdir(tmp_path) == []


class Mine(vc.GMML):
    pass


@pytest.mark.parametrize("model", [LogisticRegression(), Mine(), 3, "text", None, object()])
def test_other_classes(model, tmp_path):
    with pytest.raises(TypeError, match="cannot be stored; a model file holds ANN, "):
        save(model, tmp_path / "model.vicinal")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("random_state", np.random.RandomState(0)),
        ("prior", {1, 2}),
        ("prior", lambda: None),
        ("prior", np.ma.masked_array([1.0, 2.0])),
        ("prior", np.array([object()])),
        ("prior", 1j),
        ("prior", 2**70),
        ("prior", b"bytes"),
        ("prior", {("a", "b"): 1}),
    ],
)
def test_parameters_that_no_file_can_hold(parameter, value, tmp_path):
    model = gmml().set_params(**{parameter: value})
    with pytest.raises(TypeError, match=parameter):
        save(model, tmp_path / "model.vicinal")
    save(model.set_params(**{parameter: None}), tmp_path / "model.vicinal")  # the way out


def test_a_list_that_contains_itself(tmp_path):
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="nested too deeply"):
        save(gmml().set_params(prior=endless), tmp_path / "model.vicinal")


def test_a_splitter_names_its_parameter(tmp_path):
    search = ANNSearchCV(vc.PNCA(max_iter=3), alphas=[1.0], n_neighbors=[1], cv=StratifiedKFold(2))
    with pytest.warns(UserWarning, match="max_iter"):
        search.fit(X, Y)
    with pytest.raises(TypeError, match="cv is StratifiedKFold"):
        save(search, tmp_path / "model.vicinal")


class Color(Enum):
    RED = 1


def test_labels_that_are_objects(tmp_path):
    model = gmml()
    model.classes_ = np.array([Color.RED, None], dtype=object)
    with pytest.raises(TypeError, match="classes_ holds objects.*strings, numbers or booleans"):
        save(model, tmp_path / "model.vicinal")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("components_", np.full((3, 3), np.nan), "components_ must be finite"),
        ("components_", np.eye(4), "components_ has a size of 4 where others have 3"),
        ("n_features_in_", 4, "components_ has a size of 3 where others have 4"),
        ("converged_", 1, "converged_ must be true or false"),
        ("classes_", np.array([1, 1]), "classes_ must be distinct"),
    ],
)
def test_models_that_could_not_be_loaded_are_not_saved(attribute, value, message, tmp_path):
    model = gmml()
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=f"cannot be saved.*{message}"):
        save(model, tmp_path / "model.vicinal")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("metric", ["precomputed", "cosine", lambda a, b: 0.0])
def test_neighbors_of_other_metrics(metric, tmp_path):
    knn = KNeighborsClassifier(metric="euclidean").fit(X, Y)
    with pytest.raises((TypeError, ModelFileError), match="metric"):
        save(knn.set_params(metric=metric), tmp_path / "model.vicinal")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_an_interrupted_save_leaves_the_old_file(moment, error, tmp_path, monkeypatch):
    path = tmp_path / "model.vicinal"
    save(gmml(), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, moment, fail)
    with pytest.raises(error):
        save(vc.RVML().fit(X, Y), path)
    assert os.listdir(tmp_path) == ["model.vicinal"]
    assert path.read_bytes() == before
    assert isinstance(load(path), vc.GMML)


def test_missing_folders_and_files_are_ordinary_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.vicinal")
    with pytest.raises(OSError, match="absent"):
        save(gmml(), tmp_path / "absent" / "model.vicinal")
