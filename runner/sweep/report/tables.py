"""The leaderboard of a sweep as sentences and tables, for the console, Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runner.comparison.criteria import COSTS, HOLE_RATE
from runner.comparison.leaderboard import FINALISTS, Leaderboard
from runner.comparison.notes import judge_command, warn_most_holes
from runner.comparison.report.significance import in_brief
from runner.comparison.swept_settings import SettingEffect, estimate_shares
from runner.comparison.systems import SystemsByDataset
from runner.evaluation.result import Result
from runner.pages.numbers import (
    FORMATS,
    format_count,
    format_documents,
    format_signed,
    interval,
    missing,
    number,
    observations,
    p_value,
    percent,
    score,
    score4,
)
from runner.pages.tables import Column, Table, build_error_table
from runner.statistics.importance import Importance
from runner.statistics.settings import Statistics
from runner.sweep.report.board_columns import list_board_columns, shorten_run
from runner.sweep.report.selection import (
    describe_folds,
    describe_search,
    describe_selection,
    title_reported,
    title_selected,
    warn_selected_on_reported,
)

FINALISTS_ARE = "the best few, and the best of each retriever and of each search type of an API"
"""How finalists are selected."""

LOSSES_ARE = "Gold documents that are not among the first hits, by the step that lost them."
"""What the losses by step count."""

DROPPED_ARE = "Means are over the searched queries; they do not compare with those of the leaderboard."
"""What the means of dropped combinations cover."""

MOST_SHARES, LEAST_SHARE = 12, 0.005
"""Most settings and pairs whose importance is shown, and the least share of one."""


def board_heading(board: Leaderboard) -> str:
    """Return the dataset and the number of combinations."""
    d = board.dataset
    queries = observations(board.queries, board.clusters)
    if d is not None and not board.queries:
        queries = f"{format_count(d.queries, 'query', 'queries')} without gold"
    where = "" if d is None else f"{d.name} ({d.split}), {format_documents(d.documents)}, {queries}: "
    combinations = format_count(len(board.rows), "combination", "combinations")
    failed = f", {len(board.failures):,} failed" if board.failures else ""
    dropped = f", {len(board.race.dropped):,} more dropped by the race" if board.race and board.race.dropped else ""
    return f"{where}{combinations} by {board.primary}{failed}{dropped}"


def describe_best(board: Leaderboard) -> str:
    """Return the leader and its score, where it is reported if it was selected elsewhere; there must be a row."""
    row, chosen = board.rows[0], board.selection
    if chosen is not None and not chosen.is_on_reported_data and board.primary in chosen.figures:
        figures = chosen.figures[board.primary]
        shown = f"{board.primary} {title_reported(chosen)} {score4(figures.reported)} {interval(figures.interval)}"
        if not chosen.folds or chosen.is_unanimous:
            return f"{chosen.winner} with {shown}"
        in_sample = f"{board.primary} {title_selected(chosen)} {score4(figures.selected)}"
        return f"{chosen.winner} with {in_sample}; {shown} ({describe_folds(chosen)})"
    return f"{row.label} with {board.primary} {score4(row.mean)} {interval((row.low, row.high))}"


def cards(board: Leaderboard) -> list[tuple[str, str, str]]:
    """Return the title, value and interval of each card of the leader; there must be a row.

    Where the winner was selected on other data, the reported figures come first, and the others name their data.
    """
    row, chosen = board.rows[0], board.selection
    of_best = [(board.primary, score4(row.mean), interval((row.low, row.high)))]
    of_best += [(column.title, column.show(row.means[name]), "") for name, column in criteria_columns(board).items()]
    if chosen is None or chosen.is_on_reported_data:
        return of_best
    reported = [
        (f"{measure} {title_reported(chosen)}", score4(figures.reported), interval(figures.interval))
        for measure, figures in chosen.figures.items()
    ]
    of_measures = {board.primary, *(c.title for c in board.criteria if c.measure)}
    where = {title: title_selected(chosen, title in of_measures) for title, _, _ in of_best}
    return reported + [(f"{title} {where[title]}".rstrip(), value, note) for title, value, note in of_best]


def verdict(board: Leaderboard) -> str:
    """Return which combinations differ significantly from the best."""
    n, failed = len(board.rows), len(board.failures)
    if not n:
        return "All combinations failed, so there is nothing to rank." if failed else "Nothing to rank."
    if n == 1:
        return "There is only one combination, so there is nothing to compare it with."
    if not board.queries:
        return "No query has gold, so combinations cannot be compared."
    differ = sum(row.difference.significant for row in board.rows)
    by = ", by cluster" if board.clusters is not None else ""
    test = f"(p < {board.statistics.alpha:g}, {in_brief(board.statistics.test, board.statistics.correction)}{by})"
    queries = f"on {name_queries(board)}"
    if differ == n - 1:
        return (
            f"All {differ} others differ from the best {test}."
            if n > 2
            else f"The other one differs from the best {test}."
        )
    if not differ:
        return f"None of {n} differs significantly from the best {test} {queries}."
    on_top = not any(row.difference.significant for row in board.rows[: n - differ])
    alike = f"the best {n - differ}" if on_top else f"the other {n - differ}"
    verb = "differs" if differ == 1 else "differ"
    return f"{differ} of {n} {verb} from the best {test}; {alike} do not differ significantly {queries}."


def name_queries(board: Leaderboard) -> str:
    """Return the queries behind the primary mean in words."""
    return f"these {observations(board.queries, board.clusters)}" if board.queries != 1 else "this one query"


def describe_detectable(board: Leaderboard) -> str:
    """Return which differences from the best the test of a leaderboard cannot see; "" if nothing differs."""
    if not board.detectable > 0:
        return ""
    tested = observations(board.queries, board.clusters)
    if math.isinf(board.detectable):
        return f"{tested}: too few for any difference to be significant."
    return (
        f"{tested}: differences from the best below about {score4(board.detectable)} usually cannot be seen (power "
        f"80%, {in_brief(board.statistics.test, board.statistics.correction)})."
    )


def describe_search_gain(board: Leaderboard) -> str:
    """Return how much a search of as many equal systems gains by choosing the best, and how much this one did."""
    gain = board.search_gain
    if math.isnan(gain.expected):
        return ""
    return (
        f"By chance alone, a search of {gain.systems:,} equal systems gains {format_signed(gain.expected)} on these "
        f"queries; yours gained {format_signed(gain.observed)} (the best minus the mean of all)."
    )


def notices(board: Leaderboard) -> list[str]:
    """Return what a leaderboard can show, and remarks on its search, selection, race, data, and what reports omit."""
    search = [describe_search(board.search)] if board.search else []
    selection = [describe_selection(board.selection)] if board.selection else []
    kinds = {(row.retriever, row.search_type) for row in board.rows}
    shown = {(row.retriever, row.search_type) for row in board.finalists}
    cut = f"Reports describe at most {FINALISTS} combinations in detail, here the best of {len(shown)} of "
    cut += f"{len(kinds)} retrievers and search types."
    split = board.dataset.split if board.dataset else ""
    warning = [warn_selected_on_reported(split)] if board.is_best_of_several else []
    race = [board.race.describe()] if board.race else []
    lines = [line for line in (describe_detectable(board), describe_search_gain(board)) if line]
    return [*lines, *search, *selection, *race, *warning, *board.notes, *([cut] if shown < kinds else [])]


def warn_holes_of_best(board: Leaderboard) -> str:
    """Return a line to show before a leaderboard if hardly any hit of the best is judged, otherwise ""."""
    name = next((own.name for own in board.criteria if own.name.startswith(HOLE_RATE)), "")
    if not name or not board.rows or board.dataset is None:
        return ""
    return warn_most_holes(board.rows[0].means.get(name, math.nan), int(name.removeprefix(HOLE_RATE)), board.dataset)


def describe_judging(board: Leaderboard, alone: bool = False, overrides: Sequence[str] = ()) -> str:
    """Return what is not judged and the command that judges it, "" if it matters little.

    It pools the hits of the best few combinations, or of all if the leaderboard is `alone` in its sweep.
    """
    text = board.holes if board.queries else "No query has gold, so nothing is measured" if board.rows else ""
    runs = [row.run for row in board.rows if row.run][:FINALISTS]
    if text and runs:
        pooled = [board.sweep] if alone and board.sweep else runs
        text += f"; judge the hits: {judge_command([*map(shorten_run, pooled)], overrides)}"
    return text


def alike(board: Leaderboard) -> set[int]:
    """Return the positions of the rows that do not differ significantly from the best."""
    return {i for i, row in enumerate(board.rows) if board.queries and not row.difference.significant}


def criteria_columns(board: Leaderboard) -> dict[str, Column]:
    """Return the columns of a leaderboard besides the primary measure, by name."""
    return {
        c.name: Column(c.title, FORMATS[c.format], numeric=True, spare=c.priority)
        for c in board.criteria
        if c.priority is not None
    }


def leaderboard_table(board: Leaderboard, limit: int | None = None) -> Table:
    """Return the leaderboard, or its first rows."""
    own, others = [of for of in list_board_columns(board) if of.shown], criteria_columns(board)
    rows = [[*(of.value(row) for of in own), *(row.means[name] for name in others)] for row in board.rows[:limit]]
    return Table([*(of.column for of in own), *others.values()], rows)


def compare_command(board: Leaderboard, overrides: Sequence[str] = ()) -> str:
    """Return the command that compares the best two, with overrides; "" unless both runs and their scores are known."""
    runs = [shorten_run(row.run) for row in board.rows[:2] if row.run and not math.isnan(row.mean)]
    if len(runs) < 2:
        return ""
    command = f"python -m runner compare baseline={runs[1]} candidate={runs[0]}"
    return " ".join([command, *list_compare_overrides(board, overrides)])


def list_compare_overrides(board: Leaderboard, overrides: Sequence[str] = ()) -> list[str]:
    """Return the overrides with which `compare` shows the p-values of the leaderboard, after others."""
    among = [f"compare.among={shorten_run(board.sweep)}"] if board.sweep and len(board.rows) > 2 else []
    statistics = [
        f"statistics.{name}={value}"
        for name, value in vars(board.statistics).items()
        if name != "correction" and value != getattr(Statistics(), name)
    ]
    return [*overrides, *among, *statistics]


def systems_table(systems: SystemsByDataset | None, limit: int | None = None) -> Table:
    """Return the score of each system on each dataset; empty for fewer than two datasets."""
    if systems is None or not systems.systems:
        return Table([], [])
    columns = [Column("system", least=28), Column("mean rank", _format_rank, numeric=True)]
    columns += [Column(title, score4, numeric=True) for title in systems.datasets]
    return Table(columns, [[system.label, system.mean_rank, *system.scores] for system in systems.systems[:limit]])


def _format_rank(value: float | None) -> str:
    return number(value) if value is None or value == int(value) else f"{value:.1f}"


def letters_table(board: Leaderboard) -> Table:
    """Return the finalists with their letters of significance; empty without any."""
    columns = [
        Column("#", number, numeric=True),
        Column("combination", least=28),
        Column(board.primary, score4, numeric=True),
        Column("letters"),
    ]
    rows = [[row.rank, row.label, row.mean, board.letters[row.rank]] for row in board.finalists if board.letters]
    return Table(columns, rows)


def letters_note(board: Leaderboard) -> str:
    """Return what the letters of the finalists mean."""
    return (
        f"{FINALISTS_ARE[0].upper()}{FINALISTS_ARE[1:]}. Two without a common letter differ significantly "
        f"(p < {board.statistics.alpha:g}, {in_brief(board.statistics.test, board.statistics.correction)})."
    )


def finalists_by_type(board: Leaderboard, results: Sequence[Result]) -> Table:
    """Return the primary measure of the finalists by query type; empty unless two types have a value."""
    if not board.rows or not results:
        return Table([], [])
    best = results[board.rows[0].position].by_type
    types = [name for name, means in best.items() if not missing(means.get(board.primary))]
    columns = [Column("#", number, numeric=True), Column("combination", least=28), Column("all", score, numeric=True)]
    columns += [Column(f"{name or '(none)'} ({best[name]['queries']:g})", score, numeric=True) for name in types]
    rows = [
        [row.rank, row.label, row.mean, *(results[row.position].by_type.get(t, {}).get(board.primary) for t in types)]
        for row in board.finalists
    ]
    return Table(columns, rows if len(types) > 1 else [])


def losses_table(board: Leaderboard, results: Sequence[Result]) -> Table:
    """Return the gold documents that each step of the finalists lost; empty if the losses of one are not known."""
    losses = {row.rank: results[row.position].losses for row in board.finalists} if results else {}
    known = [own for own in losses.values() if own is not None]
    if not known or len(known) < len(losses):
        return Table([], [])
    steps = list(dict.fromkeys(step for own in known for step, lost in own.counts.items() if lost))
    columns = [
        Column("#", number, numeric=True),
        Column("combination", least=28),
        Column(f"missed in the first {known[0].cutoff}", number, numeric=True),
        *(Column(step, number, numeric=True) for step in steps),
    ]
    rows = [
        [row.rank, row.label, own.missed, *(own.counts.get(step) for step in steps)]
        for row, own in zip(board.finalists, known, strict=True)
    ]
    return Table(columns, rows if steps else [])


def pareto_table(board: Leaderboard, cost: str = "median_ms") -> Table:
    """Return the Pareto front of quality and a cost, which is the median time per query by default."""
    costs = [COSTS[name] for name in dict.fromkeys([cost, "median_ms", "p95_ms", "index_s"])]
    columns = [
        Column("#", number, numeric=True),
        Column("combination", least=28),
        Column(board.primary, score4, numeric=True),
        *(Column(cost.title, FORMATS[cost.format], numeric=True) for cost in costs),
    ]
    front = board.find_front(cost)
    rows = [[row.rank, row.label, row.mean, *(row.means.get(c.name) for c in costs)] for row in front]
    return Table(columns, rows)


def effect_table(effect: SettingEffect) -> Table:
    """Return the primary measure at each value of a setting."""
    columns = [
        Column("value"),
        Column("n", number, numeric=True),
        Column("mean", score4, numeric=True),
        Column("highest", score4, numeric=True),
    ]
    return Table(columns, [[at.value, at.combinations, at.mean, at.best] for at in effect.means])


def list_shares(board: Leaderboard, results: Sequence[Result]) -> list[Importance]:
    """Return the importance of settings and of their pairs, the largest first, without those of almost none."""
    return [i for i in estimate_shares(board, results) if i.share >= LEAST_SHARE][:MOST_SHARES]


def shares_note(board: Leaderboard) -> str:
    """Return what the importance of settings measures."""
    return (
        f"The share of the variance of {board.primary} over combinations that each setting explains, and each pair "
        f"(x) beyond its two settings, with {board.statistics.confidence:.0%} intervals over queries. "
        "Unless the sweep is a full grid, shares overlap, and their sum can exceed 100 %. A combination without a "
        "setting counts as a value of that setting, and the setting is in no pair."
    )


def shares_table(importances: Sequence[Importance]) -> Table:
    """Return the importance of settings and of their pairs, the largest first."""
    columns = [Column("setting"), Column("share of the variance", percent, numeric=True)]
    columns.append(Column("interval", lambda ends: f"{percent(ends[0])} to {percent(ends[1])}", numeric=True))
    return Table(columns, [[" x ".join(i.settings), i.share, (i.low, i.high)] for i in importances])


def drops_table(board: Leaderboard) -> Table:
    """Return the combinations that a race dropped, in the order of their drops; means are over the searched queries."""
    race = board.race
    columns = [
        Column("combination", least=12),
        Column("queries searched", number, numeric=True),
        Column("leader", spare=2, least=12),
        Column("p (any time)", p_value, numeric=True),
        Column("mean so far", score4, numeric=True, spare=1),
        Column("leader's so far", score4, numeric=True, spare=1),
    ]
    dropped = race.dropped if race else ()
    return Table(columns, [[d.name, d.queries, d.leader, d.p, d.mean, d.leader_mean] for d in dropped])


def failures_table(board: Leaderboard) -> Table:
    """Return the failed combinations by error."""
    return build_error_table(
        "combinations", {e: [f.name for f in group] for e, group in board.group_failures().items()}
    )
