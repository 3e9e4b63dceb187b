"""Hits whose ids the judgments write differently, or do not have, are said before any score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrievers.runs.run_file import RunFile
from runner.__main__ import main
from runner.datasets.judged import JudgedFiles
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.report.tables import diagnostics_table
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(here: Path, capsys: pytest.CaptureFixture[str], judged: list[str], hits: list[str]) -> tuple[str, str]:
    """Evaluate one hit and one judgment a query; return what is printed before and after the score."""
    (here / "qrels.tsv").write_text("".join(f"q{i}\t0\t{name}\t1\n" for i, name in enumerate(judged)))
    (here / "run.json").write_text(json.dumps({f"q{i}": [name] for i, name in enumerate(hits)}))
    words = ["dataset=judged", "dataset.qrels=qrels.tsv", "retriever=run", "retriever.path=run.json", "tracking=none"]
    capsys.readouterr()
    assert main(words) == 0
    before, _, after = " ".join(capsys.readouterr().out.split()).partition("nDCG@10")
    return before, after


@pytest.mark.parametrize(
    ("judged", "hit", "differs"),
    [
        ("https://x.org/My%20Page", "https://x.org/My Page", "percent-encoding"),
        ("d1  ", "d1", "white space at the ends"),
        ("DOC-1", "doc-1", "capital letters"),
        ("7", "7.0", "the format of a number"),
        ("7", "007", "the format of a number"),
        ("tower.md", "tower.html", "the suffix of the file"),
        ("tower", "tower.md", "the suffix of the file"),
        ("tower.md", "/data/docs/tower.md", "the path before the name"),
        ("guide/tower.md", "tower.md", "the path before the name"),
        ("tower", "tower#3", "the number of a chunk"),
        ("tower.md", "tower.md_chunk_12", "the number of a chunk"),
        ("tower", "docs/Tower.md::4", "the number of a chunk and the suffix of the file and the path before the name"),
        ("Doc%207", " doc 7", "percent-encoding and white space at the ends and capital letters"),
    ],
)
def test_ids_that_differ_only_in_their_look_are_named_first(
    here: Path, capsys: pytest.CaptureFixture[str], judged: str, hit: str, differs: str
) -> None:
    before, _ = report(here, capsys, [judged], [hit])
    assert "warning: 0 of 1 queries with hits and gold have a judged hit; gold documents in no hit: 1; " in before
    such = f"which differs in {differs}: {judged!r} in the judgments, {hit!r} in the hits; write ids alike"
    assert " ".join(such.split()) in before


def test_one_padded_id_among_good_ones_is_said_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = report(here, capsys, ["a", "b", "c "], ["a", "b", "c"])
    such = "hits are judged under another spelling (1), which differs in white space at the ends"
    assert f"warning: gold documents in no hit: 1; {such}" in before
    assert after.startswith(" 0.667")


def test_ids_of_other_documents_are_said_with_one_of_each(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, _ = report(here, capsys, ["a", "b"], ["x", "y"])
    assert "warning: 0 of 2 queries with hits and gold have a judged hit" in before
    assert "hits have ids such as 'x', judgments such as 'a'" in before


def test_wrong_hits_of_some_queries_cause_no_warning(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = report(here, capsys, ["a", "b"], ["a", "x"])
    assert "warning" not in before + after
    assert after.startswith(" 0.500")


def test_gold_that_no_hit_contains_is_counted_in_the_diagnostics(here: Path) -> None:
    (here / "qrels.tsv").write_text("q0\t0\ta\t1\nq1\t0\tb\t1\nq1\t0\tc\t2\nq1\t0\td\t0\n")
    (here / "run.json").write_text(json.dumps({"q0": ["a"], "q1": ["x", "y"]}))
    source, metrics = JudgedFiles(qrels="qrels.tsv"), MetricSettings()
    experiment = Experiment("x", "x", RunFile(path="run.json"), source, metrics, {"choices": {}}, {})
    result = Bench(DiskStore(here / "store")).evaluate(experiment)
    assert result.diagnostics["gold_documents_in_no_hit"] == 2
    assert any(row == ["gold_documents_in_no_hit", 2] for row in diagnostics_table(result).rows)


def test_a_run_of_other_documents_gets_no_verdict(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "qrels.tsv").write_text("".join(f"q{i}\t0\td{i}\t1\n" for i in range(9)))
    for name, ids in (("good", "d"), ("fair", "dddddxxxx"), ("other", "x")):
        run = {f"q{i}": [f"{ids[i % len(ids)]}{i}"] for i in range(9)}
        (here / f"{name}.json").write_text(json.dumps(run))
    data = ["dataset=judged", "dataset.qrels=qrels.tsv"]
    sweep = ["-m", *data, "retriever=run", "retriever.path=good.json,fair.json,other.json", "tracking=none"]
    assert main([*sweep, "--json"]) == 0
    (board,) = json.loads(capsys.readouterr().out)["leaderboards"]
    assert [(row["label"], row["mean"]) for row in board["rows"]] == [
        ("path=good.json", 1.0),
        ("path=fair.json", 5 / 9),
    ]
    ((name, error),) = (of.values() for of in board["failures"])
    assert "other.json" in name
    assert error.startswith("no hit is gold of any query, so the scores say nothing; 0 of 9 queries")
    assert error.endswith("hits have ids such as 'x0', judgments such as 'd0'; are they of the same documents?")

    pair = ["compare", *data, "baseline=good.json", "candidate=[other.json,fair.json]"]
    assert main([*pair, "gate=none"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "cannot be compared with good.json, because no hit of other.json is gold of any query." in shown
    assert "fair.json is not significantly worse than good.json in nDCG@10: -0.4444" in shown
    assert "p = 0.125; about" in shown, "a single test, which is not corrected"
    assert "Gold lost by step: other.json" not in shown
    assert "Warning: other.json is not compared: no hit is gold of any query" in shown
    assert main([*pair, "gate=default"]) == 1
    assert "other.json: nDCG@10 cannot be measured" in " ".join(capsys.readouterr().out.split())
