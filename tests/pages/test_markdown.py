"""Markdown: data stays data, and a row a line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pages.markdown import escape, markdown_table, render_rows
from runner.pages.tables import Column, Table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<b>x</b>", r"\<b>x\</b>"),
        ("p < 0.05", "p < 0.05"),
        ("*x* `y` ~z~", r"\*x\* \`y\` \~z\~"),
        ("[a](b)", r"[a\](b)"),
        ("[0.1, 0.2]", "[0.1, 0.2]"),
        ("snake_case _x_", r"snake_case \_x\_"),
        ("&lt; & &#60;", r"\&lt; & \&#60;"),
        ("# a\nb", r"\# a b"),
    ],
)
def test_markup_in_data_is_escaped_and_the_rest_left_readable(text: str, shown: str) -> None:
    assert escape(text) == shown


@given(st.lists(st.lists(st.text(), min_size=3, max_size=3), min_size=1, max_size=4))
def test_every_row_of_a_table_is_one_line_with_all_its_cells(cells: list[list[str]]) -> None:
    lines = markdown_table(Table([Column("a"), Column("b"), Column("c")], cells)).split("\n")
    assert len(lines) == len(cells) + 2
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 4 for line in lines)


def test_numbers_stand_to_the_right() -> None:
    table = Table([Column("a"), Column("n", numeric=True)], [["x|y", "1"]])
    assert markdown_table(table).split("\n") == ["| a | n |", "| --- | ---: |", r"| x\|y | 1 |"]
    assert render_rows(["a", "b"], [["**x**", "y"]]).split("\n") == ["| a | b |", "| --- | --- |", "| **x** | y |"]
