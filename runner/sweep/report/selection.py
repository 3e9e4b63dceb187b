"""The selected winner of a sweep, and its search, as sentences, tables and tags."""

from __future__ import annotations

from runner.comparison.search import Search
from runner.comparison.selection import KFOLD, ON_REPORTED_DATA, DefaultComparison, WinnerSelection
from runner.pages.numbers import (
    FORMATS,
    describe_difference_interval,
    format_count,
    format_signed,
    interval,
    missing,
    number,
    p_value,
    percent,
    score4,
)
from runner.pages.tables import Column, Table
from runner.statistics.paired_tests import PAIRED_TESTS


def describe_default(selection: WinnerSelection, default: DefaultComparison) -> str:
    """Return how much the winner differs from the default settings."""
    own = default.difference
    p = p_value(own.p) if own.p < 0.001 else f"= {p_value(own.p)}"
    shown = "" if missing(own.low) else interval((own.low, own.high))
    ends = describe_difference_interval(default.statistics.confidence, shown, own.differing, own.queries)
    test = f"{PAIRED_TESTS[default.statistics.test].label} test"
    if selection.on == KFOLD:
        test = "permutation test that repeats the selection"
    return (
        f"Against the default settings ({score4(default.default)}): {format_signed(own.mean)} ({ends}), "
        f"p {p.replace('<', '< ')} ({test})."
    )


def describe_folds(selection: WinnerSelection) -> str:
    """Return how many folds of a cross-validation chose another combination than the winner on all queries."""
    n = len(selection.folds)
    if selection.is_unanimous:
        return f"all {n} folds chose the same combination"
    others = sum(fold.name != selection.winner for fold in selection.folds)
    return f"{others} of {n} folds chose another combination"


def title_selected(selection: WinnerSelection, of_measure: bool = True) -> str:
    """Return the title of figures where the winner was selected; a cost is not in-sample, as no query decides it."""
    if selection.on == KFOLD:
        return "in-sample" if of_measure else ""
    return f"on {selection.on}"


def title_reported(selection: WinnerSelection) -> str:
    """Return the title of reported figures: those of the winner, or of a cross-validated selection."""
    if selection.on != KFOLD:
        return f"on {selection.reported_on}"
    return "held out" if selection.is_unanimous else "of the selection, held out"


def selection_heading(selection: WinnerSelection) -> str:
    """Return the heading of the table of selected and reported figures."""
    return "Selection bias (nested cross-validation)" if selection.on == KFOLD else "Score of the selected combination"


def describe_selection(selection: WinnerSelection) -> str:
    """Return what was selected where, and its score there and where it is reported."""
    on, winner, primary = selection.on, selection.winner, selection.primary
    if primary not in selection.figures:
        return f"Selected on {on}: {winner}, which failed on {selection.reported_on}."
    figures = selection.figures[primary]
    reported = f"{primary} {score4(figures.reported)} {interval(figures.interval)}"
    if selection.is_on_reported_data:
        return f"{winner} has {reported}. {warn_selected_on_reported(on)}"
    selected, difference = score4(figures.selected), format_signed(figures.difference)
    sentences = [
        (
            f"Selected on {on}: {winner}. It has {reported} on {selection.reported_on} and {selected} on {on} "
            f"({difference})."
        )
    ]
    if on == KFOLD:
        bias = "no estimate of the selection bias" if selection.is_unanimous else f"selection bias {difference}"
        sentences = [
            f"The winner on all queries is {winner}, with {primary} {selected} in-sample.",
            f"Nested cross-validation over {selection.queries:,} queries of {selection.reported_on}: the selection has "
            f"{reported} on held-out queries; {describe_folds(selection)} ({bias}).",
        ]
    sentences += describe_constraints(selection)
    return " ".join([*sentences, *([describe_default(selection, selection.default)] if selection.default else [])])


def describe_constraints(selection: WinnerSelection) -> list[str]:
    """Return whether the winner meets each constraint where it is reported, too."""
    return [
        f"{name}: {number(figure.selected)} on {selection.split}, {number(figure.reported)} on {selection.reported_on} "
        f"({'confirmed' if figure.is_met else 'NOT confirmed'})."
        for name, figure in selection.constraints.items()
    ]


def selection_tags(selection: WinnerSelection) -> dict[str, str]:
    """Return the tags of the sweep's run that describe the selection."""
    tags = {"selected_on": selection.on, "reported_on": selection.reported_on, "selected_by": selection.primary}
    tags[ON_REPORTED_DATA] = str(selection.is_on_reported_data).lower()
    if selection.primary in selection.figures:
        figures = selection.figures[selection.primary]
        tags |= {"selected": score4(figures.selected), "reported": score4(figures.reported)}
        if not selection.is_on_reported_data and not selection.is_unanimous:
            name = "selection_bias" if selection.on == KFOLD else "split_difference"
            tags[name] = format_signed(figures.difference)
    if (default := selection.default) is not None:
        tags |= {"default": score4(default.default), "default_difference": format_signed(default.difference.mean)}
        tags["default_p"] = f"{default.difference.p:.4f}"
    return tags


def describe_search(search: Search) -> str:
    """Return how many trials a search had, and which of them found the best combination."""
    dropped, improvements = sum(trial.dropped for trial in search.trials), search.list_improvements()
    failed = len(search.trials) - len(search.done) - dropped
    trials = format_count(len(search.trials), "trial", "trials")
    combinations = format_count(len({trial.label for trial in search.trials}), "combination", "combinations")
    lost = (f", {dropped:,} dropped by the race" if dropped else "") + (f", {failed:,} failed" if failed else "")
    best = f"; the best {search.objectives[0].name} came with trial {improvements[-1][0] + 1:,}" if improvements else ""
    return f"{trials} ({search.sampler}) requested {combinations}{lost}{best}."


def warn_selected_on_reported(split: str) -> str:
    """Return the warning that the best of several was selected on the data that it is reported on."""
    return (
        f"The best was selected on the data it is reported on ({split}), so its score is too high on average; set "
        f"sweep.select_on={KFOLD}, or another split, to report it on queries that were not used to select it."
    )


def selection_table(selection: WinnerSelection) -> Table:
    """Return the figures of the winner where it is reported and where it was selected."""
    columns = [
        Column("measure"),
        Column(title_reported(selection), score4, numeric=True),
        Column("interval", interval, numeric=True),
    ]
    if not selection.is_on_reported_data:
        difference = "selection bias" if selection.on == KFOLD else "difference"
        columns += [
            Column(title_selected(selection), score4, numeric=True),
            Column(difference, format_signed, numeric=True),
        ]
    rows = [
        [m, f.reported, f.interval, f.selected, None if selection.is_unanimous else f.difference][: len(columns)]
        for m, f in selection.figures.items()
    ]
    return Table(columns, rows)


def folds_table(selection: WinnerSelection) -> Table:
    """Return the winner selected without each fold."""
    columns = [
        Column("fold", number, numeric=True),
        Column("winner without the fold", least=28),
        Column("queries", number, numeric=True),
        Column("on other folds", score4, numeric=True),
        Column("on this fold", score4, numeric=True),
    ]
    return Table(columns, [[i + 1, f.name, f.queries, f.selected, f.held_out] for i, f in enumerate(selection.folds)])


def importances_table(search: Search) -> Table:
    """Return the importance of each setting, the largest first."""
    several = len(search.objectives) > 1
    rows = [
        [objective, group or "all", setting, share]
        for objective, groups in search.importances.items()
        for group, shares in groups.items()
        for setting, share in sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    ]
    columns = [Column("objective"), Column("subset", least=20), Column("setting", least=20)]
    columns.append(Column("share of the variance", percent, numeric=True))
    table = Table(columns, rows)
    if all(set(groups) == {""} for groups in search.importances.values()):
        table = table.without(columns[1])
    return table if several else table.without(columns[0])


def front_table(search: Search) -> Table:
    """Return the Pareto front; empty unless there are several objectives."""
    columns = [Column("#", number, numeric=True), Column("combination", least=28)]
    values = []
    for title, objective, column in search.iter_front_columns():
        columns.append(
            Column(title, score4 if objective.format == "score" else FORMATS[objective.format], numeric=True)
        )
        values.append(column)
    rows = [[point.rank, point.label, *of] for point, *of in zip(search.front, *values, strict=True)]
    return Table(columns, rows)
