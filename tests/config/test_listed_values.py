"""Where a comment, a help text or a page lists the values of a setting, it lists exactly those of its type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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


def is_complete(text: str, values: Iterable[str], shown: set[str]) -> bool:
    """Return whether a text that names a value beyond those already shown names every value, and no other one.

    A list that ends in `...` is an excerpt. What a clause lists is one word between commas, and one of the values.
    """
    values, plain = set(values), re.sub(r"\([^()]*\)", "", text)
    if not values & set(find_words(text)) - shown or ", ..." in text:
        return True
    for clause in re.split(r"[:;]", plain):
        listed = {word.strip() for word in re.split(r",| or ", f" {clause} ")}
        words = {word for word in listed if re.fullmatch(r"\S+", word)}
        if words & values and not words <= {*values, "null"}:
            return False
    return values <= {*find_words(text), *shown}


def find_words(text: str) -> list[str]:
    """Return the words of a text; one with a dot, such as a file, is one word."""
    return [word.rstrip(".") for word in re.findall(r"[\w.+]+", text)]


def test_a_comment_that_lists_the_values_of_a_setting_lists_all() -> None:
    listed = [
        (file, setting, values)
        for file in CONF.rglob("*.yaml")
        if file.parent.name != "hydra"
        for setting in iter_settings(file)
        if (values := find_values(setting))
    ]
    assert len(listed) > 50
    assert [(f, s.key) for f, s, values in listed if not is_complete(s.comment, values, {s.default})] == []


def iter_incomplete(name: str) -> Iterator[str]:
    """Yield the settings whose values a help text lists with one missing, or with another one."""
    settings = {f"statistics.{setting.key}": setting for setting in iter_settings(CONF / "_statistics.yaml")}
    settings |= {setting.key: setting for setting in iter_settings(CONF / f"{name}.yaml")}
    lines: dict[str, list[tuple[str, str]]] = {}
    for key, value, text in HELP_LINE.findall(HELPS[name].help.read_text(encoding="utf-8")):
        lines.setdefault(key, []).append((value, text))
    for key in lines.keys() & settings.keys():
        values, text = find_values(settings[key]), "; ".join(text for _, text in lines[key])
        shown = {settings[key].default, *(value for value, _ in lines[key])}
        is_partial = len(lines[key]) > 1 and values and shown != set(values)
        if is_partial or not is_complete(text, values, shown):
            yield f"{name}: {key}"


def test_a_help_that_lists_the_values_of_a_setting_lists_all() -> None:
    assert [place for name in HELPS for place in iter_incomplete(name)] == []


@pytest.mark.parametrize(("name", "kind"), [("test", Test), ("correction", CorrectionName)])
def test_the_tables_of_statistics_have_a_row_for_each_value(name: str, kind: object) -> None:
    page = (CONF.parent / "docs" / "statistics.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| `{name}` \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE)[1:] == list(list_choices(kind))


def test_the_pages_on_searches_name_every_sampler_and_every_cost() -> None:
    page = (CONF.parent / "docs" / "search.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", page, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows["sampler"])) == set(get_args(Sampler))
    page = (CONF.parent / "docs" / "explorer.md").read_text(encoding="utf-8")
    table = page.partition("| cost | in settings | meaning |\n|---|---|---|\n")[2].partition("\n\n")[0]
    costs = re.findall(r"^\| `(.+?)` \| `(\w+)` \|", table, re.MULTILINE)
    assert costs == [(cost.title, name) for name, cost in COSTS.items()]


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
    assert is_complete(text, ("a", "b", "c"), {"a"}) == listed
