"""The help of groups and settings: each choice has a line that says what it is."""

from __future__ import annotations

import pytest

from runner.__main__ import main
from runner.commands import list_commands
from runner.commands.help import render_topic
from runner.config import CONF
from runner.statistics.corrections import CORRECTIONS

GROUPS = sorted(folder.name for folder in CONF.iterdir() if folder.is_dir() and folder.name != "hydra")


@pytest.mark.parametrize("group", GROUPS)
def test_each_choice_of_a_group_is_described(group: str) -> None:
    text = render_topic(group, {}) or ""
    lines = [line for line in text.splitlines() if line.startswith(f"  {group}=")]
    assert all(len(line.split(maxsplit=1)) > 1 for line in lines)
    shown = {line.split()[0].partition("=")[2] for line in lines} - {"LANGUAGE"}
    languages = text.partition(f"{group}=LANGUAGE")[2]
    missing = {file.stem for file in (CONF / group).glob("[!_]*.yaml")} - shown
    assert all(name in languages for name in missing)
    assert bool(missing) == (group == "analyzer")


def test_all_languages_are_one_choice_of_the_analyzer() -> None:
    lines = (render_topic("analyzer", {}) or "").splitlines()
    assert len(lines) < 10
    assert "hindi (stop words kept), hungarian" in " ".join(lines)
    assert not any("analyzer=hindi" in line for line in lines)


def test_the_first_help_fits_80_columns_and_counts_the_choices_that_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 80
    names = {group: sorted(file.stem for file in (CONF / group).glob("[!_]*.yaml")) for group in GROUPS}
    analyzers = next(line for line in lines if line.startswith("  analyzer ")).split(maxsplit=1)[1]
    listed, _, rest = analyzers.rpartition(" and ")
    assert listed.split(", ") == names["analyzer"][: len(names["analyzer"]) - int(rest.split()[0])]
    assert f"  chunking    {', '.join(names['chunking'])}" in lines


def test_the_choices_of_settings_are_the_rows_of_their_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help", "statistics"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text and own.description in text for name, own in CORRECTIONS.items())
    assert main(["--help", "retriever=hybrid"]) == 0
    text = capsys.readouterr().out
    assert "rrf       sum of w / (rrf_k + r)" in text
    assert "retriever.normalization" in text
    assert main(["--help", "judge.order"]) == 0
    assert "  depth       the best ranks first\n" in capsys.readouterr().out


def test_a_new_row_is_a_choice_of_the_setting_the_help_and_the_error() -> None:
    from typing import Annotated

    from pydantic import TypeAdapter, ValidationError

    from retrievers.choices import OneOf, list_choices

    kind = Annotated[str, OneOf({"a": "the first", "b": "the second"})] | None
    assert list_choices(kind) == {"a": "the first", "b": "the second"}
    assert TypeAdapter(kind).validate_python("b") == "b"
    with pytest.raises(ValidationError, match="'a' or 'b'"):
        TypeAdapter(kind).validate_python("c")


@pytest.mark.parametrize(
    "topic", ["nothing", "dataset=nothing", "compare", "hydra/launcher", "judge.nothing", "nothing.order"]
)
def test_what_is_neither_group_nor_setting_has_no_choices(topic: str) -> None:
    assert render_topic(topic, list_commands()) is None
