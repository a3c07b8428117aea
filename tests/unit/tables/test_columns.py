"""What is done to columns: scikit-learn's transformers are the oracles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from vicinal.exceptions import TableError
from vicinal.tables.columns import MISSING, ColumnPlan, encode, plan_column, restore

RNG = np.random.default_rng(0)


def column(values, name="c", **options):
    return pd.Series(values, name=name, **options)


@pytest.mark.parametrize("missing", [0, 7])
def test_numbers_are_imputed_and_standardized_as_scikit_learn_does(missing):
    values = RNG.exponential(size=50) * 1e3 + 5
    values[RNG.choice(50, missing, replace=False)] = np.nan
    plan = plan_column(column(values))
    filled = SimpleImputer(strategy="median").fit_transform(values[:, None])
    expected = StandardScaler().fit_transform(filled)
    np.testing.assert_allclose(encode(column(values), plan), expected, rtol=1e-12, atol=1e-12)
    assert (plan.kind, plan.n_rows, plan.n_missing) == ("number", 50, missing)
    assert plan.feature_names == ("c",)


def test_new_numbers_use_the_training_median_and_scale():
    plan = plan_column(column([1.0, 2.0, 6.0, np.nan]))
    new = encode(column([np.nan, 10.0]), plan)
    filled = np.array([1.0, 2.0, 6.0, 2.0])
    np.testing.assert_allclose(new[:, 0], (np.array([2.0, 10.0]) - filled.mean()) / filled.std())


@pytest.mark.parametrize(
    "values", [["a", "b", "a", "c"], ["x", None, "y", "x"], pd.Categorical([3, 1, 1, 3])]
)
def test_categories_are_one_hot_as_scikit_learn_does(values):
    plan = plan_column(column(values))
    texts = np.array([MISSING if pd.isna(v) else str(v) for v in values], dtype=object)
    encoder = OneHotEncoder(categories=[list(plan.categories)], sparse_output=False)
    np.testing.assert_array_equal(
        encode(column(values), plan), encoder.fit_transform(texts[:, None])
    )
    assert set(plan.categories) == set(texts)
    assert plan.feature_names == tuple(f"c={value}" for value in plan.categories)


def test_categories_are_in_natural_order():
    plan = plan_column(column(pd.Categorical([10, 2, 1, 2])))
    assert plan.categories == ("1", "2", "10")


@pytest.mark.parametrize("values", [[1, 2, 1], [1.0, 2.0, 1.0], ["1", "2", "1"]])
def test_a_category_is_the_same_as_integer_float_and_text(values):
    plan = ColumnPlan("c", "category", 3, 0, categories=("1", "2"))
    expected = [[1, 0], [0, 1], [1, 0]]
    np.testing.assert_array_equal(encode(column(values), plan), expected)


@pytest.mark.parametrize("values", [[True, False, True], [True, None, False], ["1", "0", "2.5"]])
def test_booleans_and_numbers_in_text_are_numbers(values):
    assert plan_column(column(values)).kind == "number"


NUMBERS = st.lists(
    st.one_of(st.none(), st.floats(-1e6, 1e6).map(lambda v: round(v, 3))), min_size=2, max_size=20
)
TEXTS = st.lists(st.sampled_from(["red", "green", "blue", "7"]), min_size=2, max_size=20)


@given(st.one_of(NUMBERS, TEXTS))
def test_restore_inverts_encode(values):
    series = column(values)
    plan = plan_column(series)
    if plan.kind == "dropped":
        return
    back = restore(encode(series, plan), plan)
    for given_value, found in zip(values, back, strict=True):
        if plan.kind == "category":
            assert found == given_value
        else:
            expected = plan.fill if given_value is None else float(given_value)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * plan.scale + 1e-6)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([5.0] * 30, "constant"),
        ([5.0, np.nan] * 15, "constant"),
        (["a"] * 30, "constant"),
        ([np.nan] * 30, "empty"),
        (np.arange(30) + 100, "numbers the rows"),
        ([f"customer {i}" for i in range(30)], "identifier"),
        ([f"word {i % 150}" for i in range(900)], "more than 100"),
        (["2020-01-31", "2021-12-01"] * 15, "dates"),
        (["31.12.2020", "1.1.2021"] * 15, "dates"),
        (pd.to_datetime(["2020-01-31", "2021-12-01"] * 15), "dates"),
    ],
)
def test_useless_columns_are_dropped_with_the_reason(values, word):
    plan = plan_column(column(values))
    assert plan.kind == "dropped"
    assert word in plan.reason
    assert plan.feature_names == ()


def test_different_integers_are_an_identifier_only_by_name_or_if_they_follow_each_other():
    values = RNG.choice(10_000, 40, replace=False)
    assert plan_column(column(values, "income")).kind == "number"
    assert plan_column(column(values, "customer_id")).kind == "dropped"
    assert plan_column(column(np.arange(40), "year")).kind == "dropped"
    assert plan_column(column(np.arange(40), "year"), keep=True).kind == "number"
    assert plan_column(column(np.arange(40) % 39, "year")).kind == "number"  # one repeats


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_row_numbers_are_recognized_in_a_part_of_the_table(share):
    """Of a split table, or one with rows left out, they do not follow each other any more."""
    part = np.random.default_rng(1).permutation(200)[: int(200 * share)]
    assert plan_column(column(part, "sample")).kind == "dropped"
    assert plan_column(column(part * 4, "sample")).kind == "number"
    assert plan_column(column(part[:20], "age")).kind == "number"  # too few to tell
    huge = np.array([-(2**62), *range(10), 2**62])
    assert plan_column(column(huge, "far apart")).kind == "number"


def test_few_texts_that_look_like_numbers_are_categories():
    assert plan_column(column(["0", "1", "2", "3+"] * 10)).kind == "category"


def test_a_slip_in_a_column_of_numbers_is_an_error_that_shows_it():
    values = [f"{i}.5" for i in range(60)]
    values[17] = "12 kg"
    with pytest.raises(TableError, match=r"'c'.*1 value.*'12 kg' in row 17"):
        plan_column(column(values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["tall", "2"], r"'c' holds numbers, but 1 value.*'tall' in row 0.*leave them empty"),
        ([1.0, np.inf], r"'c': infinite or beyond 1e\+30 in 1 row\(s\), first in row 1"),
        ([1e300, 1.0], r"'c': infinite or beyond 1e\+30 in 1 row\(s\), first in row 0"),
    ],
)
def test_what_is_no_number_is_refused(values, message):
    plan = ColumnPlan("c", "number", 3, 0)
    with pytest.raises(TableError, match=message):
        encode(column(values), plan)


def test_an_unseen_category_is_named_or_ignored():
    plan = plan_column(column(["red", "green", "red"]))
    new = column(["red", "mauve", None])
    with pytest.raises(TableError, match=r"'c': 'mauve' \(1 row.*knew green, red.*--unseen ignore"):
        encode(new, plan)
    np.testing.assert_array_equal(encode(new, plan, ignore_unseen=True), [[0, 1], [0, 0], [0, 0]])


@pytest.mark.parametrize("unit", [1e308, 1e-272, 1e31, 1e-31])
def test_numbers_beyond_standardizing_are_refused(unit):
    with pytest.raises(TableError, match="'c'.*other units"):
        plan_column(column([unit, -unit, 0.3 * unit]))


@pytest.mark.parametrize(
    "change",
    [
        {"scale": 0.0},
        {"mean": float("nan")},
        {"kind": "magic"},
        {"categories": ["a", "a"], "kind": "category"},
        {"n_rows": -1},
        {"fill": "x"},
        {"name": 3},
        {"categories": ["a"]},
        {"categories": "ab"},
        {"extra": 1},
    ],
)
def test_a_plan_from_a_strange_file_is_checked(change):
    state = plan_column(column([1.0, 2.0])).to_state()
    assert ColumnPlan.from_state(state) == plan_column(column([1.0, 2.0]))
    with pytest.raises(ValueError, match="column plan|valid"):
        ColumnPlan.from_state({**state, **change})
