"""Presets that are named by their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.__main__ import main
from runner.config.composing import compose_config

PRESET = "# @package _global_\ndefaults: [{override /retriever: sqlite_fts}]\nmetrics: {depth: DEPTH}\n"


def test_a_preset_may_be_any_file_and_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my presets" / "first.yaml"
    file.parent.mkdir()
    for depth, name in ((50, "my presets/first.yaml"), (60, str(file))):
        file.write_text(PRESET.replace("DEPTH", str(depth)))
        config, choices = compose_config("evaluate", [f"experiment={name}"])
        assert (config.metrics.depth, choices["retriever"], choices["experiment"]) == (depth, "sqlite_fts", name)


def test_a_preset_without_a_file_is_one_of_the_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "bm25_grid" in compose_config("evaluate", ["experiment=bm25_grid.yaml"])[0].sweep.union


def test_a_missing_file_is_named_as_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "experiment=presets/first.yaml"]) == 2
    assert capsys.readouterr().err == "error: experiment=presets/first.yaml: no such file\n"
    assert main(["plan", f"experiment={'x' * 300}.yaml"]) == 2
    assert capsys.readouterr().err.endswith("x.yaml: no such file\n")


def test_a_sweep_in_a_file_has_the_name_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.yaml").write_text(
        "# @package _global_\nhydra: {mode: MULTIRUN}\nsweep: {union: [{retriever: bm25, retriever.k1: [0.6, 0.9]}]}\n"
    )
    assert main(["plan", "experiment=first.yaml", "tracking=none"]) == 0
    assert capsys.readouterr().out.startswith("first: 2 combinations on golden (test)")
