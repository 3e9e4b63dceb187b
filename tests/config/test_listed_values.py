"""Where a comment, a help text or a page lists the values of a setting, it lists exactly those of its type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import get_args, get_type_hints

import pytest

from release.configuration import CONF, Setting, iter_settings
from retrievers.choices import list_choices
from runner.commands import list_commands
from runner.comparison.criteria import COSTS
from runner.statistics.settings import CorrectionName, Test
from runner.sweep.study import Sampler

HELPS = list_commands()
HELP_LINE = re.compile(r"^ +([\w.]+)=(\S+)((?: {2,}|\n {20,})\S.*(?:\n {14,}\S.*)*)", re.MULTILINE)
"""An override in a help text, and what is said of it, on the same line and on those below."""


def find_values(setting: Setting) -> tuple[str, ...]:
    """Return the values of the type of a setting, () unless it is an enumeration."""
    module, _, name = setting.target.rpartition(".")
    hints = get_type_hints(getattr(import_module(module), name), include_extras=True) if module else {}
    return tuple(list_choices(hints.get(setting.key.rpartition(".")[2])))


def check_listed(text: str, values: Iterable[str], shown: set[str]) -> None:
    """Check that a text that names a value beyond those already shown names every value, and no other one.

    A list that ends in `...` is an excerpt. What a clause lists is one word between commas, and one of the values.
    """
    values, plain = set(values), re.sub(r"\([^()]*\)", "", text)
    if not values & set(find_words(text)) - shown or ", ..." in text:
        return
    assert values <= {*find_words(text), *shown}
    for clause in re.split(r"[:;]", plain):
        listed = {word.strip() for word in re.split(r",| or ", f" {clause} ")}
        words = {word for word in listed if re.fullmatch(r"\S+", word)}
        assert not words & values or words <= {*values, "null"}


def find_words(text: str) -> list[str]:
    """Return the words of a text; one with a dot, such as a file, is one word."""
    return [word.rstrip(".") for word in re.findall(r"[\w.+]+", text)]


ENUMERATIONS = [
    pytest.param(setting, find_values(setting), id=f"{file.relative_to(CONF)}:{setting.key}")
    for file in sorted(CONF.rglob("*.yaml"))
    if file.parent.name != "hydra"
    for setting in iter_settings(file)
    if find_values(setting)
]


@pytest.mark.parametrize(("setting", "values"), ENUMERATIONS)
def test_a_comment_that_lists_the_values_of_a_setting_lists_all(setting: Setting, values: tuple[str, ...]) -> None:
    check_listed(setting.comment, values, {setting.default})


@pytest.mark.parametrize("name", HELPS)
def test_a_help_that_lists_the_values_of_a_setting_lists_all(name: str) -> None:
    settings = {f"statistics.{setting.key}": setting for setting in iter_settings(CONF / "_statistics.yaml")}
    settings |= {setting.key: setting for setting in iter_settings(CONF / f"{name}.yaml")}
    said: dict[str, list[tuple[str, str]]] = {}
    for key, value, text in HELP_LINE.findall(HELPS[name].help.read_text(encoding="utf-8")):
        said.setdefault(key, []).append((value, text))
    for key in said.keys() & settings.keys():
        values = find_values(settings[key])
        shown = {settings[key].default, *(value for value, _ in said[key])}
        if len(said[key]) > 1:
            assert not values or shown == set(values)
        check_listed("; ".join(text for _, text in said[key]), values, shown)


@pytest.mark.parametrize(("name", "kind"), [("test", Test), ("correction", CorrectionName)])
def test_the_tables_of_statistics_have_a_row_for_each_value(name: str, kind: object) -> None:
    page = (CONF.parent / "docs" / "statistics.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| `{name}` \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE)[1:] == list(list_choices(kind))


def test_the_pages_on_searches_name_every_sampler_and_every_cost() -> None:
    page = (CONF.parent / "docs" / "search.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", page, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows["sampler"])) == set(get_args(Sampler))
    assert set(re.findall(r"`(\w+)`", rows["objectives"])) - {"null"} == set(COSTS)
    page = (CONF.parent / "docs" / "explorer.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| cost \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    named = [title for row in table.splitlines() for title in re.findall(r"`(.*?)`", row.split("|")[1])]
    assert named == [cost.title for cost in COSTS.values()]


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("or b, c: alternatives", True),
        ("or b (short), c (long, longer)", True),
        ("a, b, c; null: by the file's extension", True),
        ("how it works", True),
        ("or b, ...", True),
        ("or b", False),
        ("a, b, c, d", False),
        ("or b, c or d: alternatives", False),
    ],
)
def test_a_list_is_complete_if_it_has_all_values_and_no_other(text: str, listed: bool) -> None:
    try:
        check_listed(text, ("a", "b", "c"), {"a"})
    except AssertionError:
        assert not listed
    else:
        assert listed
