"""The assertion of the pytest plug-in decides as the gate of `compare`, and costs nothing where it is not used."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import runner
from retrievers.lexical.bm25 import BM25
from runner.comparison.comparability import NotComparable
from runner.comparison.gate import Gate
from runner.config.objects import ConfigError
from runner.evaluation.records import save_record
from runner.evaluation.result import Result, ResultError
from runner.testing.regression import UndecidedWarning, assert_no_regression
from runner.tracking.record import Finished
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from tests.documentation import ROOT
from tests.pages.factory import result

QUICK = {"permutations": 500}


def degraded(of: Result) -> Result:
    return replace(of, scores=of.scores - 0.2, means={m: mean - 0.2 for m, mean in of.means.items()})


def test_a_result_that_is_not_worse_passes() -> None:
    assert_no_regression(result("new"), result("old"), statistics=QUICK)


def test_a_regression_fails_with_the_rules_and_the_queries() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_no_regression(degraded(result("new")), result("old"), statistics=QUICK)
    lines = str(caught.value).splitlines()
    assert lines[0] == "gate failed: 4 of 5 rules violated"
    assert lines[1].startswith("  new: nDCG@10 fell by 0.2000")
    assert "Largest losses in nDCG@10:" in lines
    assert lines[-1].startswith("  -0.2")


def test_an_undecided_gate_fails_warns_or_passes() -> None:
    scores = result("old").scores.copy()
    scores[:, 0] = 0
    unlucky = replace(result("new"), scores=scores)
    with pytest.raises(AssertionError, match="gate undecided: 2 of 5 rules undecided"):
        assert_no_regression(unlucky, result("old"), statistics=QUICK)
    rules = {"drops": {"primary": 0.01}}
    with pytest.warns(UndecidedWarning, match="more queries would decide it"):
        assert_no_regression(unlucky, result("old"), gate={**rules, "undecided": "warn"}, statistics=QUICK)
    assert_no_regression(unlucky, result("old"), gate={**rules, "undecided": "pass"}, statistics=QUICK)


@pytest.mark.parametrize(
    "gate", ["none", Gate(drops={"primary": 0.5}), {"drops": {"primary": 0.5}}, {"drops": {"mrr": 0.5}}]
)
def test_the_gate_is_chosen_by_its_name_or_its_rules(gate: Gate | dict[str, dict[str, float]] | str) -> None:
    assert_no_regression(degraded(result("new")), result("old"), gate=gate, statistics=QUICK)


def test_results_are_named_as_on_the_command_line(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_record(result("old"), tmp_path / "baselines" / "main")
    assert_no_regression("baselines/main", tmp_path / "baselines" / "main", statistics=QUICK)
    Tracker(tracking).log([Finished(degraded(result("new")), {})])
    with pytest.raises(AssertionError, match="new: nDCG@10 fell by"):
        assert_no_regression("latest", "baseline:main", tracking_uri=tracking.uri, statistics=QUICK)


def test_mistakes_are_errors_rather_than_failures() -> None:
    with pytest.raises(ConfigError, match="gate=strict: no such choice; choose from default, none"):
        assert_no_regression(result("new"), result("old"), gate="strict")
    with pytest.raises(ConfigError, match=r"gate\.floor: no such setting; did you mean gate\.floors"):
        assert_no_regression(result("new"), result("old"), gate={"floor": {}})
    with pytest.raises(ConfigError, match="gone: no such file"):
        assert_no_regression("gone", result("old"))
    other = replace(result("new"), dataset=replace(result("new").dataset, fingerprint="0" * 32))
    with pytest.raises(NotComparable, match="cannot be evaluated on the candidate's data: the record of old does not"):
        assert_no_regression(other, result("old"))
    assert issubclass(NotComparable, ResultError)


DOCUMENTS = {f"d{i}": f"{word} and nothing else" for i, word in enumerate(("ship", "tower", "ferry", "market"))}
QUERIES = {f"q{i}": word for i, word in enumerate(("ship", "tower", "ferry", "market"))}
QRELS = {f"q{i}": {f"d{i}": 1} for i in range(4)}


def test_results_of_the_python_api_are_compared_also_where_the_data_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = runner.Dataset.of(DOCUMENTS, QUERIES, QRELS)
    after = runner.Dataset.of({**DOCUMENTS, "d0": "nothing", "d4": "a ship"}, QUERIES, QRELS)
    old, new = (runner.evaluate(BM25(), data, tracking_uri="none") for data in (before, after))
    strict = {"drops": {"primary": 0.0}, "alpha": None}
    assert_no_regression(new, old, gate=strict, dataset=after, statistics=QUICK)
    given = runner.evaluate(lambda query, k: ["d0"], before, tracking_uri="none")
    with pytest.raises(NotComparable, match="is an object that was passed in Python"):
        assert_no_regression(new, given, dataset=after)
    with pytest.raises(AssertionError, match="fell by"):
        assert_no_regression(given, old, gate=strict, statistics=QUICK)


TEST = """
from pathlib import Path

def test_search(assert_no_regression):
    assert_no_regression("new", "old", statistics={"permutations": 200})
"""


def test_a_test_asks_for_the_assertion_by_its_name(tmp_path: Path) -> None:
    save_record(result("old"), tmp_path / "old")
    save_record(degraded(result("new")), tmp_path / "new")
    (tmp_path / "test_search.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "AssertionError: gate failed: 4 of 5 rules violated" in done.stdout


def test_a_session_that_does_not_use_it_imports_nothing_of_the_program() -> None:
    code = "import sys, pytest, runner.pytest_plugin; print(*[m for m in sys.modules if m[:2] in ('ru', 'nu')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) <= {"runner", "runner.pytest_plugin", "runpy", "numbers"}


def test_the_entry_point_names_the_plug_in() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert points == {"retrieval_runner": "runner.pytest_plugin"}
    assert importlib.import_module(points["retrieval_runner"]).provide_assertion
