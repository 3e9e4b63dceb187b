"""What is said of a sweep, as tables of values and plain sentences, for the console, Markdown and HTML alike.

Knows nothing of how a table is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from runner.reports.comparison.labels import told
from runner.reports.comparison.significance import in_brief
from runner.reports.rendering.numbers import (
    format_signed,
    in_seconds,
    interval,
    interval_title,
    milliseconds,
    missing,
    number,
    observations,
    p_value,
    score,
    score4,
)
from runner.reports.rendering.tables import Column, Table, build_error_table
from runner.reports.sweep import leaderboard
from runner.reports.sweep.leaderboard import Leaderboard, LeaderboardRow
from runner.reports.sweep.selection import on_reported_data
from runner.result import Result

FEW = "the best few and the best of each retriever, and of each search type of an API"
"""What the combinations are that are shown in detail."""


def board_heading(board: Leaderboard) -> str:
    """Return what was compared on what."""
    d = board.dataset
    queries = observations(board.queries, board.clusters)
    where = "" if d is None else f"{d.name} ({d.split}), {d.documents:,} documents, {queries}: "
    what = "combination" if len(board.rows) == 1 else "combinations"
    failed = f", {len(board.failures):,} failed" if board.failures else ""
    return f"{where}{len(board.rows):,} {what} by {board.primary}{failed}"


def best(board: Leaderboard) -> str:
    """Return what leads and by which value, where it is reported if it was chosen elsewhere; there must be a row."""
    row, chosen = board.rows[0], board.selection
    if chosen is not None and not chosen.is_on_reported_data and board.primary in chosen.figures:
        figures = chosen.figures[board.primary]
        title = f"{board.primary} {chosen.reported_title}"
        return f"{chosen.winner} with {title} {score4(figures.reported)} {interval(figures.interval)}"
    return f"{row.label} with {board.primary} {score4(row.mean)} {interval((row.low, row.high))}"


def cards(board: Leaderboard) -> list[tuple[str, str, str]]:
    """Return the title, value and interval of each card of the best; there must be a row.

    Where the winner was chosen on other data, the figures that are reported come first, and the others name their data.
    """
    row, chosen = board.rows[0], board.selection
    of_best = [(board.primary, score4(row.mean), interval((row.low, row.high)))]
    of_best += [(column.title, column.show(row.means[figure]), "") for figure, column in other_columns(board).items()]
    if chosen is None or chosen.is_on_reported_data:
        return of_best
    reported = [
        (f"{measure} {chosen.reported_title}", score4(figures.reported), interval(figures.interval))
        for measure, figures in chosen.figures.items()
    ]
    return reported + [(f"{title} {chosen.selected_title}", value, note) for title, value, note in of_best]


def verdict(board: Leaderboard) -> str:
    """Return in words which combinations differ from the best."""
    n, failed = len(board.rows), len(board.failures)
    if not n:
        return "Everything failed: there is nothing to rank." if failed else "There is nothing to rank."
    if n == 1:
        return "One combination: there is nothing to compare it with."
    if not board.queries:
        return "No query has gold: there is nothing to compare by."
    differ = sum(row.differs for row in board.rows)
    by = ", by cluster" if board.clusters is not None else ""
    test = f"(p < {board.alpha:g}, {in_brief(board.test, board.correction)}{by})"
    these = f"these {observations(board.queries, board.clusters)}"
    queries = f"on {these}" if board.queries != 1 else "on this one query"
    if differ == n - 1:
        return f"All {differ} others differ from the best {test}." if n > 2 else f"The other differs from it {test}."
    if not differ:
        return f"None of {n} differs from the best {test}: they can't be told apart {queries}."
    on_top = not any(row.differs for row in board.rows[: n - differ])
    alike = f"the best {n - differ}" if on_top else f"the other {n - differ}"
    verb = "differs" if differ == 1 else "differ"
    return f"{differ} of {n} {verb} from the best {test}; {alike} can't be told apart {queries}."


def notices(board: Leaderboard) -> list[str]:
    """Return what a leaderboard's reader has to know of how its winner was found, chosen and measured, by sentence.

    And of what is not shown in detail for want of room.
    """
    made = (told.sentence() for told in (board.search, board.selection) if told is not None)
    kinds = {(row.retriever, row.search_type) for row in board.rows}
    shown = {(row.retriever, row.search_type) for row in finalists(board)}
    cut = f"The reports show no more than {leaderboard.FINALISTS} combinations in detail: the best of {len(shown)} of "
    cut += f"{len(kinds)} retrievers and search types."
    split = board.dataset.split if board.dataset else ""
    warning = [on_reported_data(split)] if is_best_of_several(board) else []
    return [*made, *warning, *board.notes, *([cut] if shown < kinds else [])]


def is_best_of_several(board: Leaderboard) -> bool:
    """Tell whether the leader was selected among several by the scores that are reported."""
    return board.selection is None and board.queries > 0 and len(board.rows) > 1


def alike(board: Leaderboard) -> set[int]:
    """Return which rows, by position, can't be told apart from the best."""
    return {i for i, row in enumerate(board.rows) if not row.differs}


def other_columns(board: Leaderboard) -> dict[str, Column]:
    """Return the columns of a leaderboard's other figures, by their name.

    What a query takes is its median: a mean, which is in the CSV, is what the slowest few make of it.
    """
    titles = {"tn_rate": "TN rate", "recall_lost": "recall lost", "rejected": "answerable rejected"}
    titles |= {"auroc": "AUROC", "median_ms": "query ms", "p95_ms": "p95 ms", "index_s": "index s"}
    shows = {"median_ms": milliseconds, "p95_ms": milliseconds, "index_s": in_seconds}
    spares = {"RR": 6, "tn_rate": 7, "auroc": 8, "p95_ms": 9, "index_s": 10}
    found = {}
    for figure in (each for each in board.others if each != "mean_ms"):
        name, at, cutoff = figure.partition("@")
        title = f"{titles.get(name, name)}{at}{cutoff}"
        found[figure] = Column(title, shows.get(name, score), numeric=True, spare=spares.get(name, 5))
    return found


def leaderboard_table(board: Leaderboard) -> Table:
    """Return the leaderboard."""
    run, others = [Column("run", shortened, spare=1)] if board.logged else [], other_columns(board)
    columns = [
        Column("#", number, numeric=True),
        Column("combination", least=28),
        Column(board.primary, score4, numeric=True),
        *run,
        Column(interval_title(board.confidence, board.units), interval, numeric=True, spare=4),
        Column("to best", format_signed, numeric=True, spare=2),
        Column("p", p_value, numeric=True, spare=3),
        Column("differs", lambda value: "yes" if value else "", spare=3),
        Column("W/T/L", numeric=True, spare=11),
        *others.values(),
    ]
    rows = [
        [
            row.rank,
            row.label,
            row.mean,
            *([row.run] if run else []),
            (row.low, row.high),
            row.difference,
            row.p,
            row.differs,
            f"{row.wins}/{row.ties}/{row.losses}" if row.rank > 1 else "",
            *(row.means[name] for name in others),
        ]
        for row in board.rows
    ]
    return Table(columns, rows)


SHORT_ID = 8
"""How much of a run's id is shown: its beginning tells it from the others, and is taken for the whole."""


def shortened(run: str) -> str:
    """Return the beginning of a run's id."""
    return run[:SHORT_ID]


def to_compare(board: Leaderboard, overrides: Sequence[str] = ()) -> str:
    """Return how the best two are compared, "" where there are none, or the run of one is not known (yet).

    `overrides` say where the runs are.
    """
    runs = [shortened(row.run) for row in board.rows[:2] if row.run]
    if len(runs) < 2:
        return ""
    return " ".join([f"python -m runner compare baseline={runs[1]} candidate={runs[0]}", *overrides])


def finalists(board: Leaderboard) -> list[LeaderboardRow]:
    """Return the best few combinations and the best of each retriever and search type, at most eight."""
    return [board.rows[i] for i in leaderboard.finalists([(row.retriever, row.search_type) for row in board.rows])]


def letters_table(board: Leaderboard) -> Table:
    """Return the finalists with the letters that tell them apart, empty where there is nothing to tell apart."""
    columns = [
        Column("#", number, numeric=True),
        Column("combination", least=28),
        Column(board.primary, score4, numeric=True),
        Column("letters"),
    ]
    rows = [[row.rank, row.label, row.mean, board.letters[row.rank]] for row in finalists(board) if board.letters]
    return Table(columns, rows)


def letters_note(board: Leaderboard) -> str:
    """Return how the letters of the finalists are to be read."""
    return (
        f"{FEW[0].upper()}{FEW[1:]}, each tested against each: those that have a letter in common "
        f"can't be told apart (p < {board.alpha:g}, {in_brief(board.test, board.correction)})."
    )


def rival(board: Leaderboard) -> LeaderboardRow | None:
    """Return what the best is best compared to: the best of another retriever, or else the second."""
    measured = [row for row in board.rows[1:] if not math.isnan(row.mean)]
    others = [row for row in measured if row.retriever != board.rows[0].retriever]
    return next(iter([*others, *measured]), None)


def finalists_by_type(board: Leaderboard, results: Sequence[Result]) -> Table:
    """Return the primary measure of the finalists by query type, empty unless there are two types with a value."""
    if not board.rows:
        return Table([], [])
    best = results[board.rows[0].position].by_type
    types = [name for name, means in best.items() if not missing(means.get(board.primary))]
    columns = [Column("#", number, numeric=True), Column("combination", least=28), Column("all", score, numeric=True)]
    columns += [Column(f"{name or '(none)'} ({best[name]['queries']:g})", score, numeric=True) for name in types]
    rows = [
        [row.rank, row.label, row.mean, *(results[row.position].by_type.get(t, {}).get(board.primary) for t in types)]
        for row in finalists(board)
    ]
    return Table(columns, rows if len(types) > 1 else [])


def pareto(board: Leaderboard) -> list[LeaderboardRow]:
    """Return the combinations that none is both as quick as and better than, the quickest first."""
    timed = [row for row in board.rows if not missing(row.means.get("median_ms")) and not missing(row.mean)]
    front: list[LeaderboardRow] = []
    for row in sorted(timed, key=lambda row: (row.means["median_ms"], -row.mean, row.rank)):
        if not front or row.mean > front[-1].mean:
            front.append(row)
    return front


def pareto_table(board: Leaderboard) -> Table:
    """Return the combinations worth their time."""
    columns = [
        Column("#", number, numeric=True),
        Column("combination", least=28),
        Column(board.primary, score4, numeric=True),
        Column("query ms", milliseconds, numeric=True),
        Column("p95 ms", milliseconds, numeric=True),
        Column("index s", in_seconds, numeric=True),
    ]
    names = ("median_ms", "p95_ms", "index_s")
    rows = [[row.rank, row.label, row.mean, *(row.means.get(name) for name in names)] for row in pareto(board)]
    return Table(columns, rows)


def numeric_settings(board: Leaderboard) -> list[str]:
    """Return the swept settings that differ and are numbers throughout."""
    found = []
    for key in dict.fromkeys(key for row in board.rows for key in row.swept if key not in board.shared):
        values = [row.swept[key] for row in board.rows if key in row.swept]
        if len(set(map(str, values))) > 1 and None not in map(as_number, values):
            found.append(key)
    return found


def effects(board: Leaderboard) -> dict[str, Table]:
    """Return for each swept setting what the primary measure is at each of its values, what matters most first."""
    columns = [
        Column("value"),
        Column("n", number, numeric=True),
        Column("mean", score4, numeric=True),
        Column("best", score4, numeric=True),
    ]
    found: dict[str, Table] = {}
    for key in dict.fromkeys(key for row in board.rows for key in row.swept if key not in board.shared):
        having = [row for row in board.rows if key in row.swept and not math.isnan(row.mean)]
        groups: dict[str, list[float]] = {}
        for row in sorted(having, key=lambda row: _in_order(row.swept[key])):
            groups.setdefault(told(row.swept[key]), []).append(row.mean)
        folds = [[value, len(means), sum(means) / len(means), max(means)] for value, means in groups.items()]
        if len(folds) > 1:
            found[key] = Table(columns, folds)
    return dict(sorted(found.items(), key=lambda effect: (-reach(effect[1]), effect[0])))


def reach(effect: Table) -> float:
    """Return how far the mean moves between a setting's worst and best value."""
    means = [float(row[2]) for row in effect.rows]
    return max(means) - min(means)


def failures_table(board: Leaderboard) -> Table:
    """Return the combinations that failed, those that say the same together."""
    return build_error_table(
        "combinations", {e: [f.name for f in group] for e, group in board.failures_by_error().items()}
    )


def as_number(value: object) -> float | None:
    """Return a swept value as a number, if it is one or is the text of one; settings may come as they were typed."""
    try:
        number = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _in_order(value: object) -> tuple[bool, float, str]:
    """Order swept values: numbers by size, then the rest by their text."""
    number = as_number(value)
    return number is None, number or 0.0, str(value)
