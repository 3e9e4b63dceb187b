"""Settings come back from the shell and from Hydra as they were."""

from __future__ import annotations

import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from omegaconf import OmegaConf

from runner.config.arguments import arguments
from tests.strategies.arguments import QUOTED_TEXTS

TRICKY = ["a b", "a,b", "a=b", "it's", 'say "x"', "${HOME}", "null", "True", "12", "-1e5", ".5", "nan", "inf", "ü",
          "~/x", "[a]", "{a}", "a#b", "", " a", "\\", "C:\\x", "glob(x)", "a:b", "1_000", "."]  # fmt: skip


VALUES = [1, 0.5, True, None, ["a", "1", "x,y", 2], {"a": 1, "b": "true"}, [["füx"], []]]


def read(typed: str) -> dict[str, object]:
    """Return what the shell and Hydra make of what is typed."""
    overrides = OverridesParser.create().parse_overrides(shlex.split(typed))
    config = OmegaConf.create({override.key_or_group: override.value() for override in overrides})
    made = OmegaConf.to_container(config, resolve=True)
    assert isinstance(made, dict)
    return {str(key): value for key, value in made.items()}


@pytest.mark.parametrize("value", TRICKY)
def test_a_value_that_looks_like_something_else_stays_text(value: str) -> None:
    assert read(arguments({"path": value, "name": "n"})) == {"path": value, "name": "n"}


@pytest.mark.parametrize("value", VALUES)
def test_numbers_lists_and_mappings_come_back_with_their_types(value: object) -> None:
    (back,) = read(arguments({"path": value})).values()
    assert back == value and type(back) is type(value)


@given(QUOTED_TEXTS)
def test_any_line_of_text_comes_back(value: str) -> None:
    assert read(arguments({"path": value})) == {"path": value}


def test_a_usual_path_is_typed_without_quotes() -> None:
    assert arguments({"dataset": "beir", "dataset.path": "/a/b-c_1.0/x.jsonl"}) == (
        "dataset=beir dataset.path=/a/b-c_1.0/x.jsonl"
    )
