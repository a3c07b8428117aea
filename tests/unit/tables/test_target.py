"""What is a class, and what is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from vicinal.exceptions import TableError, TableWarning
from vicinal.tables.training_table import class_labels, labels_like

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1, 3], [3, 1, 3]),
        ([1.0, 0.0, 1.0], [1, 0, 1]),
        ([0.5, 1.0, 0.5], ["0.5", "1", "0.5"]),
        ([True, False, True], ["True", "False", "True"]),
        (["b", "a", "b"], ["b", "a", "b"]),
        (pd.Categorical(["b", "a", "b"]), ["b", "a", "b"]),
    ],
)
def test_integers_stay_and_the_rest_is_text(values, expected):
    labels = class_labels(pd.Series(values, name="y"))
    assert labels.tolist() == expected
    assert labels.dtype.kind in "iU"
    assert labels_like(pd.Series(values), np.unique(labels)).tolist() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (RNG.normal(size=100), "'y' looks like a measured number .100 different.*ranges"),
        (RNG.permutation(1000)[:400], "measured number"),
        (np.arange(90) % 60, "measured number"),
        (["a"] * 10, "1 class; two"),
        ([2] * 10, "1 class; two"),
        ([f"name {i}" for i in range(50)], "names rather than classes"),
        ([1.0, np.inf], "infinite"),
    ],
)
def test_what_is_no_class_is_refused(values, message):
    with pytest.raises(TableError, match=message):
        class_labels(pd.Series(values, name="y"))


def test_many_classes_with_many_rows_are_classes():
    assert len(np.unique(class_labels(pd.Series(np.arange(1000) % 150, name="y")))) == 150


def test_unknown_labels_are_none():
    assert labels_like(pd.Series(["a", "z", None]), np.array(["a", "b"])).tolist() == [
        "a",
        None,
        None,
    ]


def test_labels_that_differ_in_white_space_are_merged_and_said():
    column = pd.Series(["New York", " New  York", "Boston"] * 3, name="y")
    with pytest.warns(TableWarning, match="'y': 1 label.*white space"):
        labels = class_labels(column)
    assert set(labels) == {"New York", "Boston"}
    assert labels_like(column, np.unique(labels)).tolist() == labels.tolist()
