"""Reports as Markdown, for a pull request or a wiki.

Whatever comes from data is escaped. Knows nothing of plots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runner.reports import numbers, selection, sweep_tables, tables
from runner.reports.leaderboard import Leaderboard, told
from runner.reports.tables import Hard, Table
from runner.result import Result

RETRIEVED = 10
"""How many retrieved documents are shown of a query."""

MARKS = {"pass": "\N{CHECK MARK}", "partial": "~", "fail": "\N{MULTIPLICATION X}"}

_SPECIAL = re.compile(r"[\\`*|~]|(?<!\w)_|_(?!\w)|<(?=[\w/!?])|&(?=[\w#]+;)|\](?=[(\[:])|^[#>+-](?=\s)")
"""What Markdown would take for markup. The rest stays, so that the source is fit to read."""


def result_markdown(result: Result, hardest: int = 10) -> str:
    """Return the report of one evaluation."""
    d = result.dataset
    low_high = numbers.interval(result.intervals.get(result.primary))
    whole = [f"**{_text(m)}**: {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    parts = [
        f"# Retrieval evaluation: {_text(result.name)}",
        "\n".join(
            [
                f"- **Dataset**: {_text(tables.heading(result))}",
                f"- **Retriever**: {_text(result.retriever)}",
                f"- **{_text(result.primary)}**: {numbers.score(result.means.get(result.primary))}, "
                f"{tables.intervals_of(result)} {low_high}",
                f"- **Outcome**: {_text(tables.outcomes_line(result))}",
                f"- **Fingerprints**: dataset `{d.fingerprint}`, corpus `{d.corpus_fingerprint}`, "
                f"config `{result.config_hash}`",
            ]
        ),
        *_section("Summary measures", tables.measures_table(result)),
        *([" | ".join(whole)] if whole else []),
        *_section(tables.no_result_title(result), tables.abstention_table(result)),
        *_section("Answered although nothing is right", tables.no_result_queries(result, hardest)),
        *_section("By query type", tables.types_table(result)),
        *_section("Diagnostics", tables.settings_table(result.diagnostics)),
        *_section("Queries that raised an error", tables.errors_table(result)),
        *_hardest(result, hardest),
        *_section("Timings", tables.timings_table(result)),
        *_section("Configuration", tables.settings_table(result.config)),
        *_section("Environment", tables.settings_table(result.environment)),
    ]
    return "\n\n".join(parts) + "\n"


def sweep_markdown(board: Leaderboard, results: Sequence[Result], hardest: int = 15) -> str:
    """Return the report of a sweep; `results` are those that the leaderboard was made from, in the same order."""
    settings = [f"- `{key}`: {_text(told(value))}" for key, value in board.shared.items()]
    parts = [
        "# Retrieval sweep",
        _text(sweep_tables.board_heading(board)),
        *([f"**Best**: {_text(sweep_tables.best(board))}"] if board.queries else []),
        _text(sweep_tables.verdict(board)),
        *(_text(notice) for notice in selection.notices(board)),
        *_selection(board),
        *(["The same everywhere:\n\n" + "\n".join(settings)] if settings else []),
        *_section("Leaderboard", sweep_tables.leaderboard_table(board)),
        *_section(f"{board.primary} by query type", sweep_tables.finalists_by_type(board, results)),
        *_section(
            "Worth their time", sweep_tables.pareto_table(board), "None is both quicker and better than one of these."
        ),
        *_effects(board),
        *_section(
            "Hardest queries",
            sweep_tables.hardest_of_all(results, board.primary, hardest),
            f"By the mean {_text(board.primary)} of all combinations; the spread is their standard deviation.",
        ),
        *_section("Failures", sweep_tables.failures_table(board)),
    ]
    return "\n\n".join(parts) + "\n"


def _selection(board: Leaderboard) -> list[str]:
    parts = []
    if board.selection is not None:
        parts += _section("What the choice is worth", selection.selection_table(board.selection))
        parts += _section("Chosen without each fold", selection.folds_table(board.selection))
    if board.search is not None:
        parts += _section("Pareto front", selection.front_table(board.search))
        parts += _section("How much each setting mattered", selection.importances_table(board.search))
    return parts


def _section(title: str, table: Table, text: str = "") -> list[str]:
    """Return a table under its title, or nothing where it is empty."""
    return [f"## {_text(title)}", *([text] if text else []), _table(table)] if table.rows else []


def _table(table: Table) -> str:
    head = [_text(column.title) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    body = [[_text(text) for text in texts] for texts in table.texts()]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *body])


def _effects(board: Leaderboard) -> list[str]:
    found = sweep_tables.effects(board)
    if not found:
        return []
    parts = [
        "## What each setting does",
        f"The mean {_text(board.primary)} over all else that was swept, what matters most first.",
    ]
    for key, effect in found.items():
        parts += [f"### {_text(key)}: moves the mean by {numbers.score4(sweep_tables.reach(effect))}", _table(effect)]
    return parts


def _hardest(result: Result, limit: int) -> list[str]:
    queries = tables.hardest(result, limit)
    return ["## Hardest queries", *(_query(query, result) for query in queries)] if queries else []


def _query(query: Hard, result: Result) -> str:
    lines = [f"### {_text(query.id)}: {_text(query.text)}", ""]
    if query.type:
        lines.append(f"- **Type**: {_text(query.type)}")
    lines.append(f"- **Expected**: {_some(map(_text, query.expected))}")
    if result.found is not None:
        found = (f"**{_text(i)}** ({grade})" if grade > 0 else _text(i) for i, grade in query.found)
        lines.append(f"- **Retrieved** (gold in bold): {_some(found)}")
    lines.append(f"- **First gold at rank**: {numbers.number(query.first_gold)}")
    lines.append("- " + ", ".join(f"{_text(m)} {numbers.score(value)}" for m, value in query.values.items()))
    lines.append(f"- **Status**: {MARKS.get(query.status, '')} {_text(query.status)}")
    return "\n".join(lines)


def _some(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = f" and {len(shown) - RETRIEVED:,} more" if len(shown) > RETRIEVED else ""
    return (", ".join(shown[:RETRIEVED]) or "nothing") + more


def _text(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
