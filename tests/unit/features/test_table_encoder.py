"""TableEncoder: every kind of column, in every kind of table, against values computed by hand."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal as vc
from vicinal.exceptions import TableError, UnseenLevelWarning

N = 300


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 1000, N)
    return pd.DataFrame(
        {
            "number": rng.normal(5, 2, N),
            "flag": rng.random(N) > 0.5,
            "color": rng.choice(list("abcdefghij"), N),
            "street": [f"s{code:02d}" for code in rng.integers(0, 60, N)],
            "born": [(date(2020, 1, 1) + timedelta(days=int(day))).isoformat() for day in days],
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(days * 7 + 0.3, unit="h"),
            "gap": np.where(rng.random(N) < 0.2, np.nan, rng.random(N)),
            "row": np.arange(N),
            "same": 7.0,
        }
    )


def labels(seed=1):
    return np.random.default_rng(seed).integers(0, 3, N)


@parametrize_with_checks([vc.TableEncoder()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["12.5%", "3%", "100%"], [12.5, 3, 100]),
        (["$8,077.35", "$6,399", "-$1.5"], [8077.35, 6399, -1.5]),
        (["$8,077.35", "$6,399", "$.5"], [8077.35, 6399, 0.5]),
        (["6,399", "1,234,567", "12"], [6399, 1234567, 12]),
        (["9.4 kg", "10 kg", "-3e2 kg"], [9.4, 10, -300]),
        (["1,5", "2,25", "10"], [1.5, 2.25, 10]),
        (["1.234,5", "2,25", "10"], [1234.5, 2.25, 10]),
        (["1", "n/a", "3"], [1, np.nan, 3]),
        (["1 kg", "2 g", "3 kg"], None),
        (["007", "010", "123"], None),
    ],
)
def test_numbers_in_texts(texts, expected):
    encoder = vc.TableEncoder().fit(pd.DataFrame({"a": texts, "b": [1.0, 2.0, 4.0]}))
    if expected is None:
        assert encoder.columns_[0].code.kind == "category"
        return
    code = encoder.columns_[0].code
    assert code.kind == "number"
    filled = np.nan_to_num(expected, nan=np.nanmedian(expected))
    assert code.mean == pytest.approx(filled.mean())
    features = encoder.transform(pd.DataFrame({"a": texts, "b": [1.0, 2.0, 4.0]}))
    spread = features[:, 0] * code.scale / encoder.columns_[0].weight + code.mean
    np.testing.assert_allclose(spread, filled)


def test_variance_of_every_used_column_is_one():
    table = make_table().drop(columns=["street"])
    encoder = vc.TableEncoder().fit(table)
    features = encoder.transform(table)
    variances = encoder.sum_by_column(features.var(axis=0)[None])[0]
    used = [column.code.kind != "dropped" for column in encoder.columns_]
    np.testing.assert_allclose(variances, used, atol=1e-12)
    assert not used[table.columns.get_loc("row")]
    assert not used[table.columns.get_loc("same")]


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas])
def test_all_libraries_give_the_same(library):
    table, y = make_table(), labels()
    expected, other = vc.TableEncoder(), vc.TableEncoder()
    features = expected.fit_transform(table, y)
    np.testing.assert_array_equal(other.fit_transform(library(table), y), features)
    np.testing.assert_array_equal(other.transform(library(table)), expected.transform(table))
    assert other.describe() == expected.describe()
    assert list(other.get_feature_names_out()) == list(expected.get_feature_names_out())


def test_names_describe_every_feature():
    encoder = vc.TableEncoder().set_output(transform="pandas")
    frame = encoder.fit_transform(make_table(), labels())
    assert frame.shape[1] == len(encoder.feature_columns_)
    owners = [make_table().columns[column] for column in encoder.feature_columns_]
    assert all(name.startswith(owner) for name, owner in zip(frame.columns, owners, strict=True))
    assert len(encoder.describe().splitlines()) == make_table().shape[1]


def test_level_statistics_are_shrunk_shares_of_the_other_folds():
    table = make_table()[["street", "number"]]
    y = labels()
    encoder = vc.TableEncoder(kinds={"street": "text"})
    trained = encoder.fit_transform(table, y)
    encoding = encoder.columns_[0]
    level = table["street"] == table["street"][0]
    for c in range(3):
        share = ((y[level] == c).sum() + 10 * (y == c).mean()) / (level.sum() + 10)
        assert encoder.transform(table)[0, c] == pytest.approx(share * encoding.weight)
    # The own target does not matter to a training row.
    numbers = np.random.default_rng(2).normal(size=N)
    changed = numbers.copy()
    changed[0] += 100.0
    own = []
    for target in (numbers, changed):
        encoder_of = vc.TableEncoder(kinds={"street": "text"})
        features = encoder_of.fit_transform(table, target)
        own.append(features[0, 0] / encoder_of.columns_[0].weight)
    assert own[0] == pytest.approx(own[1])
    assert not np.allclose(trained[:, :3], encoder.transform(table)[:, :3])


def test_a_number_as_target():
    table, y = make_table(), np.random.default_rng(3).normal(size=N)
    encoder = vc.TableEncoder().fit(table, y)
    code = next(c.code for c in encoder.columns_ if c.name == "street")
    level = table["street"] == code.levels[0]
    mean = (y[level].sum() + 10 * y.mean()) / (level.sum() + 10)
    assert code.statistics[0, 0] == pytest.approx(mean)


def test_unseen_levels_are_counted_and_missing_ones_are_a_level():
    table = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1.0, 2.0, 3.0, 5.0]})
    encoder = vc.TableEncoder().fit(table)
    new = pd.DataFrame({"a": ["z", None, "z"], "b": [1.0, np.nan, 2.0]})
    with pytest.warns(UnseenLevelWarning, match=r"'a' \(2 rows\)"):
        features = encoder.transform(new)
    names = list(encoder.get_feature_names_out())
    assert features[0, :3].tolist() == [0, 0, 0]
    assert features[1, names.index("a=(missing)")] > 0
    assert np.isfinite(features).all()


def test_dates_lie_on_circles():
    days = pd.date_range("2021-01-01", periods=800, freq="D")
    encoder = vc.TableEncoder().fit(pd.DataFrame({"d": days}))
    features = encoder.transform(pd.DataFrame({"d": days})) / encoder.columns_[0].weight
    np.testing.assert_allclose(features[:, 1], np.cos(2 * np.pi * (days.month - 1) / 12))
    np.testing.assert_allclose(features[:, 4], np.sin(2 * np.pi * days.day_of_week / 7), atol=1e-12)
    assert encoder.columns_[0].code.periods == ("month", "weekday")


def test_kinds_can_be_forced():
    table = make_table()
    kinds = {"row": "number", "color": "drop", "flag": "category", "born": "text"}
    encoder = vc.TableEncoder(kinds=kinds).fit(table, labels())
    found = {column.name: column.code.kind for column in encoder.columns_}
    assert [found[name] for name in kinds] == ["number", "dropped", "category", "target"]
    with pytest.raises(TableError, match="no column 'x'"):
        vc.TableEncoder(kinds={"x": "drop"}).fit(table)
    with pytest.raises(ValueError, match="must be one of"):
        vc.TableEncoder(kinds={"row": "numeric"}).fit(table)


def test_messages_name_row_and_column():
    texts = [str(value) for value in range(50)]
    texts[17] = "ten"
    with pytest.raises(TableError, match=r"column 'a'.*'ten' in row 17"):
        vc.TableEncoder().fit(pd.DataFrame({"a": texts}))
    with pytest.raises(TableError, match=r"column 'x1'.*row 2"):
        vc.TableEncoder().fit(np.array([[1.0, 2], [2, 3], [3, np.inf]]))
    with pytest.raises(TableError, match="no column is left"):
        vc.TableEncoder().fit(pd.DataFrame({"a": [1, 1, 1]}))


def test_ordered_levels_keep_their_order():
    levels = ["low", "mid", "high"]
    values = pd.Categorical(["high", "low", None, "mid"] * 5, levels, ordered=True)
    encoder = vc.TableEncoder().fit(pd.DataFrame({"a": values}))
    features = encoder.transform(pd.DataFrame({"a": values}))
    assert features[1, 0] < features[3, 0] < features[0, 0]
    assert features[2, 0] == features[3, 0]  # filled with the median
    assert features[:4, 1].argmax() == 2


def test_sparse_matrices_are_made_dense_where_they_fit():
    X = np.arange(12.0).reshape(4, 3)
    encoder = vc.TableEncoder().fit(csr_array(X))
    np.testing.assert_array_equal(encoder.transform(csr_array(X)), encoder.transform(X))
    with pytest.raises(ValueError, match="GiB as a dense array"):
        vc.TableEncoder().fit(csr_array((10**6, 10**4)))


def test_model_file_keeps_every_bit(tmp_path):
    table, y = make_table(), labels()
    table["size"] = pd.Categorical(np.resize(["s", "m", "l"], N), ["s", "m", "l"], ordered=True)
    encoder = vc.TableEncoder(kinds={"flag": "category"}).fit(table, y)
    vc.save(encoder, tmp_path / "encoder.vicinal")
    loaded = vc.load(tmp_path / "encoder.vicinal")
    np.testing.assert_array_equal(loaded.transform(table), encoder.transform(table))
    assert loaded.describe() == encoder.describe()


def test_a_refused_fit_leaves_the_encoder_as_it_was():
    table = make_table()
    encoder = vc.TableEncoder().fit(table)
    before = dict(vars(encoder))
    with pytest.raises(TableError):
        encoder.fit(pd.DataFrame({"a": [1, 1, 1]}))
    assert vars(encoder) == before


def test_targets_that_mix_text_and_numbers_are_named():
    y = np.array([1, "b"] * 10, dtype=object)
    with pytest.raises(ValueError, match=r"mixes labels that are text with others"):
        vc.TableEncoder().fit(pd.DataFrame({"a": range(20)}), y)


def test_periods_are_dates():
    months = pd.period_range("2020-01", periods=40, freq="M")
    found = vc.TableEncoder().fit(pd.DataFrame({"month": months, "x": np.arange(40) % 7.0}))
    assert found.columns_[0].code.kind == "date"
    starts = pd.DataFrame({"month": months.to_timestamp(), "x": np.arange(40) % 7.0})
    np.testing.assert_array_equal(
        found.transform(starts), found.transform(starts.assign(month=months))
    )


def test_a_number_taken_as_a_level_may_be_written_in_other_ways():
    table = pd.DataFrame({"c": [1.5, 2.0, 3.25, 1.5], "x": [1.0, 2, 3, 4]})
    new = pd.DataFrame({"c": ["1.50", "2.0", "3.25", "01.5"], "x": [1.0, 2, 3, 4]})
    for kind in ("category", "text"):
        encoder = vc.TableEncoder(kinds={"c": kind}).fit(table, list("abab"))
        encoded = encoder.encode(new)
        np.testing.assert_array_equal(encoded.X[:3], encoder.transform(table)[:3])
        assert encoded.unseen == {"c": {"01.5": 1}}
    words = vc.TableEncoder().fit(pd.DataFrame({"c": ["1.5", "2", "v3"]}), list("aba"))
    assert words.encode(pd.DataFrame({"c": ["1.50"]})).unseen == {"c": {"1.50": 1}}


def test_numbers_are_dates_only_where_they_are_written_as_dates():
    days = [20140131, 20140305, 20151224]
    encoder = vc.TableEncoder(kinds={"d": "date"}).fit(pd.DataFrame({"d": days}))
    written = vc.TableEncoder().fit(pd.DataFrame({"d": ["2014-01-31", "2014-03-05", "2015-12-24"]}))
    np.testing.assert_array_equal(
        encoder.transform(pd.DataFrame({"d": [str(day) for day in days]})),
        written.transform(pd.DataFrame({"d": ["2014-01-31", "2014-03-05", "2015-12-24"]})),
    )
    np.testing.assert_array_equal(
        encoder.transform(pd.DataFrame({"d": [20140131, np.nan]})),
        written.transform(pd.DataFrame({"d": ["2014-01-31", None]})),
    )
    with pytest.raises(TableError, match="'d' is not written as dates"):
        vc.TableEncoder(kinds={"d": "date"}).fit(pd.DataFrame({"d": [2014, 2015, 2016]}))
