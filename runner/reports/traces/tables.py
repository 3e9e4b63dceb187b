"""What is said of agents' runs, as tables of values, for the console, Markdown and HTML alike.

Knows nothing of how a table is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from runner.agents.measures.figures import figures
from runner.agents.measures.matched import LOW
from runner.agents.measures.stages import Artifact
from runner.agents.measures.summary import Described
from runner.agents.measures.taxonomy import LABELS
from runner.reports.rendering.numbers import duration, gist, number, score
from runner.reports.rendering.tables import Column, Table, build_error_table
from runner.reports.traces.report import TraceReport

Json = Mapping[str, Any]

TASKS = 500
"""How many tasks a report lists, those worth a look first; all of them are in its JSON."""

TIMELINE = (
    "Steps go from left to right, files from top to bottom in the order in which they were first seen; gold is green, "
    "or red where it never was, and a dashed line stands where it is first seen. Before each task stands its recall."
)
"""How a timeline is read."""

_TITLES = {
    "file_recall": "recall",
    "mrr": "MRR",
    "map_score": "MAP",
    "context_efficiency": "efficiency",
    "ttfr_seconds": "first gold",
    "ttfr_tokens": "tokens to first gold",
    "cost": "cost, $",
    "seconds": "time",
}
_CONFIDENCES = ("high", "medium", LOW, "unknown")
_AT = {"ndcg": "nDCG", "precision": "P", "recall": "R", "f1": "F1"}


def heading(report: TraceReport) -> str:
    """Return in a line what was read."""
    said, configs = report.summary, len(report.summary["by_configuration"])
    parts = [
        f"{said['total_event_files']:,} traces of {configs:,} configuration{'s' * (configs != 1)}",
        f"{said['computable_tasks']:,} with ground truth to measure them by",
        f"{said['degraded_tasks']:,} degraded",
        *([f"{len(report.failures):,} failed"] if report.failures else []),
    ]
    return ", ".join(parts)


def configurations_table(report: TraceReport) -> Table:
    """Return the means of each configuration: of its measured tasks, and of those whose outcome is known."""
    columns = [
        Column("configuration", least=12),
        Column("measured", numeric=True),
        Column("gold confidence", least=8, spare=2),
        *(
            Column(title(name), score, numeric=True, spare=int(name not in ("file_recall", "mrr")))
            for name in _measured(report)
        ),
        Column(title("ttfr_seconds"), duration, numeric=True, spare=4),
        Column("reward", score, numeric=True),
        Column(title("cost"), lambda value: score(value, 2), numeric=True, spare=2),
        Column(title("seconds"), duration, numeric=True, spare=3),
    ]
    return Table(columns, _rows(report, report.summary["by_configuration"].items()))


def means_note(report: TraceReport) -> str:
    """Return which tasks the means of a configuration are of."""
    told = (
        "Means over the tasks that could be measured, outcomes over those that have one, first gold where any was seen"
    )
    several = len(report.summary["by_configuration"]) > 1
    return f"{told}; a comparison is of the tasks that two share." if several else f"{told}."


def rewards_note(report: TraceReport) -> str:
    """Return on what scale rewards are where some are beyond 1, since means are then over several; "" where none is."""
    rewards = [known["reward"] for each in report.tasks.values() if "reward" in (known := figures(each))]
    beyond = [reward for reward in rewards if reward > 1]
    if not beyond:
        return ""
    return (
        f"Each reward is on the scale of its verifier: {len(beyond):,} of {len(rewards):,} "
        f"{'is' if len(beyond) == 1 else 'are'} beyond 1, up to {number(max(beyond))}, such as sums over checkpoints. "
        "Their means compare only over the same tasks."
    )


def suites_table(report: TraceReport) -> Table:
    """Return the means of each suite, empty unless there are two that were measured."""
    table = configurations_table(report)
    suites = [(name, folded) for name, folded in report.summary["by_suite"].items() if folded["computable_tasks"]]
    rows = _rows(report, suites) if len(suites) > 1 else []
    return Table([Column("suite", least=12), *table.columns[1:]], rows)


def slices_table(report: TraceReport) -> Table:
    """Return the means of each slice: how many files there were to choose from, and by what they were found."""
    table = configurations_table(report)
    slices = [
        (f"{kind.replace('_', ' ')}: {name}", folded)
        for kind, slices in report.summary["by_slice"].items()
        for name, folded in slices.items()
    ]
    return Table([Column("slice", least=12), *table.columns[1:]], _rows(report, slices))


def errors_table(report: TraceReport) -> Table:
    """Return how many files each label of the taxonomy applies to in the mean, by configuration."""
    by_config = report.summary["by_configuration"]
    kept = {name: folded for name, folded in by_config.items() if folded["computable_tasks"]}
    columns = [Column("error", least=20), Column("counts", least=24, spare=1)]
    columns += [Column(name, number, numeric=True) for name in kept]
    rows = [
        [label.replace("_", " "), meaning, *(f["error_taxonomy_aggregates"][label]["mean"] for f in kept.values())]
        for label, meaning in LABELS.items()
    ]
    return Table(columns, rows if kept else [])


def figures_table(report: TraceReport) -> Table:
    """Return every figure of each configuration: its mean with how many tasks that is of, spread and median."""
    columns = [
        Column("figure"), Column("configuration"), Column("tasks", number, numeric=True),
        *(Column(name, lambda value: score(value, 4), numeric=True) for name in ("mean", "deviation", "median")),
    ]  # fmt: skip
    rows = [
        [figure, name, of["n"], of["mean"], of["std"], of["median"]]
        for figure in report.names.all
        for name, folded in report.summary["by_configuration"].items()
        if (of := _described(folded).get(figure)) and of["n"]
    ]
    return Table(columns, rows)


def tasks_table(report: TraceReport, limit: int = TASKS) -> Table:
    """Return the tasks worth a look first, with what each came to."""
    columns = [
        Column("task", least=16),
        Column("configuration"),
        Column("suite", spare=5),
        Column("gold", _count, numeric=True, spare=4),
        Column("gold confidence", spare=4),
        Column("found", _count, numeric=True, spare=4),
        Column("seen", _count, numeric=True, spare=3),
        *(Column(title(name), score, numeric=True, spare=int(name != "file_recall")) for name in _measured(report)[:3]),
        Column("first gold at step", _count, numeric=True, spare=6),
        Column("reward", score, numeric=True),
        Column(title("cost"), lambda value: score(value, 2), numeric=True, spare=6),
        Column(title("seconds"), duration, numeric=True, spare=6),
        Column("not measured", spare=7),
    ]
    return Table(columns, [_task(report, name, each) for name, each in islice(report.tasks.items(), limit)])


def degraded_table(report: TraceReport) -> Table:
    """Return what could not be read: of traces, of what should be found, and of how tasks ended."""
    groups: dict[str, list[str]] = {}
    for name, each in report.tasks.items():
        lost = filter(None, (each["coverage"].get("degraded_reason") or "").split("; "))
        of_files = *each["coverage"].get("ground_truth_problems", ()), *(each["outcome"] or {}).get("problems", ())
        for what in (*(loss.rpartition(" (")[0] or loss for loss in lost), *(gist(file) for file in of_files)):
            groups.setdefault(what, []).append(name)
    return build_error_table("traces", groups)


def failures_table(report: TraceReport) -> Table:
    """Return the runs of which there is nothing because something went wrong, those that say the same together."""
    groups: dict[str, list[str]] = {}
    for name, error in report.failures.items():
        groups.setdefault(gist(error, 200), []).append(name)
    return build_error_table("runs", groups)


def tiles(report: TraceReport) -> list[tuple[str, str, str]]:
    """Return the few figures that stand for all, each with its title and of how many tasks it is.

    There are none of several configurations: what these come to together says nothing of any of them.
    """
    if len(report.summary["by_configuration"]) > 1:
        return []
    found = _described(report.summary)
    shown: dict[str, Callable[[float | None], str]]
    shown = {name: score for name in ("file_recall", "mrr", *report.names.headline)}
    shown |= {"ttfr_seconds": duration, "reward": score}
    return [(title(name), show(found[name]["mean"]), f"of {found[name]['n']:,}") for name, show in shown.items()]


def about_task(report: TraceReport, artifact: Artifact) -> str:
    """Return in a line what a task came to."""
    known, metrics = figures(artifact), artifact["file_level_metrics"]
    parts = [
        f"{metrics['n_overlap']} of {metrics['n_ground_truth']} gold" if metrics["computable"] else "not measured",
        *(f"{title(name)} {score(known[name])}" for name in report.names.headline if name in known),
        *([f"reward {score(known['reward'])}"] if "reward" in known else []),
        *([f"${known['cost']:.2f}"] if "cost" in known else []),
        *([duration(known["seconds"])] if "seconds" in known else []),
    ]
    return ", ".join(parts)


def drawn_note(report: TraceReport) -> str:
    """Return how many of the traces that have events are drawn, and how to have others."""
    drawn = len(report.timelines)
    n = sum(bool(each["event_summary"].get("total_events")) for each in report.tasks.values())
    which = "Those on which configurations differ most come first, then those whose gold was missed."
    if drawn == n:
        return which
    return f"{drawn:,} of {n:,} traces. {which} For more: timelines={min(n, max(2 * drawn, 100))}, or a narrower path."


def title(figure: str) -> str:
    """Return what a figure is called in a table."""
    measure, at, cutoff = figure.partition("@")
    if at:
        return f"{_AT[measure]}@{cutoff}"
    return _TITLES.get(figure, figure.removeprefix("util_").replace("_", " "))


def confidence_note(report: TraceReport) -> str:
    """Return how many measured tasks have gold of low confidence, and where the means without them are; "" for none."""
    low = report.summary["ground_truth_confidences"].get(LOW, 0)
    if not low:
        return ""
    measured = report.summary["computable_tasks"]
    return (
        f"The gold of {low:,} of {measured:,} measured tasks has low confidence: only the prose of a task mentions it. "
        "A second row has the means without these tasks."
    )


def _measured(report: TraceReport) -> tuple[str, ...]:
    """Return the measures that tables of means show."""
    return ("file_recall", "mrr", *report.names.headline, *report.names.precision, "context_efficiency")


def _rows(report: TraceReport, folds: Iterable[tuple[str, Json]]) -> list[list[Any]]:
    """Return a row of means for each fold, and one without the tasks whose gold has low confidence where it has any."""
    rows: list[list[Any]] = []
    for name, folded in folds:
        rows.append(_means(report, name, folded))
        if sure := folded.get("without_low_confidence"):
            rows.append(_means(report, f"{name}, without low confidence", sure))
    return rows


def _means(report: TraceReport, name: str, folded: Json) -> list[Any]:
    described = _described(folded)
    measured = f"{folded['computable_tasks']:,} of {folded['total_event_files']:,}"
    confidences = folded["ground_truth_confidences"]
    gold = ", ".join(f"{confidences[level]:,} {level}" for level in _CONFIDENCES if level in confidences)
    shown = (*_measured(report), "ttfr_seconds", "reward", "cost", "seconds")
    return [name, measured, gold, *(described[figure]["mean"] for figure in shown)]


def _described(folded: Json) -> dict[str, Described]:
    """Return every figure of a fold by its name."""
    parts = ("file_level", "chunk_level", "utilization", "error_taxonomy", "outcome")
    return {
        name: found
        for part in parts
        for name, found in folded[f"{part}_aggregates"].items()
        if isinstance(found, Mapping) and "mean" in found
    }


def _task(report: TraceReport, name: str, artifact: Artifact) -> list[Any]:
    said, metrics, known = artifact["provenance"], artifact["file_level_metrics"], figures(artifact)
    confidence = artifact["coverage"].get("ground_truth_confidence")
    step = metrics.get("first_gt_hit_step")
    return [
        name.partition("/")[2], said["config_name"], said["benchmark"],
        known.get("n_ground_truth"), confidence if metrics["computable"] else None,
        *(known.get(figure) for figure in ("n_overlap", "n_retrieved", *_measured(report)[:3])),
        None if step is None else step + 1,
        *(known.get(figure) for figure in ("reward", "cost", "seconds")),
        (metrics["reason"] or "").replace("_", " "),
    ]  # fmt: skip


def _count(value: float | None) -> str:
    return number(None if value is None else int(value))
