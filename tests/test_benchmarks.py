"""The command of the benchmarks: the names of cases, and the change of figures against a reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.measure import Figure
from benchmarks.reference import describe_changes, find_changes, keep_figures, read_figures

REFERENCE = (Figure("fast", "s", 1, 2, 1), Figure("slow", "s", 3, 3, 1))


def test_an_unknown_case_is_refused_with_the_names_of_all_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["help_time", "helptime"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: unknown case: helptime; the cases are help_time, single_run, scoring")
    assert {"million_tantivy", "reading_traffic"} <= {*message.strip().replace(",", " ").split()}


def test_cases_run_in_the_order_of_the_list() -> None:
    assert [case.__name__ for case in command.choose_cases(["scoring", "help_time"])] == ["help_time", "scoring"]
    assert len(command.choose_cases([])) == len(command.EVERY)


def test_a_file_of_figures_has_their_commit_and_keeps_other_figures(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    keep_figures(REFERENCE, file)
    keep_figures([Figure("slow", "s", 6, 3, 1)], file)
    figures = read_figures(file)
    assert {name: figure["ratio"] for name, figure in figures.items()} == {"fast": 0.5, "slow": 2.0}
    assert all(figure["commit"] for figure in figures.values())


def test_changes_are_ratios_of_ratios_and_those_above_5_percent_are_named() -> None:
    reference = {figure.name: {**figure.to_dict(), "commit": "abc1234"} for figure in REFERENCE}
    figures = [Figure("fast", "s", 1.04, 2, 1), Figure("slow", "s", 3.3, 3, 1), Figure("new", "s", 1, 1, 1)]
    changes = find_changes(figures, reference)
    assert changes == pytest.approx({"fast": 1.04, "slow": 1.1})
    assert describe_changes(changes, reference) == (
        "2 ratios compared with those of commit abc1234. Worse by more than 5%: slow."
    )
    assert describe_changes({}, reference) == "None of these figures has a reference."


def test_the_command_prints_the_change_of_each_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def case() -> list[Figure]:
        return [Figure("fast", "s", 1.5, 2, 1), Figure("other", "s", 1, 2, 1)]

    reference = tmp_path / "reference.json"
    reference.write_text(json.dumps([{**figure.to_dict(), "commit": "abc1234"} for figure in REFERENCE]))
    for name, value in {"EVERY": (case,), "DATA": tmp_path, "PEER": tmp_path, "REFERENCE": reference}.items():
        monkeypatch.setattr(command, name, value)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    assert command.main(["case"]) == 0
    printed = capsys.readouterr().out
    assert "+50.0%" in printed
    assert "new" in printed
    assert "Worse by more than 5%: fast." in printed
    assert read_figures(tmp_path / "results.json")["fast"]["ratio"] == 0.75
