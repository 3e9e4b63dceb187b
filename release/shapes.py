"""Write the tables of what is recognised into a page, between its two comments: `python -m release.shapes FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from release.configuration import render_table
from runner.datasets.shapes import TITLES, Shape, select

BEGINNING = "<!-- Generated from runner/datasets/shapes.py: `make docs` -->"
END = "<!-- End of the generated tables -->"
INTRODUCTIONS = {
    "table": "A file of questions, documents or judgments is a table in any of these forms; compressed files too.",
    "document": """\
The id of a document is its path without the extension, unless two differ only in that. Files with other extensions are
left out and counted, unless `dataset.extensions` names them: they are then plain text.""",
    "column": """\
A column without a setting is recognised by its name. Case, spaces and hyphens do not matter, nor does the object that
contains it, as in `inputs.question`. If two columns are possible, the dataset is refused with the setting to paste. A
setting always wins.""",
    "gold column": """\
A column of gold has one of the names, a qualifier and a thing, as in `expected_file`, or a thing alone, as in `source`.
Qualifiers and things may be in the plural, and end with `id`, `name`, `path`, `title`, `text` or `content`. After a
qualifier, any other noun will do, as in `expected_restaurants`, if all that the column names is a document. A column of
gold must name documents; columns of results, such as `retrieved_contexts`, and of documents to avoid are never gold.
Without a column of gold, a column of ids in which values repeat and are all documents is the gold.""",
    "gold": "Of what a question names as gold, a name of two documents is refused with both.",
    "golden set": "Files of other programs need no format of their own, as these do not:",
    "judgments": """\
Judgments that are not in the file of questions may be in any of these forms. Columns are separated by tabs or blanks,
or else by `|`, `:`, `;` or `,`.""",
}


def write_page(page: str) -> str:
    """Return a page with the tables as they are in code."""
    before, rest = page.split(BEGINNING)
    return f"{before}{BEGINNING}\n\n{render_tables()}\n\n{END}{rest.split(END)[1]}"


def render_tables() -> str:
    """Return the tables in Markdown, each below its heading."""
    parts = []
    for group, (title, columns) in TITLES.items():
        rows = [_list_cells(shape) for shape in select(group)]
        parts += [f"### {title}", INTRODUCTIONS[group], render_table([*columns], rows)]
    return "\n\n".join(parts)


def _list_cells(shape: Shape) -> list[str]:
    signs = ", ".join(f"`{sign}`" for sign in shape.signs)
    match shape.group:
        case "column":
            return [f"`{shape.key}`", signs + (f"; {shape.about}" if shape.about else "")]
        case "gold column":
            return [shape.name, signs]
        case "golden set":
            return [shape.name, signs, f"`{shape.about}`"]
        case _:
            return [shape.name, signs, shape.about]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(write_page(file.read_text(encoding="utf-8")), encoding="utf-8")
