"""Describes comparisons between agents, and associations, in sentences and tables of values.

Knows nothing of how a table is rendered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from runner.comparison.report.significance import in_words
from runner.features.traces.measures.differences import FEWEST, PRIMARY, ConfidentMeans, Delta, TraceComparison
from runner.features.traces.measures.task_figures import find_figure
from runner.features.traces.report.report import TraceReport
from runner.features.traces.report.tables import format_figure, title
from runner.pages.numbers import (
    describe_difference_interval,
    duration,
    interval_title,
    number,
    p_value,
    score,
)
from runner.pages.tables import Column, Table

_LARGE = 1000  # the smallest difference without decimals
_TILES = (PRIMARY, "ttfr_seconds", "reward", "cost", "seconds")


def describe_decisions(report: TraceReport) -> list[str]:
    """Return a sentence per comparison: which configuration finds more of the gold, by how much, and how surely.

    The comparisons without enough tasks share one sentence.
    """
    decided = [(comparison, delta) for comparison in report.comparisons if (delta := _find_primary(comparison))]
    undecided = [comparison for comparison in report.comparisons if not _find_primary(comparison)]
    sentences = [_describe_decision(comparison, delta) for comparison, delta in decided]
    return [*sentences, *([_describe_undecided(undecided)] if undecided else [])]


def tiles(report: TraceReport) -> list[tuple[str, str, str]]:
    """Return the main figures of a single comparison, each with its title and the baseline's value.

    There are none for several comparisons, or for one without enough tasks.
    """
    if len(report.comparisons) != 1 or not (primary := _find_primary(report.comparisons[0])):
        return []
    deltas, n = _list_deltas(report.comparisons[0]), primary["n"]
    return [
        (
            title(name),
            format_figure(name, delta["mean_other"]),
            f"baseline {format_figure(name, delta['mean_baseline'])}{_format_pairs(delta, n)}"
            f"{_format_insignificance(delta)}",
        )
        for name in _TILES
        if (delta := deltas.get(name))
    ]


def comparisons_title(report: TraceReport) -> str:
    """Return a heading that names the baseline."""
    return f"Compared with {report.comparisons[0]['baseline_config']}" if report.comparisons else ""


def comparisons_table(report: TraceReport) -> Table:
    """Return how each configuration differs from the baseline on their matched tasks, the deciding figure first.

    A secondary figure is significant if its corrected p-value is, and a candidate if only the uncorrected one is. Empty
    if there is nothing to compare.
    """
    if not report.comparisons:
        return Table([], [])
    columns = [
        Column("configuration"),
        Column("matched tasks", number, numeric=True),
        Column("measured", number, numeric=True, spare=3),
        Column(title(PRIMARY), _format_difference, numeric=True),
        Column(_interval_title(report.comparisons[0]), numeric=True, spare=2),
        Column("p", p_value, numeric=True),
        corrected := Column("corrected", p_value, numeric=True),
        Column("tasks needed", number, numeric=True, spare=1),
        Column("significant differences", least=21, spare=2),
        Column("only if uncorrected", least=21, spare=2),
        Column("unmatched", number, numeric=True, spare=4),
        left_out := Column("left out", least=12, spare=3),
    ]
    rows = [
        [
            c["other_config"], c["n_matched_tasks"], c["n_measured_tasks"], *_list_primary(c), *_describe_secondary(c),
            c["n_baseline_only"] + c["n_other_only"], _describe_excluded(c),
        ]
        for c in report.comparisons
    ]  # fmt: skip
    deltas = filter(None, map(_find_primary, report.comparisons))
    several = any(delta["corrected_for"] > 1 for delta in deltas)
    has_excluded = any(map(_describe_excluded, report.comparisons))
    unused = [*([] if several else [corrected]), *([] if has_excluded else [left_out])]
    return reduce(Table.without, unused, Table(columns, rows))


def comparison_title(comparison: TraceComparison) -> str:
    """Return a heading with both configurations and the number of their tasks."""
    other, baseline, n = comparison["other_config"], comparison["baseline_config"], comparison["n_matched_tasks"]
    return f"{other} minus {baseline}, on {n:,} matched tasks"


def comparison_note(comparison: TraceComparison) -> str:
    """Return which figure decides, how differences were tested, and what is unknown about the tasks."""
    statistics = comparison["statistics"]
    tests = max(delta["corrected_for"] for name, delta in _list_deltas(comparison).items() if name != PRIMARY)
    note = f"{title(PRIMARY).capitalize()} decides, with a separate test; the other figures are secondary"
    note += f", and corrected for {tests:,} figures" * (tests > 1)
    note += f". Differences are paired by task; {in_words(statistics.test, statistics.correction)}."
    if confident := comparison["without_low_confidence"]:
        note += f" {_describe_confident(confident)}"
    if n := comparison["n_unverified"]:
        note += f" For {n:,} task{'s' * (n != 1)}, model and harness are not recorded and may differ."
    return note


def comparison_table(comparison: TraceComparison) -> Table:
    """Return the computable differences of a comparison, that of the deciding figure first."""
    columns = [
        Column("figure"),
        Column("pairs", number, numeric=True, spare=3),
        Column(comparison["baseline_config"], _format_value, numeric=True, spare=2),
        Column(comparison["other_config"], _format_value, numeric=True, spare=2),
        Column("difference", _format_difference, numeric=True),
        Column(_interval_title(comparison), numeric=True, spare=1),
        Column("p", p_value, numeric=True, spare=1),
        Column("corrected", p_value, numeric=True),
        Column("higher/same/lower", numeric=True, spare=4),
        Column("pairs needed", number, numeric=True, spare=3),
    ]
    rows = [
        [
            _title_with_unit(name), of["n"], of["mean_baseline"], of["mean_other"], of["mean_delta"],
            _format_delta_interval(of), of["p_value"], of["p_value_corrected"] if of["corrected_for"] > 1 else None,
            f"{of['higher']}/{of['same']}/{of['lower']}", of["pairs_needed"],
        ]
        for name, of in _list_deltas(comparison).items()
    ]  # fmt: skip
    return Table(columns, rows)


def list_differences(comparison: TraceComparison) -> list[dict[str, object]]:
    """Return the differences in measures from 0 to 1 for a plot, that of the deciding figure first."""
    return [
        {
            "name": comparison["other_config"],
            "measure": title(name),
            "value": of["mean_delta"],
            "low": interval[0],
            "high": interval[1],
            "significant": of["significant"],
        }
        for name, of in _list_deltas(comparison).items()
        if (figure := find_figure(name)).unit == "share" and figure.stage != "probes" and (interval := of["interval"])
    ]


def associations_table(report: TraceReport) -> Table:
    """Return the computable correlations of measures with outcomes."""
    columns = [
        Column("measure"),
        Column("outcome"),
        Column("tasks", number, numeric=True),
        Column("Spearman's rho", lambda value: score(value, 2), numeric=True),
        Column(interval_title(report.associations["confidence"]), _format_interval, numeric=True, spare=1),
        Column("p", p_value, numeric=True, spare=2),
        Column("corrected", p_value, numeric=True),
    ]
    rows = [
        [
            title(of["retrieval_metric"]), of["outcome_metric"], of["n"], of["spearman_r"], of["interval"],
            of["spearman_p"], of["spearman_p_corrected"],
        ]
        for of in report.associations["correlations"]
        if of["computable"]
    ]  # fmt: skip
    return Table(columns, rows)


def _describe_decision(comparison: TraceComparison, delta: Delta) -> str:
    other, baseline, confident = (
        comparison["other_config"],
        comparison["baseline_config"],
        comparison["without_low_confidence"],
    )
    pairs, beside = f"on {delta['n']:,} matched tasks", _describe_price(comparison, delta["n"])
    note = f" {_describe_confident(confident)}" if confident else ""
    if not delta["higher"] and not delta["lower"]:
        return f"{other} finds as much of the gold as {baseline} on each of {delta['n']:,} matched tasks{beside}.{note}"
    if delta["mean_delta"] == 0:
        relation = "finds on average as much of the gold as"
    else:
        verb = "finds" if delta["significant"] else "does not find significantly"
        relation = f"{verb} {'more' if delta['mean_delta'] > 0 else 'less'} of the gold than"
    return (
        f"{other} {relation} {baseline}: {title(PRIMARY)} "
        f"{score(delta['mean_other'])} against {score(delta['mean_baseline'])} {pairs} "
        f"({_describe_interval(comparison, delta)}), "
        f"{_describe_significance(delta)}; more on {delta['higher']:,}, the same on {delta['same']:,}, "
        f"less on {delta['lower']:,}{beside}.{note}"
    )


def _describe_confident(means: ConfidentMeans) -> str:
    """Return the means of the deciding figure over the pairs without low confidence."""
    if not means["n"]:
        return "The gold of all these tasks has low confidence."
    values = f"{score(means['mean_other'])} against {score(means['mean_baseline'])}"
    return f"Without tasks whose gold has low confidence: {title(PRIMARY)} {values}, on {means['n']:,} matched tasks."


def _describe_significance(delta: Delta) -> str:
    p = p_value(delta["p_value"])
    text = f"p {p if p.startswith('<') else f'= {p}'}"
    if delta["corrected_for"] > 1:
        corrected = p_value(delta["p_value_corrected"])
        text += f" ({corrected} corrected for {delta['corrected_for']:,} configurations)"
    if delta["pairs_needed"] and not delta["significant"]:
        text += f"; about {delta['pairs_needed']:,} tasks would be needed to detect a difference of this size"
    return text


def _format_insignificance(delta: Delta) -> str:
    return ", not significant" * (not delta["significant"] and delta["higher"] + delta["lower"] > 0)


def _describe_price(comparison: TraceComparison, n: int) -> str:
    """Return the mean time to the first gold file and the mean cost, over the tasks where both sides record them."""
    deltas, text = _list_deltas(comparison), ""
    if of := deltas.get("ttfr_seconds"):
        times = f"{duration(of['mean_other'])} against {duration(of['mean_baseline'])}"
        text += f"; first gold after {times}{_format_pairs(of, n)}"
    if of := deltas.get("cost"):
        text += f"; ${of['mean_other']:.2f} per task against ${of['mean_baseline']:.2f}{_format_pairs(of, n)}"
    return text


def _format_pairs(delta: Delta, n: int) -> str:
    return "" if delta["n"] == n else f" (on {delta['n']:,})"


def _describe_undecided(comparisons: Sequence[TraceComparison]) -> str:
    """Return that some comparisons have too few tasks, with the number of tasks of each."""
    names = ", ".join(
        f"{comparison['other_config']} ({comparison['n_measured_tasks']:,}{f'; left out: {excluded}' * bool(excluded)})"
        for comparison in comparisons
        for excluded in [_describe_excluded(comparison)]
    )
    return (
        f"Too few tasks to compare with {comparisons[0]['baseline_config']}: {names}. "
        f"A comparison needs {FEWEST} matched tasks with ground truth."
    )


def _list_primary(comparison: TraceComparison) -> tuple[object, ...]:
    delta = _find_primary(comparison)
    if delta is None:
        return (None,) * 5
    interval = _format_delta_interval(delta)
    return delta["mean_delta"], interval, delta["p_value"], delta["p_value_corrected"], delta["pairs_needed"]


def _describe_secondary(comparison: TraceComparison) -> tuple[str, str]:
    """Return the secondary figures that are significant, and those that are so only if uncorrected."""
    if not comparison["computable"]:
        return f"too few tasks: at least {FEWEST} are needed", ""
    deltas = {name: delta for name, delta in _list_deltas(comparison).items() if name != PRIMARY}
    alpha = comparison["statistics"].alpha
    significant = [name for name, delta in deltas.items() if delta["significant"]]
    candidates = [n for n, delta in deltas.items() if not delta["significant"] and delta["p_value"] < alpha]
    first, second = (
        "; ".join(f"{_title_with_unit(name)} {_format_difference(deltas[name]['mean_delta'])}" for name in names)
        or "none"
        for names in (significant, candidates)
    )
    return first, second


def _interval_title(comparison: TraceComparison) -> str:
    return interval_title(comparison["statistics"].confidence)


def _find_primary(comparison: TraceComparison) -> Delta | None:
    """Return the difference in the deciding figure, None if it is not computable."""
    return _list_deltas(comparison).get(PRIMARY)


def _list_deltas(comparison: TraceComparison) -> dict[str, Delta]:
    return {name: delta for name, delta in comparison.get("deltas", {}).items() if delta["computable"]}


def _describe_excluded(comparison: TraceComparison) -> str:
    excluded = {reason.replace("_", " "): len(tasks) for reason, tasks in comparison["excluded"].items()}
    excluded["earlier trials"] = comparison["n_superseded"]
    return ", ".join(f"{n:,} {what}" for what, n in excluded.items() if n)


def _format_difference(value: float | None) -> str:
    """Return a difference with its sign, of shares as well as of tokens."""
    return number(None) if value is None else f"{value:+,.0f}" if abs(value) >= _LARGE else f"{value:+.3f}"


def _format_delta_interval(delta: Delta) -> str:
    """Return the interval of a difference, or else how many tasks differ."""
    if delta["interval"] is not None:
        return _format_interval(delta["interval"])
    return f"{delta['higher'] + delta['lower']:,} of {delta['n']:,} differ"


def _describe_interval(comparison: TraceComparison, delta: Delta) -> str:
    shown = "" if delta["interval"] is None else f"of the difference {_format_interval(delta['interval'])}"
    differing = delta["higher"] + delta["lower"]
    return describe_difference_interval(comparison["statistics"].confidence, shown, differing, delta["n"], "tasks")


def _format_interval(bounds: Sequence[float] | None) -> str:
    return number(None) if bounds is None else f"[{_format_difference(bounds[0])}, {_format_difference(bounds[1])}]"


def _title_with_unit(figure: str) -> str:
    return f"{title(figure)}, s" if find_figure(figure).unit == "seconds" else title(figure)


def _format_value(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _LARGE else score(value)
