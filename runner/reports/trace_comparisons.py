"""What is said of agents against one another, and of what goes together: sentences, and tables of values.

Knows nothing of how a table is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.agents.measures.matched import FEWEST
from runner.agents.measures.summary import described
from runner.reports.numbers import number, p_value, score
from runner.reports.tables import Column, Table
from runner.reports.trace_report import TraceReport
from runner.reports.trace_tables import title

Json = Mapping[str, Any]

DECIDING = "file_recall"
"""The figure that tells which of two configurations retrieves better."""

PERHAPS_BELOW = 0.05
"""Below this p-value of its own, uncorrected, a figure perhaps differs."""

_MOST_TASKS = 3  # that are named where two configurations lie furthest apart
_LARGE = 1000  # from here on a difference has no decimals


def verdicts(report: TraceReport) -> list[str]:
    """Return of each comparison, in a sentence, which one finds more of the gold, by how much, and how surely."""
    return [_verdict(each) for each in report.comparisons]


def comparisons_title(report: TraceReport) -> str:
    """Return what the other configurations are compared with."""
    return f"Compared with {report.comparisons[0]['baseline_config']}" if report.comparisons else ""


def comparisons_table(report: TraceReport) -> Table:
    """Return how many tasks each configuration shares with the baseline, in which figures and on which they differ.

    A figure differs surely if it does with the correction for all figures, perhaps if it does by itself.
    """
    columns = [
        Column("configuration"),
        Column("matched tasks", number, numeric=True),
        Column("only there", number, numeric=True, spare=2),
        Column("only here", number, numeric=True, spare=2),
        Column("left out", least=12, spare=1),
        Column("surely differs in", least=24),
        Column("perhaps in", least=24),
        Column("recall differs most on", least=24),
    ]
    rows = [
        [
            c["other_config"], c["n_matched_tasks"], c["n_baseline_only"], c["n_other_only"], _left_out(c),
            *_differing(c), _apart(c),
        ]
        for c in report.comparisons
    ]  # fmt: skip
    return Table(columns, rows)


def comparison_title(comparison: Json) -> str:
    """Return which two configurations are compared, on how many tasks."""
    other, baseline, n = comparison["other_config"], comparison["baseline_config"], comparison["n_matched_tasks"]
    return f"{other} less {baseline}, on {n:,} matched tasks"


def comparison_note(comparison: Json) -> str:
    """Return what is not known of the tasks that a comparison is of; "" where all is."""
    n = comparison["n_unverified"]
    return f"Of {n:,} of them it is not known that model and harness were the same." if n else ""


def comparison_table(comparison: Json) -> Table:
    """Return the differences of a comparison that could be computed, figure by figure."""
    columns = [
        Column("figure"),
        Column("pairs", number, numeric=True, spare=2),
        Column("difference", _difference, numeric=True),
        Column("95% interval", _bounds, numeric=True, spare=1),
        Column("p", p_value, numeric=True, spare=3),
        Column("corrected", p_value, numeric=True),
        Column("more/same/less", numeric=True, spare=4),
    ]
    rows = [
        [
            title(name), of["n"], of["mean_delta"], of["interval"], of["p_value"], of["p_value_corrected"],
            f"{of['higher']}/{of['same']}/{of['lower']}",
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
        Column("95% interval", _bounds, numeric=True, spare=1),
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
    other, baseline, n = comparison["other_config"], comparison["baseline_config"], comparison["n_matched_tasks"]
    deltas = _deltas(comparison)
    if DECIDING not in deltas:
        left = _left_out(comparison)
        pairs = f"{n:,} matched task{'s' * (n != 1)}" + " with ground truth" * (n >= FEWEST)
        return (
            f"Whether {other} finds more of the gold than {baseline} can't be said: {pairs}"
            f"{f' (left out: {left})' * bool(left)}, and {FEWEST} are needed."
        )
    of, pairs = deltas[DECIDING], f"on {deltas[DECIDING]['n']:,} matched tasks"
    if not of["higher"] and not of["lower"]:
        return f"{other} finds as much of the gold as {baseline}, {pairs}, on every one."
    way = "more" if of["mean_delta"] > 0 else "less" if of["mean_delta"] < 0 else "in the mean as much"
    before, after = (_mean(comparison, side) for side in ("baseline", "other"))
    p = p_value(of["p_value"])
    sure = (
        f"p {p if p.startswith('<') else f'= {p}'} "
        f"({p_value(of['p_value_corrected'])} corrected for {len(deltas):,} figures)"
    )
    return (
        f"{other} finds {way} of the gold {'as' if way.endswith('much') else 'than'} {baseline}: recall {score(after)} "
        f"against {score(before)} {pairs} (95% interval of the difference {_bounds(of['interval'])}), {sure}"
        f"{', which may be luck' * (not of['significant'])}: "
        f"more on {of['higher']:,}, the same on {of['same']:,}, less on {of['lower']:,}."
    )


def _differing(comparison: Json) -> tuple[str, str]:
    """Return which figures differ surely, and which perhaps, each with its difference."""
    if not comparison["computable"]:
        return f"too few to compare: {FEWEST} are needed", ""
    deltas = _deltas(comparison)
    sure = [name for name, of in deltas.items() if of["significant"]]
    perhaps = [name for name, of in deltas.items() if name not in sure and of["p_value"] < PERHAPS_BELOW]
    surely, maybe = (
        ", ".join(f"{title(name)} {_difference(deltas[name]['mean_delta'])}" for name in names) or "nothing"
        for names in (sure, perhaps)
    )
    return surely, maybe


def _apart(comparison: Json) -> str:
    """Return on which tasks the deciding figure differs most, each with what it was and what it is."""
    pairs = [each for each in comparison.get("per_task", ()) if each[f"{DECIDING}_delta"]]
    pairs.sort(key=lambda each: (-abs(each[f"{DECIDING}_delta"]), each["task_name"]))
    return ", ".join(
        f"{each['task_name']} {_short(each[f'{DECIDING}_baseline'])} \N{RIGHTWARDS ARROW} "
        f"{_short(each[f'{DECIDING}_other'])}"
        for each in pairs[:_MOST_TASKS]
    )


def _mean(comparison: Json, side: str) -> float | None:
    """Return the mean of the deciding figure over the pairs where both are known, folded as those of the tables are."""
    known = [each for each in comparison["per_task"] if each[f"{DECIDING}_delta"] is not None]
    return described(each[f"{DECIDING}_{side}"] for each in known)["mean"]


def _deltas(comparison: Json) -> dict[str, Json]:
    return {name: of for name, of in comparison.get("deltas", {}).items() if of["computable"]}


def _left_out(comparison: Json) -> str:
    left = {reason.replace("_", " "): len(tasks) for reason, tasks in comparison["excluded"].items()}
    left["earlier trials"] = comparison["n_superseded"]
    return ", ".join(f"{n:,} {what}" for what, n in left.items() if n)


def _short(value: float) -> str:
    return f"{value:.2g}"


def _difference(value: float | None) -> str:
    """Return a difference as text, with its sign: of shares as of tokens."""
    return number(None) if value is None else f"{value:+,.0f}" if abs(value) >= _LARGE else f"{value:+.3f}"


def _bounds(low_high: Sequence[float] | None) -> str:
    return number(None) if low_high is None else f"[{_difference(low_high[0])}, {_difference(low_high[1])}]"
