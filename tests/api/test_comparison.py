"""Results are compared in Python with the figures of the command `compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import runner
from retrievers import BM25
from runner.__main__ import main
from runner.comparison.comparability import NotComparable
from runner.evaluation.result import ResultError
from tests.api.conftest import DOCUMENTS, QRELS, QUERIES


def test_differences_equal_those_of_the_command(data: runner.Dataset, here: Path) -> None:
    first, second = (runner.evaluate(BM25(k1=k1), data) for k1 in (0.0, 5.0))
    assert first.run is not None
    assert second.run is not None
    assert (
        main(
            ["compare", f"baseline={first.run.id}", f"candidate={second.run.id}", f"output={here / 'out'}", "gate=none"]
        )
        == 0
    )
    written = json.loads((here / "out" / "comparison.json").read_text())
    comparison = runner.compare(first, second)
    label = comparison.labels[1]
    for measure in comparison.table:
        versus, system = comparison.difference(measure), written["measures"][measure]["systems"][label]
        own = versus.difference
        assert (versus.mean, own.mean, own.p) == (system["mean"], system["difference"], system["p"])


@pytest.mark.usefixtures("here")
def test_a_difference_is_significant_where_its_corrected_p_value_says_so() -> None:
    queries = {f"q{i}": "ships at night" for i in range(12)}
    many = runner.Dataset.of(DOCUMENTS, queries, {name: {"d1": 1} for name in queries})
    right, wrong = (
        runner.evaluate(search, many, tracking_uri="none", name=name)
        for name, search in (("right", lambda query: ["d1"]), ("wrong", lambda query: ["d2"]))
    )
    comparison = runner.compare(right, wrong)
    assert comparison.significant("nDCG@10")
    assert comparison.significant()
    assert comparison.difference("nDCG@10").difference.mean == -1
    assert not runner.compare(right, right).significant("nDCG@10")
    assert not runner.compare(right, wrong, alpha=1e-9).significant("nDCG@10")
    frame = comparison.frame.set_index(["measure", "result"])
    assert frame.loc[("nDCG@10", "wrong"), "difference"] == -1


@pytest.mark.usefixtures("here")
def test_a_difference_is_a_line_with_both_names_the_measure_and_the_verdict() -> None:
    queries = {f"q{i}": "ships at night" for i in range(12)}
    many = runner.Dataset.of(DOCUMENTS, queries, {name: {"d1": 1} for name in queries})
    first, second = (
        runner.evaluate(search, many, tracking_uri="none", name=name)
        for name, search in (("first hit", lambda query: ["d1", "d2"]), ("second hit", lambda query: ["d2", "d1"]))
    )
    comparison = runner.compare(first, second)
    line = repr(comparison.difference("RR"))
    assert line.startswith("second hit against first hit by RR: 0.5000: -0.5000 ")
    assert line.endswith("; better on 0, equal on 0, worse on 12 of 12 queries; significant")
    assert repr(runner.compare(first, first, primary="RR").difference()).endswith("; not significant")


def test_a_name_is_the_system_in_comparisons_and_tables(
    data: runner.Dataset, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [runner.evaluate(BM25(k1=k1), data, name=name) for name, k1 in (("low", 0.0), ("high", 5.0))]
    comparison = runner.compare(*results)
    assert comparison.labels == ["low", "high"]
    assert comparison.frame["result"].tolist()[:2] == ["low", "high"]
    first, second = (result.run.id for result in results if result.run)
    assert main(["compare", f"baseline={first}", f"candidate={second}", "gate=none", "--json"]) == 0
    systems = json.loads(capsys.readouterr().out)["systems"]
    assert [(system["label"], system["name"], system["retriever"]) for system in systems] == [
        ("low", "low", "low"),
        ("high", "high", "high"),
    ]
    assert main(["table", f"sweeps=[{first},{second}]", "output=paper"]) == 0
    assert json.loads((here / "paper/cells.json").read_text())["systems"] == ["low", "high"]


def test_a_name_stays_when_a_baseline_is_evaluated_again_on_other_data(
    data: runner.Dataset, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = runner.evaluate(BM25(), data, name="mine").run
    with (here / "DIR/corpus.jsonl").open("a") as corpus:
        corpus.write('\n{"_id": "new", "text": "ships at night"}\n')
    second = runner.evaluate(BM25(k1=2.0), runner.load_dataset("beir", path="DIR"), name="other").run
    assert first and second
    capsys.readouterr()
    assert main(["compare", f"baseline={first.id}", f"candidate={second.id}", "gate=none", "--json"]) == 0
    systems = json.loads(capsys.readouterr().out)["systems"]
    assert [system["label"] for system in systems] == ["mine re-evaluated", "other"]


def test_systems_of_one_name_on_several_datasets_are_a_row(
    data: runner.Dataset, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = runner.Dataset.of(DOCUMENTS, {**QUERIES, "q1": "other words"}, QRELS, name="other")
    runs = [
        runner.evaluate(BM25(k1=k1), of, name=name).run
        for of, k1 in ((data, 0.9), (other, 1.2))
        for name in ("tuned", "also tuned")
    ]
    ids = ",".join(run.id for run in runs if run)
    capsys.readouterr()
    assert main(["table", f"sweeps=[{ids}]", "output=paper"]) == 0
    content = json.loads((here / "paper/cells.json").read_text())
    assert (content["systems"], content["datasets"]) == (["tuned", "also tuned"], ["DIR", "other"])
    assert len(content["cells"]) == 4


def test_a_comparison_is_shown_as_tables(given: runner.Dataset) -> None:
    results = [runner.evaluate(BM25(k1=k1), given, tracking_uri="none") for k1 in (0.0, 5.0)]
    comparison = runner.compare(*results)
    page = comparison._repr_html_()
    assert page.count("<table") == 2
    assert "bm25 k1=5 minus bm25 k1=0" in page
    assert repr(comparison) == "ResultComparison(bm25 k1=5 against bm25 k1=0 by nDCG@10)"


def test_mistakes_are_named(given: runner.Dataset) -> None:
    result = runner.evaluate(BM25(), given, tracking_uri="none")
    other = runner.Dataset.of(DOCUMENTS, {**QUERIES, "q1": "other words"}, QRELS)
    comparison = runner.compare(result, result)
    with pytest.raises(ResultError, match="nDCG@7: not in this comparison; choose from "):
        comparison.significant("nDCG@7")
    with pytest.raises(ResultError, match="candidate=2: should be from 1 to 1"):
        comparison.significant("nDCG@10", candidate=2)
    with pytest.raises(NotComparable):
        runner.compare(result, runner.evaluate(BM25(), other, tracking_uri="none"))
    with pytest.raises(ValueError, match=r"statistics.tset: no such setting; did you mean statistics.test\?"):
        runner.compare(result, result, tset="t")
    with pytest.raises(TypeError, match="candidate 1: should be a result of evaluate or run_sweep, not str"):
        runner.compare(result, "3f2a9c01")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="needs a baseline and at least one candidate"):
        runner.compare(result)
