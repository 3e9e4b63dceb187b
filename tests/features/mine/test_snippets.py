"""Sections of files that hold the code of questions."""

from __future__ import annotations

import pytest

from runner.features.mine.snippets import find_section

FILE = """\
# --8<-- [start:one]
# A header.
print("one")
# --8<-- [end:one]
# [START two]
x = 2
# --8<-- [start:inner]
y = 3
# [END two]
# region three
z = 4
# endregion
def four():
    return 4
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("one", '# A header.\nprint("one")'),
        ("two", "x = 2\ny = 3"),
        ("three", "z = 4"),
        ("four", "def four():\n    return 4"),
        ("five", None),
        ("on", None),
    ],
)
def test_a_section_is_between_markers_or_a_definition(name: str, expected: str | None) -> None:
    assert find_section(FILE, name) == expected


def test_text_other_than_python_has_sections_between_markers() -> None:
    assert find_section("def (\n// [START a]\nlet x\n// [END a]", "a") == "let x"
    assert find_section("def (", "a") is None
