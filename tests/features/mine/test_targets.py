"""Targets, and what a name is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from runner.datasets.base import DatasetError
from runner.features.mine.targets import Target, Targets, Way, read_targets
from tests.features.mine.worlds import LOOP, PARALLEL, TARGETS


@pytest.fixture
def targets(tmp_path: Path) -> Targets:
    (tmp_path / "targets.yaml").write_text(yaml.safe_dump({"targets": TARGETS}))
    return read_targets(tmp_path / "targets.yaml")


@pytest.mark.parametrize(
    ("name", "way", "ids"),
    [
        (PARALLEL, "exact", [PARALLEL]),
        ("kit.agents.ParallelAgent", "alias", [PARALLEL]),
        ("kit.elsewhere.LoopAgent", "name", [LOOP]),
        ("LoopAgent", "name", [LOOP]),
        ("kit.Tool", "ambiguous", ["kit.tools.Tool", "kit.old.Tool"]),
        ("other.LoopAgent", "unresolved", []),
        ("kit.Gone", "unresolved", []),
        ("", "unresolved", []),
    ],
)
def test_a_name_is_resolved_exactly_or_reported(targets: Targets, name: str, way: Way, ids: list[str]) -> None:
    resolution = targets.resolve(name)
    assert resolution.way == way
    assert [targets.all[position].id for position in resolution.targets] == ids


def test_a_bare_lower_case_word_is_never_a_module() -> None:
    listed = [("kit.agents.sub_agents", "MODULE"), ("kit.tools.tool_context", ""), ("kit.tools.tool_context.Tool", "")]
    targets = Targets([Target(name, kind) for name, kind in (*listed, ("kit.agents.run_all", "FUNCTION"))])
    assert [targets.resolve(word).way for word in ("sub_agents", "tool_context")] == ["unresolved"] * 2
    assert targets.resolve("run_all").way == "name"
    assert targets.resolve("kit.agents.sub_agents").way == "exact"


def test_without_a_common_package_a_last_name_is_enough() -> None:
    targets = Targets([Target("one.A", ""), Target("two.B", "")])
    assert targets.root == ""
    assert targets.resolve("three.B").way == "name"


def test_the_text_of_a_target_has_all_its_fields(targets: Targets) -> None:
    corpus = targets.corpus
    assert corpus.titles[0] == "ParallelAgent"
    assert corpus.texts[0] == (
        f"{PARALLEL}\ndef __init__(self, sub_agents):\n\n"
        "Runs its sub-agents at the same time, each in isolation.\n\ntimeout: float Seconds to wait."
    )
    bare = list(corpus.ids).index("kit.bare")
    assert corpus.texts[bare] == "kit.bare\ndef bare(level):"
    assert corpus.metadata[bare]["docstring"] is False


def test_targets_with_the_same_alias_are_merged(tmp_path: Path) -> None:
    listed = [
        {"id": "p.A", "aliases": ["p.B"]},
        {"id": "p.B", "docstring": "What it is.", "aliases": ["p.C"]},
        {"id": "p.A", "signature": "def A():"},
        {"id": "p.D"},
    ]
    (tmp_path / "targets.yaml").write_text(yaml.safe_dump(listed))
    targets = read_targets(tmp_path / "targets.yaml")
    assert [target.id for target in targets.all] == ["p.A", "p.D"]
    assert targets.all[0].text == "p.A\ndef A():\n\nWhat it is."
    assert {targets.resolve(name).targets for name in ("p.A", "p.B", "p.C")} == {(0,)}
    assert "merged 2 of 4 targets" in targets.notes[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "targets.yaml: expected a list of targets"),
        ("other: 1", "targets.yaml: expected a list of targets"),
        ("- id: a\n- name: b", "targets.yaml, target 2: 'id' or 'fqn' is missing; the fields are name"),
        ("- id: a\n  aliases: b", "targets.yaml, target 1: 'aliases' is 'b'; it must be a list"),
        ("- id: a\n  methods: 5", "targets.yaml, target 1: 'methods' is 5; it must be a list"),
        ("- id: a\n  properties: one", "targets.yaml, target 1: 'properties' is 'one'; it must be a list"),
        ("- id: a\n  - b", "targets.yaml:2:3: invalid YAML"),
        ("- one", "targets.yaml, target 1: expected a JSON object, found 'one'"),
    ],
)
def test_an_error_names_its_place(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "targets.yaml").write_text(content)
    with pytest.raises(DatasetError, match=re.escape(message)):
        read_targets(tmp_path / "targets.yaml")
