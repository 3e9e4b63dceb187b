"""Each command and feature keeps its contract, and a broken one is refused in one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.commands import list_commands
from runner.config import features
from runner.config.features import Command, Document, Feature, FeatureError, list_features
from runner.testing.features import check_command, check_document, check_feature


@pytest.mark.parametrize("name", list_commands())
def test_a_command_keeps_its_contract(name: str) -> None:
    check_command(name)


@pytest.mark.parametrize("name", list_features())
def test_a_feature_keeps_its_contract(name: str) -> None:
    check_feature(name)


def test_the_contract_refuses_a_command_without_a_config_file(monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command("does nothing", module="runner.features.cache.command", help=Path(__file__))
    monkeypatch.setattr("runner.testing.features.list_commands", lambda: {"nothing": command})
    with pytest.raises(AssertionError, match=r"conf/nothing\.yaml is missing"):
        check_command("nothing")


@pytest.mark.parametrize(
    ("keys", "words", "fault"),
    [
        ("folder files", ("gone=1",), "exit code 2"),
        ("folder", ("one",), r"printed the keys \['folder', 'files'\], but declares \['folder'\]"),
    ],
)
def test_a_document_that_is_not_as_declared_is_a_fault(
    keys: str, words: Sequence[str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = Command("creates a project", documents=[Document(keys, "the files")])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runner.testing.features.list_commands", lambda: {"new": command})
    with pytest.raises(AssertionError, match=fault):
        check_document("new", *words)


@pytest.mark.parametrize(
    ("module", "text", "problem"),
    [
        ("feature_of_a_number", "FEATURE = 1\n", "declares no FEATURE"),
        ("feature_of_nothing", "import gone_module\n", "gone_module"),
        ("feature_that_is_empty", "", "FEATURE"),
    ],
)
def test_a_broken_feature_of_another_package_is_named(
    module: str,
    text: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(features, "list_entry_points", lambda group: {"broken": module})
    list_features.cache_clear()
    try:
        with pytest.raises(FeatureError, match=problem):
            list_features()
        assert main(["--help"]) == 2
    finally:
        monkeypatch.delitem(sys.modules, module, raising=False)
        list_features.cache_clear()
    assert module in capsys.readouterr().err


def test_a_feature_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "list_entry_points", lambda group: {"judge": "another_judge"})
    list_features.cache_clear()
    try:
        with pytest.raises(FeatureError, match="another_judge: the name judge"):
            list_features()
    finally:
        list_features.cache_clear()


def test_a_feature_without_a_command_adds_only_sections() -> None:
    assert Feature().command is None
    assert "golden" in list_features()
    assert "golden" not in list_commands()
