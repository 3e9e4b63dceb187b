"""What a report in Markdown is made of, for a pull request or a wiki: tables under their titles, escaped texts.

Whatever comes from data is escaped. Knows nothing of what is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from runner.pages.sections import ReportSection
from runner.pages.tables import Table

_SPECIAL = re.compile(r"[\\`*|~]|(?<!\w)_|_(?!\w)|<(?=[\w/!?])|&(?=[\w#]+;)|\](?=[(\[:])|^[#>+-](?=\s)")
"""What Markdown would take for markup. The rest stays, so that the source is fit to read."""


def render_sections(sections: Iterable[ReportSection]) -> Iterator[str]:
    """Yield the blocks of all sections that have something to show."""
    for section in sections:
        if section.is_empty or section.markdown == "":
            continue
        blocks = [escape(section.note)] if section.note else []
        if section.markdown is None:
            blocks += [render_lines(section.lines)] if section.lines else []
            for subtitle, table in section.tables.items():
                blocks += [f"### {escape(subtitle)}", markdown_table(table)] if subtitle else [markdown_table(table)]
        else:
            blocks.append(section.markdown)
        yield from fold(section.title, blocks) if section.folded else (f"## {escape(section.title)}", *blocks)


def fold(title: str, blocks: Sequence[str]) -> list[str]:
    """Return blocks that a reader unfolds."""
    text = title.replace("&", "&amp;").replace("<", "&lt;")
    return [f"<details><summary>{text}</summary>", *blocks, "</details>"]


def render_lines(lines: Sequence[str]) -> str:
    """Return lines as a list, a single one as a paragraph."""
    return escape(lines[0]) if len(lines) == 1 else "\n".join(f"- {escape(line)}" for line in lines)


def markdown_table(table: Table) -> str:
    """Return a table as Markdown, its texts escaped."""
    titles = [escape(column.title) for column in table.columns]
    rows = [[escape(text) for text in texts] for texts in table.texts()]
    return render_rows(titles, rows, [column.numeric for column in table.columns])


def render_rows(titles: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """Return a table of texts that are escaped already; a column that is `numeric` stands to the right."""
    rule = ["---:" if right else "---" for right in numeric or [False] * len(titles)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [titles, rule, *rows])


def escape(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
