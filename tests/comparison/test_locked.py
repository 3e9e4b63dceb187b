"""A locked split answers, counts and corrects, and shows nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest
from pydantic import ValidationError

from runner.__main__ import main
from runner.comparison.compare import TableStatistics, compare_results
from runner.comparison.gate import Gate
from runner.comparison.locked import ask_locked_split, compute_level
from runner.config.objects import ConfigError
from runner.evaluation.records import save_record
from runner.evaluation.result import Result
from runner.store.base import RunFiles
from runner.testing.regression import UndecidedWarning, assert_no_regression
from tests.pages.factory import result

Run = Callable[..., tuple[str, str]]

LOCKED = ("gate=none", "gate.proof=noninferior", "gate.locked=release", "gate.looks=20", "+gate.drops={primary: 0.3}")
GATE = Gate(drops={"primary": 0.3}, proof="noninferior", locked="release", looks=20)


def lower(by: float, name: str) -> Result:
    of = result(name)
    return replace(of, scores=of.scores - by, means={m: mean - by for m, mean in of.means.items()})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that compares records with `base` and returns what is printed; `worse` and `bad` lost 0.2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for of in (result("base"), result("same"), result("other", seed=5), lower(0.2, "bad"), lower(0.21, "worse")):
        save_record(of, tmp_path / of.name)

    def run(candidate: str, *arguments: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["compare", "baseline=base", f"candidate={candidate}", *LOCKED, *arguments]) == code
        return tuple(" ".join(text.split()) for text in capsys.readouterr())  # type: ignore[return-value]

    return run


def ask(candidate: Result, folder: Path, gate: Gate = GATE, baseline: Result | None = None) -> str:
    """Return the answer of a split, with its look."""
    comparison = compare_results([baseline or result("base"), candidate], TableStatistics(permutations=100))
    (check,) = ask_locked_split(gate, comparison, RunFiles(folder))
    look = check.look
    assert look is not None
    return f"{check.verdict} {look.number}/{look.budget}, {look.left} left, {look.level:.3g}, {look.is_repeated}"


def test_answers_are_counted_and_a_yes_costs_more_than_a_no(run: Run) -> None:
    out, _ = run("bad", code=4)
    assert "gate undecided: the locked split release answers no" in out
    assert "bad: not shown that every rule holds, at level 0.0013; look 1 of 20 at the locked split release" in out
    assert "19 looks left" in out
    out, _ = run("same")
    assert "gate passed: the locked split release answers yes" in out
    assert "same: every rule holds, at level 0.0013; look 2 of 20 at the locked split release, 18 looks left" in out
    out, _ = run("worse", code=4)
    assert "at level 6.6e-05; look 3 of 20" in out


def test_the_same_question_is_answered_again_without_a_look(run: Run) -> None:
    run("bad", code=4)
    run("worse", code=4)
    out, _ = run("bad", code=4)
    assert "look 1 of 20 at the locked split release (the same question as before, which is not counted" in out
    assert "18 looks left" in out
    out, _ = run("bad", "gate.drops.primary=0.25", code=4)  # another limit is another question
    assert "look 3 of 20" in out


def test_several_candidates_are_several_looks(run: Run) -> None:
    document = orjson.loads(run("[bad,worse,other]", "--json", code=4)[0])
    checks = document["gate"]["checks"]
    assert [check["look"]["number"] for check in checks] == [1, 2, 3]
    assert [check["look"]["left"] for check in checks] == [19, 18, 17]
    assert [check["verdict"] for check in checks] == ["undecided", "undecided", "pass"]


def test_reports_have_the_answer_and_nothing_that_settings_could_be_fitted_to(run: Run, tmp_path: Path) -> None:
    out, err = run("[bad,other]", "output=report", "junit=gate.xml", "compare.github=always", code=4)
    written = {file.name: file.read_text() for file in (tmp_path / "report").iterdir()}
    assert written.keys() == {"comparison.md", "comparison.json", "comparison.html"}
    suites = ElementTree.parse(tmp_path / "gate.xml").getroot()
    (case,), (passed,) = suites
    error = case.find("error")
    assert error is not None
    assert case.get("name") == "every rule, at the locked split release"
    assert passed.find("error") is None
    texts = [out, err, *written.values(), ElementTree.tostring(suites, encoding="unicode")]
    for text in texts:
        assert "look 1 of 20" in text
        assert not any(hint in text for hint in ("nDCG", "0.2000", "q001", "lighthouse", "significant"))
    assert "::error" in err
    assert orjson.loads(written["comparison.json"])["gate"]["passed"] is False


def test_a_split_that_answered_everything_gives_no_answer(run: Run) -> None:
    run("bad", "gate.looks=2", code=4)
    run("same", "gate.looks=2")
    _, err = run("worse", "gate.looks=2", code=2)
    assert "gate.locked=release: all 2 looks at these queries are used up; choose new queries" in err
    run("bad", "gate.looks=2", code=4)  # it was asked before


def test_the_terms_of_a_split_stay_as_they_were(run: Run) -> None:
    run("bad", code=4)
    _, err = run("same", "gate.looks=30", code=2)
    assert "gate.looks=30: the split release has answered 1 question with looks=20; set it back" in err
    _, err = run("same", "gate.alpha=0.2", code=2)
    assert "gate.alpha=0.2: the split release has answered 1 question with alpha=0.05" in err


def test_a_locked_split_is_not_combined_with_what_shows_more(run: Run) -> None:
    _, err = run("bad", "compare.among=sweep", code=2)
    assert "compare.among: a locked split corrects for all looks at it; remove compare.among" in err
    assert main(["explain", "baseline=base", "candidate=bad", *LOCKED]) == 2


def test_floors_and_errors_must_hold_as_well(run: Run) -> None:
    run("same", "+gate.floors={primary: 0.99}", code=4)
    run("same", "+gate.floors={primary: 0.1}")
    out, _ = run("same", "+gate.floors={primary: 0.2}", "gate.max_errors=0", "gate.drops.primary=0.4")
    assert "look 3 of 20" in out


@pytest.mark.parametrize("budget", [1, 7, 40])
def test_the_levels_of_all_looks_of_all_courses_add_up_to_alpha(budget: int) -> None:
    total = sum(math.comb(budget, yes + 1) * compute_level(0.05, budget, yes) for yes in range(budget))
    assert total == pytest.approx(0.05 * (1 - 0.5**budget))


def test_documents_that_change_do_not_start_the_count_again(tmp_path: Path) -> None:
    assert ask(lower(0.2, "bad"), tmp_path) == "undecided 1/20, 19 left, 0.00125, False"
    moved = replace(result("x").dataset, fingerprint="f" * 32, corpus_fingerprint="e" * 32)
    base, bad = (replace(of, dataset=moved) for of in (result("base"), lower(0.21, "bad")))
    assert ask(bad, tmp_path, baseline=base).startswith("undecided 2/20")
    assert ask(lower(0.21, "bad"), tmp_path, replace(GATE, locked="next")).startswith("undecided 1/20")
    few_queries = result("base", queries=25), result("same", queries=25)
    assert ask(few_queries[1], tmp_path, baseline=few_queries[0]).startswith("pass 1/20")


def test_looks_that_cannot_be_written_give_no_answer(tmp_path: Path) -> None:
    (tmp_path / "looks").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be counted"):
        ask(result("same"), tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"proof": "regression"}, "locked=release answers what is proven; set proof=noninferior"),
        ({"drops": {}}, "locked=release needs a rule on a drop"),
        ({"locked": "../up"}, "locked"),
        ({"looks": 0}, "looks"),
    ],
)
def test_settings_that_cannot_be_locked_are_rejected(settings: dict[str, object], message: str) -> None:
    values = {"drops": {"primary": 0.0}, "proof": "noninferior", "locked": "release"} | settings
    with pytest.raises(ValidationError, match=message):
        Gate(**values)  # type: ignore[arg-type]


def test_the_assertion_asks_the_same_split(tmp_path: Path) -> None:
    store = tmp_path / "cache"
    rules = {"drops": {"primary": 0.3}, "proof": "noninferior", "locked": "release", "looks": 20}
    with pytest.raises(AssertionError) as caught:
        assert_no_regression(lower(0.2, "bad"), result("base"), gate=rules, store_path=store)
    lines = str(caught.value).splitlines()
    assert lines[0] == "gate undecided: the locked split release answers no"
    assert len(lines) == 2
    assert "look 1 of 20 at the locked split release, 19 looks left" in lines[1]
    assert ask(lower(0.2, "bad"), tmp_path).endswith("True")
    assert_no_regression(result("same"), result("base"), gate=rules, store_path=store)
    with pytest.warns(UndecidedWarning, match="look 3 of 20"):
        assert_no_regression(lower(0.21, "bad"), result("base"), gate={**rules, "undecided": "warn"}, store_path=store)
