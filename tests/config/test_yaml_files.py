from __future__ import annotations

from pathlib import Path

import pytest

from runner.config.objects import ConfigError
from runner.config.yaml_files import YamlError, parse_yaml
from runner.datasets.base import DatasetError
from runner.features.mine.targets import read_yaml
from runner.features.traces.events.tools import load_tools

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
"""A kilobyte that expands to a trillion values."""


def test_aliases_that_expand_exponentially_are_refused() -> None:
    with pytest.raises(YamlError, match=r"^x\.yaml: the aliases expand to more than 100,000 values"):
        parse_yaml(BOMB, "x.yaml")
    with pytest.raises(YamlError, match="expand"):
        parse_yaml(BOMB.replace("[*a38, *a38]", "{<<: {b: *a38}}"), "x.yaml")


def test_every_reader_of_yaml_refuses_them(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(BOMB)
    with pytest.raises(DatasetError, match="expand"):
        read_yaml(file)
    with pytest.raises(ConfigError, match="expand"):
        load_tools(str(file))


def test_aliases_within_reason_and_large_files_are_read() -> None:
    assert parse_yaml("a: &a {k: 1}\nb: *a\nc: {<<: *a, m: 2}\n", "x") == {
        "a": {"k": 1},
        "b": {"k": 1},
        "c": {"k": 1, "m": 2},
    }
    assert len(parse_yaml("[" + "x," * 120_000 + "'*']", "x")) == 120_001
    assert parse_yaml(b"", "x") is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"k: [1\nb: 2\n", r"^x:2:2: invalid YAML"),
        (b"k: caf\xe9", "^x: not UTF-8 text; save it as UTF-8$"),
        (b"&a [*a]", "^x:1: invalid YAML .an alias refers to a node that contains it.$"),
        (b"a: 1\n---\nb: 1\n", "^x:2:1: invalid YAML"),
        (b"!!python/name:os.system ", "^x:1:1: invalid YAML"),
    ],
)
def test_an_error_names_line_and_column(content: bytes, problem: str) -> None:
    with pytest.raises(YamlError, match=problem):
        parse_yaml(content, "x")
