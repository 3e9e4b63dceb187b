"""What CI systems read: JUnit XML, and the step summary and annotations of GitHub Actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runner.__main__ import main
from runner.comparison.compare import TableStatistics, compare_results
from runner.comparison.gate import Check, Gate, check_gate
from runner.comparison.report.ci import LARGEST_SUMMARY, comparison_junit, cut_summary, iter_annotations
from runner.evaluation.records import save_record
from runner.evaluation.report.junit import evaluation_junit
from runner.evaluation.result import Result
from runner.pages.junit import JUnitCase, JUnitSuite, render_junit
from tests.documentation import DIR, write
from tests.pages.factory import result

Run = Callable[..., tuple[str, str]]


def degraded(of: Result) -> Result:
    return replace(of, scores=of.scores - 0.2, means={m: mean - 0.2 for m, mean in of.means.items()})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has two records, `good` and `bad`."""
    monkeypatch.chdir(tmp_path)
    save_record(result("good"), tmp_path / "good")
    save_record(degraded(result("bad")), tmp_path / "bad")
    return tmp_path


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that compares the two records and returns what is printed."""

    def run(*arguments: str, candidate: str = "bad", code: int = 1) -> tuple[str, str]:
        words = ["compare", "baseline=good", f"candidate={candidate}", "statistics.permutations=500", *arguments]
        assert main(words) == code
        return tuple(capsys.readouterr())  # type: ignore[return-value]  # out and err

    return run


def test_the_rules_of_a_gate_are_cases_and_violations_are_failures(run: Run, here: Path) -> None:
    run("junit=reports/gate.xml", "+gate.floors={mrr: 0}")
    root = ElementTree.parse(here / "reports" / "gate.xml").getroot()
    (suite,) = root
    assert suite.get("name") == "bad against good"
    cases = {case.get("name"): case for case in suite}
    assert (root.get("tests"), root.get("failures"), suite.get("failures")) == ("6", "4", "4")
    failure = cases["nDCG@10 drops at most 0.01"].find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("bad: nDCG@10 fell by 0.2000")
    assert cases["RR at least 0"].find("failure") is None
    assert cases["at most 0 errors"].get("classname") == "gate.errors"
    assert "nDCG@10 drops at most 0.05, queries of type semantic" in cases


@pytest.mark.parametrize(
    ("undecided", "outcome", "annotation"),
    [("fail", "error", "::error"), ("warn", "skipped", "::warning"), ("pass", "system-out", "::notice")],
)
def test_an_undecided_rule_ends_as_the_gate_says(undecided: Any, outcome: str, annotation: str) -> None:
    comparison = compare_results([result("a"), result("b")], TableStatistics(permutations=100))
    check = Check("b", "drop", "RR", "wide", 1.0, 0.5, 0.1, p=0.25, verdict="undecided", more=20.0, differing=10.0)
    gate = Gate(undecided=undecided)
    (suite,) = ElementTree.fromstring(comparison_junit(comparison, [check], gate))
    assert [element.tag for element in suite[0]] == [outcome]
    first, *_ = iter_annotations(comparison, [check], 0, gate)
    assert first.startswith(annotation)
    assert "about 20 more queries would decide it, 10 of them on which the systems differ" in first


def test_any_text_is_valid_xml() -> None:
    suites = [JUnitSuite("<&\x00>", [JUnitCase("\ud800", "\x1b[1m", "error", "\uffff\n")])]
    (suite,) = ElementTree.fromstring(render_junit(suites))
    assert suite.get("name") == "<&\N{REPLACEMENT CHARACTER}>"
    assert suite[0].get("name") == "\N{REPLACEMENT CHARACTER}[1m"


def test_the_queries_of_an_evaluation_are_cases_by_how_they_ended() -> None:
    of = result("bm25", errors={3: "TimeoutError: no answer"})
    (suite,) = ElementTree.fromstring(evaluation_junit(of))
    statuses = list(of.queries.statuses)
    assert suite.get("tests") == str(len(statuses))
    assert suite.get("failures") == str(statuses.count("fail") + statuses.count("false_positive"))
    assert suite.get("errors") == "1"
    error = suite[3].find("error")
    assert error is not None
    assert error.get("message") == "TimeoutError: no answer"
    assert suite[0].get("classname") == f"bm25.{of.queries.types[0]}"
    assert float(str(suite[0].get("time"))) == pytest.approx(0.0015)
    wrong = next(i for i, status in enumerate(statuses) if status == "false_positive")
    failure = suite[wrong].find("failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("expected nothing; retrieved d")


def test_an_evaluation_writes_its_queries_and_a_sweep_refuses_to(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, DIR)
    words = ["dataset=beir", "dataset.path=DIR", "statistics.permutations=100", "tracking=none", "junit=queries.xml"]
    assert main(words) == 0
    assert ElementTree.parse(here / "queries.xml").getroot().get("tests") == "2"
    assert main([*words, "-m", "retriever.k1=1,2"]) == 2
    assert "junit: is only available for a single evaluation" in capsys.readouterr().err


def test_a_link_to_a_file_of_tests_stays_a_link(run: Run, here: Path) -> None:
    (here / "link.xml").symlink_to("gate.xml")
    run("junit=link.xml")
    assert (here / "link.xml").is_symlink()
    assert ElementTree.parse(here / "gate.xml").getroot().tag == "testsuites"


@pytest.mark.parametrize("file", ["good/result.json/x.xml", "good"])
def test_a_file_that_cannot_be_written_is_one_line(run: Run, file: str) -> None:
    _, err = run(f"junit={file}", code=2)
    assert f"error: junit={file}: cannot be written" in err


def test_a_workflow_gets_a_summary_and_annotations(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    (here / "summary.md").write_text("before\n")
    _, err = run("compare.queries=2")
    commands = [line for line in err.splitlines() if line.startswith("::")]
    assert [line.partition(" ")[0] for line in commands] == ["::error"] * 4 + ["::warning"] * 2
    assert commands[0].startswith("::error title=Retrieval gate::bad: nDCG@10 fell by 0.2000")
    assert commands[4].startswith("::warning title=Query q")
    summary = (here / "summary.md").read_text()
    assert summary.startswith("before\n# bad against good")
    assert "gate failed" in summary


def test_under_json_the_annotations_leave_standard_output_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    out, err = run("--json")
    assert out.startswith("{")
    assert "::error" in err
    assert "::error" not in out


def test_outside_a_workflow_nothing_is_annotated_unless_that_is_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "::" not in run()[1]
    assert "::error" in run("compare.github=always")[1]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert "::" not in run("compare.github=never")[1]


def test_a_summary_that_cannot_be_written_fails_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "good")
    _, err = run(candidate="good", code=0)
    assert "GITHUB_STEP_SUMMARY=good: cannot be written" in err


def test_annotations_are_notices_where_no_rule_is_violated_and_are_escaped() -> None:
    good = result("good", text="100 %\nof: this, and that")
    scores = good.scores.copy()
    scores[:, 2] = 0
    pair = [good, replace(good, name="a,b:c", scores=scores)]
    comparison = compare_results(pair, TableStatistics(permutations=100))
    gate = Gate(drops={"primary": 0.5})
    (line,) = iter_annotations(comparison, check_gate(gate, comparison), 5, gate)
    assert line.startswith("::notice title=Query q002 of a%2Cb%3Ac::100 %25")
    assert "\n" not in line


def test_a_summary_does_not_exceed_the_size_limit_of_github() -> None:
    assert cut_summary("short") == "short"
    cut = cut_summary("\N{EURO SIGN}" * LARGEST_SUMMARY)
    assert len(cut.encode()) <= LARGEST_SUMMARY
    assert cut.endswith("writes the whole report.\n")
