"""What is said of agents against one another, and of what goes together: sentences, and tables of values.

Knows nothing of how a table is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from runner.agents.measures.differences import FEWEST, PRIMARY
from runner.reports.comparison.significance import in_words
from runner.reports.rendering.numbers import duration, interval_title, number, p_value, score
from runner.reports.rendering.tables import Column, Table
from runner.reports.traces.report import TraceReport
from runner.reports.traces.tables import title

Json = Mapping[str, Any]

_LARGE = 1000  # from here on a difference has no decimals
_TILES: Mapping[str, Callable[[float], str]] = {
    PRIMARY: score,
    "ttfr_seconds": duration,
    "reward": score,
    "cost": lambda dollars: score(dollars, 2),
    "seconds": duration,
}


def verdicts(report: TraceReport) -> list[str]:
    """Return of each comparison, in a sentence, which one finds more of the gold, by how much, and how surely.

    Those of which nothing can be said have one sentence together.
    """
    told = [each for each in report.comparisons if _decided(each)]
    untold = [each for each in report.comparisons if not _decided(each)]
    return [*map(_verdict, told), *([_untold(untold)] if untold else [])]


def tiles(report: TraceReport) -> list[tuple[str, str, str]]:
    """Return the few figures that stand for one comparison, each with its title and what it is held against.

    There are none of several, nor of one of which nothing can be said.
    """
    if len(report.comparisons) != 1 or not _decided(report.comparisons[0]):
        return []
    deltas, n = _deltas(report.comparisons[0]), _decided(report.comparisons[0])["n"]
    return [
        (title(name), show(of["mean_other"]), f"against {show(of['mean_baseline'])}{_only(of, n)}{_luck(of)}")
        for name, show in _TILES.items()
        if (of := deltas.get(name))
    ]


def comparisons_title(report: TraceReport) -> str:
    """Return what the other configurations are compared with."""
    return f"Compared with {report.comparisons[0]['baseline_config']}" if report.comparisons else ""


def comparisons_table(report: TraceReport) -> Table:
    """Return how each configuration differs from the baseline on the tasks that they share.

    First in the figure that decides; a secondary figure differs surely if it does with the correction for all of these,
    perhaps if it does by itself. Empty where there is nothing to compare.
    """
    if not report.comparisons:
        return Table([], [])
    columns = [
        Column("configuration"),
        Column("matched tasks", number, numeric=True),
        Column("measured", number, numeric=True, spare=3),
        Column(title(PRIMARY), _difference, numeric=True),
        Column(_interval_title(report.comparisons[0]), _bounds, numeric=True, spare=2),
        Column("p", p_value, numeric=True),
        corrected := Column("corrected", p_value, numeric=True),
        Column("tasks needed", number, numeric=True, spare=1),
        Column("surely differs in", least=21, spare=2),
        Column("perhaps in", least=21, spare=2),
        Column("unmatched", number, numeric=True, spare=4),
        left_out := Column("left out", least=12, spare=3),
    ]
    rows = [
        [
            c["other_config"], c["n_matched_tasks"], c["n_measured_tasks"], *_deciding(c), *_differing(c),
            c["n_baseline_only"] + c["n_other_only"], _left_out(c),
        ]
        for c in report.comparisons
    ]  # fmt: skip
    several = any(_decided(c).get("corrected_for", 1) > 1 for c in report.comparisons)
    unused = [*([] if several else [corrected]), *([] if any(map(_left_out, report.comparisons)) else [left_out])]
    return reduce(Table.without, unused, Table(columns, rows))


def comparison_title(comparison: Json) -> str:
    """Return which two configurations are compared, on how many tasks."""
    other, baseline, n = comparison["other_config"], comparison["baseline_config"], comparison["n_matched_tasks"]
    return f"{other} less {baseline}, on {n:,} matched tasks"


def comparison_note(comparison: Json) -> str:
    """Return which figure decides, how the differences were tested, and what is not known of the tasks."""
    how = comparison["statistics"]
    tests: int = max(of["corrected_for"] for name, of in _deltas(comparison).items() if name != PRIMARY)
    told = f"{title(PRIMARY).capitalize()} decides, by a test of its own; the others are secondary"
    told += f", and corrected for {tests:,} figures" * (tests > 1)
    told += f". Differences are paired, task by task; {in_words(how['test'], how['correction'])}."
    if sure := comparison["without_low_confidence"]:
        told += f" {_without_low_confidence(sure)}"
    if unverified := comparison["n_unverified"]:
        told += f" Of {_counted(unverified, 'task')} it is not known that model and harness were the same."
    return told


def comparison_table(comparison: Json) -> Table:
    """Return the differences of a comparison that could be computed, the one that decides first."""
    columns = [
        Column("figure"),
        Column("pairs", number, numeric=True, spare=3),
        Column(comparison["baseline_config"], _value, numeric=True, spare=2),
        Column(comparison["other_config"], _value, numeric=True, spare=2),
        Column("difference", _difference, numeric=True),
        Column(_interval_title(comparison), _bounds, numeric=True, spare=1),
        Column("p", p_value, numeric=True, spare=1),
        Column("corrected", p_value, numeric=True),
        Column("more/same/less", numeric=True, spare=4),
        Column("pairs needed", number, numeric=True, spare=3),
    ]
    rows = [
        [
            _named(name), of["n"], of["mean_baseline"], of["mean_other"], of["mean_delta"], of["interval"],
            of["p_value"], _corrected(of), f"{of['higher']}/{of['same']}/{of['lower']}", of["pairs_needed"],
        ]
        for name, of in _deltas(comparison).items()
    ]  # fmt: skip
    return Table(columns, rows)


def associations_table(report: TraceReport) -> Table:
    """Return how measures and outcomes go together, those pairs of which it can be said."""
    columns = [
        Column("measure"),
        Column("outcome"),
        Column("tasks", number, numeric=True),
        Column("Spearman's rho", lambda value: score(value, 2), numeric=True),
        Column(interval_title(report.associations["confidence"]), _bounds, numeric=True, spare=1),
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


def _verdict(comparison: Json) -> str:
    sure = comparison["without_low_confidence"]
    return f"{_decision(comparison)} {_without_low_confidence(sure)}" if sure else _decision(comparison)


def _decision(comparison: Json) -> str:
    other, baseline, of = comparison["other_config"], comparison["baseline_config"], _decided(comparison)
    pairs, beside = f"on {of['n']:,} matched tasks", _beside(comparison)
    if not of["higher"] and not of["lower"]:
        return f"{other} finds as much of the gold as {baseline}, {pairs}, on every one{beside}."
    way = "more" if of["mean_delta"] > 0 else "less" if of["mean_delta"] < 0 else "in the mean as much"
    return (
        f"{other} finds {way} of the gold {'as' if way.endswith('much') else 'than'} {baseline}: {title(PRIMARY)} "
        f"{score(of['mean_other'])} against {score(of['mean_baseline'])} {pairs} "
        f"({_interval_title(comparison)} of the difference {_bounds(of['interval'])}), {_sureness(of)}: "
        f"more on {of['higher']:,}, the same on {of['same']:,}, less on {of['lower']:,}{beside}."
    )


def _without_low_confidence(sure: Json) -> str:
    """Return the means of the deciding figure over the pairs whose gold is sure enough."""
    if not sure["n"]:
        return "The gold of every one of these tasks has low confidence."
    means = f"{score(sure['mean_other'])} against {score(sure['mean_baseline'])}"
    return f"Without tasks whose gold has low confidence: {title(PRIMARY)} {means}, on {sure['n']:,} matched tasks."


def _sureness(of: Json) -> str:
    p = p_value(of["p_value"])
    told = f"p {p if p.startswith('<') else f'= {p}'}"
    if of["corrected_for"] > 1:
        told += f" ({p_value(of['p_value_corrected'])} corrected for {of['corrected_for']:,} configurations)"
    needed = f"; to see such a difference takes some {of['pairs_needed']:,} tasks" if of["pairs_needed"] else ""
    return f"{told}{_luck(of)}{needed * (not of['significant'])}"


def _luck(of: Json) -> str:
    return ", which may be luck" * (not of["significant"] and of["higher"] + of["lower"] > 0)


def _beside(comparison: Json) -> str:
    """Return how soon the first gold is seen, and at what price: in the mean of the tasks where both are known."""
    deltas, n, told = _deltas(comparison), _decided(comparison)["n"], ""
    if of := deltas.get("ttfr_seconds"):
        told += f"; first gold after {duration(of['mean_other'])} against {duration(of['mean_baseline'])}{_only(of, n)}"
    if of := deltas.get("cost"):
        told += f"; ${of['mean_other']:.2f} a task against ${of['mean_baseline']:.2f}{_only(of, n)}"
    return told


def _only(of: Json, n: int) -> str:
    return "" if of["n"] == n else f" (on {of['n']:,})"


def _untold(comparisons: Sequence[Json]) -> str:
    """Return that nothing can be said of configurations, and how many tasks each could be compared on."""
    named = ", ".join(
        f"{each['other_config']} ({each['n_measured_tasks']:,}{f'; left out: {left}' * bool(left)})"
        for each in comparisons
        for left in [_left_out(each)]
    )
    return (
        f"Whether {named} finds more of the gold than {comparisons[0]['baseline_config']} can't be said: that takes "
        f"{FEWEST} matched tasks with ground truth (in brackets those that there are)."
    )


def _deciding(comparison: Json) -> list[Any]:
    of = _decided(comparison)
    return [of.get(name) for name in ("mean_delta", "interval", "p_value", "p_value_corrected", "pairs_needed")]


def _differing(comparison: Json) -> tuple[str, str]:
    """Return which secondary figures differ surely, and which perhaps, each with its difference."""
    if not comparison["computable"]:
        return f"too few to compare: {FEWEST} are needed", ""
    deltas = {name: of for name, of in _deltas(comparison).items() if name != PRIMARY}
    sure = [name for name, of in deltas.items() if of["significant"]]
    perhaps = [
        name for name, of in deltas.items() if name not in sure and of["p_value"] < comparison["statistics"]["alpha"]
    ]
    surely, maybe = (
        "; ".join(f"{_named(name)} {_difference(deltas[name]['mean_delta'])}" for name in names) or "nothing"
        for names in (sure, perhaps)
    )
    return surely, maybe


def _interval_title(comparison: Json) -> str:
    return interval_title(comparison["statistics"]["confidence"])


def _decided(comparison: Json) -> Json:
    """Return the difference in the deciding figure, empty where there is none to tell."""
    return _deltas(comparison).get(PRIMARY, {})


def _deltas(comparison: Json) -> dict[str, Json]:
    return {name: of for name, of in comparison.get("deltas", {}).items() if of["computable"]}


def _corrected(of: Json) -> float | None:
    return of["p_value_corrected"] if of["corrected_for"] > 1 else None


def _left_out(comparison: Json) -> str:
    left = {reason.replace("_", " "): len(tasks) for reason, tasks in comparison["excluded"].items()}
    left["earlier trials"] = comparison["n_superseded"]
    return ", ".join(f"{n:,} {what}" for what, n in left.items() if n)


def _difference(value: float | None) -> str:
    """Return a difference as text, with its sign: of shares as of tokens."""
    return number(None) if value is None else f"{value:+,.0f}" if abs(value) >= _LARGE else f"{value:+.3f}"


def _bounds(low_high: Sequence[float] | None) -> str:
    return number(None) if low_high is None else f"[{_difference(low_high[0])}, {_difference(low_high[1])}]"


def _named(figure: str) -> str:
    return f"{title(figure)}, s" if figure.endswith("seconds") else title(figure)


def _value(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _LARGE else score(value)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"
