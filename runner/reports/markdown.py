"""Reports as Markdown, for a pull request or a wiki.

Whatever comes from data is escaped. Knows nothing of plots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runner.reports import grade_tables, insight_tables, numbers, selection, sweep_tables, tables
from runner.reports.insight_tables import Insights
from runner.reports.leaderboard import Leaderboard, told
from runner.reports.tables import Hard, Table
from runner.result import Result

RETRIEVED = 10
"""How many retrieved documents are shown of a query."""

MARKS = {"pass": "\N{CHECK MARK}", "partial": "~", "fail": "\N{MULTIPLICATION X}"}

_SPECIAL = re.compile(r"[\\`*|~]|(?<!\w)_|_(?!\w)|<(?=[\w/!?])|&(?=[\w#]+;)|\](?=[(\[:])|^[#>+-](?=\s)")
"""What Markdown would take for markup. The rest stays, so that the source is fit to read."""


def result_markdown(result: Result, found: Insights, hardest: int = 10) -> str:
    """Return the report of one evaluation and its insights."""
    d, missed = result.dataset, insight_tables.failures_table(result, found, hardest)
    low_high = numbers.interval(result.intervals.get(result.primary))
    whole = [f"**{escaped(m)}**: {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    parts = [
        f"# Retrieval evaluation: {escaped(result.name)}",
        "\n".join(
            [
                f"- **Dataset**: {escaped(tables.heading(result))}",
                f"- **Retriever**: {escaped(result.retriever)}",
                f"- **{escaped(result.primary)}**: {numbers.score(result.means.get(result.primary))}, "
                f"{tables.intervals_of(result)} {low_high}",
                f"- **Outcome**: {escaped(tables.outcomes_line(result))}",
                f"- **Fingerprints**: dataset `{d.fingerprint}`, corpus `{d.corpus_fingerprint}`, "
                f"config `{result.config_hash}`",
            ]
        ),
        *_section("Summary measures", tables.measures_table(result)),
        *([" | ".join(whole)] if whole else []),
        *_section(tables.no_result_title(result), tables.abstention_table(result)),
        *_section("Answered although nothing is right", tables.no_result_queries(result, hardest)),
        *_grades(result, hardest),
        *_threshold(found),
        *_section("By query type", tables.types_table(result)),
        *_section(
            "Foretold by the scores alone",
            insight_tables.predictors_table(found),
            escaped(insight_tables.predictors_note(result)),
        ),
        *_section("Diagnostics", tables.settings_table(result.diagnostics)),
        *_section("Queries that raised an error", tables.errors_table(result)),
        *_section(
            "Why gold is missed", insight_tables.classes_table(found), escaped(insight_tables.failures_note(found))
        ),
        *_section("Missed, with the evidence", missed, insight_tables.evidence_note(missed)),
        *_hardest(result, hardest),
        *_section("Timings", tables.timings_table(result)),
        *_section("Configuration", tables.settings_table(result.config)),
        *_section("Environment", tables.settings_table(result.environment)),
    ]
    return "\n\n".join(parts) + "\n"


def _grades(result: Result, lowest: int) -> list[str]:
    if result.grades is None:
        return []
    return [
        *_section(
            "A language model's grades", grade_tables.grade_table(result), escaped(grade_tables.missing_line(result))
        ),
        *_section("Its verdicts", grade_tables.verdict_table(result)),
        *_section("The lowest grades", grade_tables.lowest_table(result, lowest)),
    ]


def sweep_markdown(board: Leaderboard, results: Sequence[Result], hardest: int = 15) -> str:
    """Return the report of a sweep; `results` are those that the leaderboard was made from, in the same order."""
    settings = [f"- `{key}`: {escaped(told(value))}" for key, value in board.shared.items()]
    parts = [
        "# Retrieval sweep",
        escaped(sweep_tables.board_heading(board)),
        *([f"**Best**: {escaped(sweep_tables.best(board))}"] if board.queries else []),
        escaped(sweep_tables.verdict(board)),
        *(escaped(notice) for notice in selection.notices(board)),
        *_selection(board),
        *(["The same everywhere:\n\n" + "\n".join(settings)] if settings else []),
        *_section("Leaderboard", sweep_tables.leaderboard_table(board)),
        *_section(
            "Which can be told apart", sweep_tables.letters_table(board), escaped(sweep_tables.letters_note(board))
        ),
        *_section(f"{board.primary} by query type", sweep_tables.finalists_by_type(board, results)),
        *_section(
            "Worth their time", sweep_tables.pareto_table(board), "None is both quicker and better than one of these."
        ),
        *_effects(board),
        *_section(
            "Hardest queries",
            insight_tables.hardest_of_all(results, board.primary, hardest),
            escaped(insight_tables.hardest_note(results, board.primary)),
        ),
        *_section(
            "Queries that combinations disagree on",
            insight_tables.divisive(results, board.primary, hardest),
            f"By the spread, the standard deviation of their {escaped(board.primary)}.",
        ),
        *_section("Failures", sweep_tables.failures_table(board)),
    ]
    return "\n\n".join(parts) + "\n"


def _threshold(found: Insights) -> list[str]:
    title, note = "Choosing a threshold", escaped(insight_tables.thresholds_note(found))
    parts = _section(title, insight_tables.thresholds_table(found), note)
    return parts or ([f"## {title}", note] if note else [])


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
    return [f"## {escaped(title)}", *([text] if text else []), markdown_table(table)] if table.rows else []


def markdown_table(table: Table) -> str:
    """Return a table as Markdown, its texts escaped."""
    head = [escaped(column.title) for column in table.columns]
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    body = [[escaped(text) for text in texts] for texts in table.texts()]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *body])


def _effects(board: Leaderboard) -> list[str]:
    found = sweep_tables.effects(board)
    if not found:
        return []
    parts = [
        "## What each setting does",
        f"The mean {escaped(board.primary)} over all else that was swept, what matters most first.",
    ]
    for key, effect in found.items():
        parts += [
            f"### {escaped(key)}: moves the mean by {numbers.score4(sweep_tables.reach(effect))}",
            markdown_table(effect),
        ]
    return parts


def _hardest(result: Result, limit: int) -> list[str]:
    queries = tables.hardest(result, limit)
    return ["## Hardest queries", *(_query(query, result) for query in queries)] if queries else []


def _query(query: Hard, result: Result) -> str:
    lines = [f"### {escaped(query.id)}: {escaped(query.text)}", ""]
    if query.type:
        lines.append(f"- **Type**: {escaped(query.type)}")
    lines.append(f"- **Expected**: {_some(map(escaped, query.expected))}")
    if result.found is not None:
        found = (f"**{escaped(i)}** ({grade})" if grade > 0 else escaped(i) for i, grade in query.found)
        lines.append(f"- **Retrieved** (gold in bold): {_some(found)}")
    lines.append(f"- **First gold at rank**: {numbers.number(query.first_gold)}")
    lines.append("- " + ", ".join(f"{escaped(m)} {numbers.score(value)}" for m, value in query.values.items()))
    lines.append(f"- **Status**: {MARKS.get(query.status, '')} {escaped(query.status)}")
    return "\n".join(lines)


def _some(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = f" and {len(shown) - RETRIEVED:,} more" if len(shown) > RETRIEVED else ""
    return (", ".join(shown[:RETRIEVED]) or "nothing") + more


def escaped(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
