"""The reference of the configuration is current, and has the keys, defaults, comments and limits of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from pydantic import Field

from release.configuration import CONF, TARGETS, Setting, describe_type, iter_settings, read_header, render_page
from runner.config.addresses import LocalPath

ROOT = Path(__file__).parents[2]

FILE = """\
# What it is, in
# two lines:  python -m runner retriever=x
#   retriever.path=FILE
# Another use:  python -m runner retriever=x retriever.k=2
defaults: [_self_]
_target_: retrievers.lexical.bm25.BM25
path: ???            # a file
k1: 0.9              # a number; null:
                     # the paper's
# How it runs:
weights: {a: 1, b: [2,
   3]} # by name
nested:
  # One of two.
  flag: true
names:
  - x
  - y # last
sharp: "a#b"
prompt: |-
  Two
  lines
threads: 4 # parallel calls
"""


WITHOUT_CLASS = {
    "accept": "sets a rule of its gate, whose class is that of the chosen gate",
    "_shared": "its keys are settings of every command, which no class has",
    "cache": "ages and sizes are texts with a unit, but numbers in the class",
    "plan": "has the settings of evaluate",
}
"""Files of commands with keys whose types are not read from a class."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_the_page_is_current() -> None:
    assert render_page() == (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8"), (
        "run `make docs`, or `python -m release.configuration docs/configuration.md`"
    )


def test_the_keys_of_every_command_have_the_types_of_a_class() -> None:
    settings = {file.stem: list(iter_settings(file)) for file in CONF.glob("*.yaml")}
    assert {stem for stem, of in settings.items() if not all(key.target for key in of)} == set(WITHOUT_CLASS)
    for stem, key in TARGETS:
        assert any(setting.key.startswith(key) for setting in settings[stem])


def test_a_key_has_its_default_and_the_comments_behind_and_above_it(file: Path) -> None:
    target = "retrievers.lexical.bm25.BM25"
    assert list(iter_settings(file)) == [
        Setting("path", "???", "a file", "", target, "str"),
        Setting("k1", "0.9", "a number; null: the paper's", "", target, "float"),
        Setting("weights", "{a: 1, b: [2, 3]}", "by name", "How it runs:", target, "map"),
        Setting("nested.flag", "true", "", "One of two.", "", "bool"),
        Setting("names", "[x, y]", "", "", target, "seq"),
        Setting("sharp", '"a#b"', "", "", target, "str"),
        Setting("prompt", "|- Two lines ", "", "", target, "str"),
        Setting("threads", "4", "parallel calls", "", target, "int"),
    ]


def test_a_header_is_split_into_the_description_and_commands(file: Path) -> None:
    assert read_header(file) == (
        "What it is, in two lines.",
        [
            "python -m runner retriever=x \\\n    retriever.path=FILE",
            "# Another use",
            "python -m runner retriever=x retriever.k=2",
        ],
    )


def test_a_file_that_extends_another_group_shows_its_keys_and_types() -> None:
    section = render_page().partition("### `reranker=api`\n")[2].partition("\n### ")[0]
    assert "| `reranker.max_calls` | `null` | integer, at least 0 | maximum number of requests" in section
    assert "It also has" not in section


def test_every_key_of_a_dataset_is_listed() -> None:
    for file in CONF.glob("dataset/*.yaml"):
        own = yaml.safe_load(file.read_text(encoding="utf-8")).keys() - {"_target_", "defaults"}
        assert {setting.key.partition(".")[0] for setting in iter_settings(file)} == own, file


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Annotated[float, Field(ge=0, le=1)], "number, 0 to 1"),
        (Annotated[int | None, Field(ge=1)], "integer, at least 1"),
        (Annotated[float, Field(gt=0)], "number, more than 0"),
        (Literal["a", "b"] | None, "`a`, `b`"),
        (str | list[str], "text, list"),
        (LocalPath | None, "path"),
        (dict[str, int], "mapping"),
        (Setting, ""),
    ],
)
def test_a_type_is_described_in_words(kind: object, words: str) -> None:
    assert describe_type(kind) == words
