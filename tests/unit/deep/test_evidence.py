"""The deep comparison: its scores agree with pytorch-metric-learning, and it can be resumed."""

import json
import sys
from concurrent.futures import Executor, Future
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")

from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator  # noqa: E402

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch):
    """Benchmarks can be imported; afterwards they are forgotten."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in ("common", "deep_contestants", "deep_evidence", "deep_retrieval"):
        sys.modules.pop(name, None)


@pytest.fixture
def retrieval(benchmarks):
    import deep_retrieval

    return deep_retrieval


def search(query, k, reference, ref_includes_query):
    """What AccuracyCalculator would ask faiss for: the k nearest others."""
    D = torch.cdist(query, reference)
    if ref_includes_query:
        D.fill_diagonal_(torch.inf)
    found = D.topk(k, largest=False)
    return found.values, found.indices


@pytest.mark.parametrize("seed", range(3))
def test_recall_at_1_and_map_at_r(retrieval, monkeypatch, seed):
    rng = np.random.RandomState(seed)
    y = torch.as_tensor(rng.permutation(np.repeat(np.arange(6), [3, 5, 8, 13, 21, 34])))
    Z = torch.as_tensor(rng.standard_normal((len(y), 3)) + 0.8 * y.numpy()[:, None])
    calculator = AccuracyCalculator(
        include=("precision_at_1", "mean_average_precision_at_r"),
        k="max_bin_count",
        knn_func=search,
    )
    expected = calculator.get_accuracy(Z, y)
    monkeypatch.setattr(retrieval, "BLOCK", 20)
    scores = retrieval.retrieval_scores(Z, y)
    assert scores["recall_at_1"] == pytest.approx(expected["precision_at_1"])
    assert scores["map_at_r"] == pytest.approx(expected["mean_average_precision_at_r"])


class Inline(Executor):
    """Runs at once, in this process."""

    def __init__(self, *_):
        pass

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


@pytest.fixture
def evidence(benchmarks, monkeypatch, tmp_path):
    """The script with results elsewhere, and training that only notes what was to be trained."""
    import deep_evidence

    trained, pictured = [], []

    def train(run, device, out, rows):
        trained.append(run)
        if out is not None:
            pictured.append(run)
        if run.scale == 3.0:
            raise FloatingPointError("diverged")
        return [{"step": run.steps, "map_at_r": 1 - run.scale / 100 - run.learning_rate}]

    monkeypatch.setattr(deep_evidence, "RESULTS", tmp_path / "deep")
    monkeypatch.setattr(deep_evidence, "ProcessPoolExecutor", Inline)
    monkeypatch.setattr(deep_evidence, "_train", train)

    def run(*options, out=tmp_path / "deep"):
        """The runs that calling the script with these options trains."""
        trained.clear()
        arguments = ["run", "--data", "omniglot28", "--out", str(out)]
        if "--losses" not in options:
            arguments += ["--losses", "ANN+"]
        monkeypatch.setattr(sys, "argv", ["deep_evidence.py", *arguments, *options])
        deep_evidence.main()
        return list(trained)

    deep_evidence.run_script, deep_evidence.pictured = run, pictured
    return deep_evidence


ALL = 2 * 5 + 3  # learning rates × scales, and seeds


def test_a_second_call_trains_nothing_again(evidence, tmp_path):
    first = evidence.run_script()
    assert len(set(first)) == len(first) == ALL
    assert {(run.part, run.scale) for run in first[-3:]} == {("test", 0.1)}  # the best trial
    lines = (tmp_path / "deep" / "runs.jsonl").read_text()
    assert evidence.run_script() == []
    assert evidence.run_script(out=tmp_path / "more") == []  # what results/deep holds counts
    assert (tmp_path / "deep" / "runs.jsonl").read_text() == lines
    assert sum("error" in record for record in evidence.read(tmp_path / "deep")) == 2


def test_the_default_is_chosen_by_validation(evidence, tmp_path):
    """Candidates get validation runs; the fake MAP@R falls with the scale, so the smallest wins."""
    euclidean, squared = "logistic, α = 0, euclidean", "logistic, α = 0, squared"
    runs = evidence.run_script("--losses", euclidean, squared, "ANN+")
    parts = [(run.part, run.loss) for run in runs]
    assert [parts.count(("validation", loss)) for loss in (euclidean, squared, "ANN+")] == [3, 3, 0]
    assert [parts.count(("test", loss)) for loss in (euclidean, squared, "ANN+")] == [3, 3, 3]
    assert {run.scale for run in runs if run.part == "validation"} == {1 / 32, 0.03}
    records = evidence.read(tmp_path / "deep")
    assert evidence.best_candidate(records) == squared
    assert [(run.part, run.loss, run.seed) for run in evidence.pictured] == [("test", squared, 0)]
    on_two = [
        {"part": "validation", "loss": loss, "data": data, "curve": [{"map_at_r": score}]}
        for loss, data, score in (
            ("a", "x", 0.9),
            ("a", "y", 0.1),
            ("b", "x", 0.6),
            ("b", "y", 0.6),
        )
    ]
    assert evidence.best_candidate(on_two) == "b"
    assert evidence.best_candidate(on_two[:3]) == "a"  # b was not judged on all of the data
    assert evidence.best_candidate([]) is None


def test_a_stopped_call_is_continued(evidence, tmp_path):
    first = evidence.run_script()
    path = tmp_path / "deep" / "runs.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]) + lines[4][:40])  # stopped while it wrote the fifth
    assert len(evidence.read(tmp_path / "deep")) == 4
    again = evidence.run_script()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(again) == ALL - 4
    assert {evidence.as_run(record) for record in records} == set(first)
    assert len(records) == ALL


def test_a_complete_file_is_not_cut(evidence, tmp_path):
    path = tmp_path / "runs.jsonl"
    evidence.drop_incomplete_line(path)
    assert not path.exists()
    for written, kept in (("", ""), ('{"a"', ""), ("{}\n{}\n", "{}\n{}\n"), ("{}\n{", "{}\n")):
        path.write_text(written)
        evidence.drop_incomplete_line(path)
        assert path.read_text() == kept


def test_trials_with_few_rows_do_not_count_as_finished(evidence, tmp_path, capsys):
    with pytest.raises(SystemExit):
        evidence.run_script("--rows", "100")
    assert "--out" in capsys.readouterr().err
    assert not (tmp_path / "deep").exists()

    trials = tmp_path / "trials"
    assert len(evidence.run_script("--rows", "100", out=trials)) == ALL
    assert evidence.run_script("--rows", "100", out=trials) == []
    assert len(evidence.run_script("--rows", "200", out=trials)) == ALL
    assert evidence.read(trials) == []
    assert len(evidence.run_script(out=trials)) == ALL
    assert len(evidence.run_script()) == ALL
    # Finished runs are none of a trial's, either.
    assert len(evidence.run_script("--rows", "100", out=tmp_path / "others")) == ALL
