"""Describes agents' runs in tables of values, for the console, Markdown and HTML alike.

Knows nothing of how a table is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

from runner.features.traces.measures.figures import list_figures
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.summary import Fold
from runner.features.traces.measures.task_figures import Unit, find_figure, list_names
from runner.features.traces.measures.trials import LOW
from runner.features.traces.report.report import TraceReport
from runner.pages.numbers import DASH, duration, format_signed, gist, interval_title, number, p_value, score
from runner.pages.tables import Column, Table, build_error_table

TASKS = 500
"""The number of tasks that a report lists, the most interesting first; its JSON has all."""

TIMELINE = (
    "Steps run from left to right; files are listed from top to bottom in the order in which they were first "
    "seen. Gold files are green, or red if never seen; a dashed line marks the first one. The number before each "
    "task is its recall."
)
"""The explanation of a timeline."""

_CONFIDENCES = ("high", "medium", LOW, "unknown")
_FORMATS: Mapping[Unit, Callable[[float | None], str]] = {
    "share": score,
    "reward": score,
    "dollars": lambda value: score(value, 2),
    "seconds": duration,
    "tokens": number,
    "files": lambda value: number(None if value is None else int(value)),
}


def heading(report: TraceReport) -> str:
    """Return what was read, in one line."""
    whole, configs = report.summary.whole, len(report.summary.by_configuration)
    parts = [
        f"{whole.n_traces:,} traces of {configs:,} configuration{'s' * (configs != 1)}",
        f"{whole.n_measured:,} with ground truth",
        f"{whole.n_degraded:,} degraded",
        *([f"{len(report.failures):,} failed"] if report.failures else []),
    ]
    return ", ".join(parts)


def configurations_table(report: TraceReport) -> Table:
    """Return the means of each configuration over its measured tasks, and over those with a known outcome."""
    columns = [
        Column("configuration", least=12),
        Column("tasks", number, numeric=True),
        Column("measured traces", numeric=True, spare=1),
        Column("gold confidence", least=8, spare=2),
        *(_column(name, spare=int(name not in ("file_recall", "mrr"))) for name in _list_measures(report)),
        _column("ttfr_seconds", spare=4),
        _column("reward"),
        _column("cost", spare=2),
        _column("seconds", spare=3),
    ]
    return Table(columns, _build_rows(report, report.summary.by_configuration.items()))


def means_note(report: TraceReport) -> str:
    """Return which tasks the means of a configuration are over."""
    note = (
        "Means over the measured tasks, each with the mean of its traces; outcomes over tasks with a known outcome; "
        "first gold over tasks where any was seen."
    )
    several = len(report.summary.by_configuration) > 1
    return (
        f"{note} To test a difference on the tasks that two configurations share, compare their runs."
        if several
        else note
    )


def rewards_note(report: TraceReport) -> str:
    """Return a warning about the scale of rewards if any is above 1; "" if none is."""
    rewards = [known["reward"] for task in report.tasks.values() if "reward" in (known := list_figures(task))]
    beyond = [reward for reward in rewards if reward > 1]
    if not beyond:
        return ""
    return (
        f"Each reward is on the scale of its verifier: {len(beyond):,} of {len(rewards):,} "
        f"{'is' if len(beyond) == 1 else 'are'} above 1, up to {number(max(beyond))}, such as sums over checkpoints. "
        "Means are comparable only over the same tasks."
    )


def suites_table(report: TraceReport) -> Table:
    """Return the means of each suite; empty unless at least two have measured tasks."""
    table = configurations_table(report)
    suites = [(name, fold) for name, fold in report.summary.by_suite.items() if fold.n_measured]
    rows = _build_rows(report, suites) if len(suites) > 1 else []
    return Table([Column("suite", least=12), *table.columns[1:]], rows)


def slices_table(report: TraceReport) -> Table:
    """Return the means of each slice: by the number of candidate files, and by how the agent found them."""
    table = configurations_table(report)
    slices = [
        (f"{kind.replace('_', ' ')}: {name}", fold)
        for kind, folds in report.summary.by_slice.items()
        for name, fold in folds.items()
    ]
    return Table([Column("slice", least=12), *table.columns[1:]], _build_rows(report, slices))


def errors_table(report: TraceReport) -> Table:
    """Return the mean number of files of each error label, by configuration."""
    folds = {name: fold for name, fold in report.summary.by_configuration.items() if fold.n_measured}
    columns = [Column("error", least=20), Column("counts", least=24, spare=1)]
    columns += [Column(name, number, numeric=True) for name in folds]
    rows = [
        [error.title, error.definition, *(fold.figures[error.name]["mean"] for fold in folds.values())]
        for error in map(find_figure, list_names("errors"))
    ]
    return Table(columns, rows if folds else [])


def figures_table(report: TraceReport) -> Table:
    """Return every figure of each configuration: its tasks, traces, mean, standard deviation and median."""
    columns = [
        Column("figure"), Column("configuration"), Column("tasks", number, numeric=True),
        Column("traces", number, numeric=True),
        *(Column(name, lambda value: score(value, 4), numeric=True) for name in ("mean", "deviation", "median")),
    ]  # fmt: skip
    rows = [
        [figure, name, of["n"], of["traces"], of["mean"], of["std"], of["median"]]
        for figure in report.names.all
        for name, fold in report.summary.by_configuration.items()
        if (of := fold.figures[figure])["n"]
    ]
    return Table(columns, rows)


def tasks_table(report: TraceReport, limit: int = TASKS) -> Table:
    """Return the tasks with their measures and outcomes, the most interesting first."""
    columns = [
        Column("task", least=16),
        Column("configuration"),
        Column("suite", spare=5),
        Column("gold", _FORMATS["files"], numeric=True, spare=4),
        Column("gold confidence", spare=4),
        Column("found", _FORMATS["files"], numeric=True, spare=4),
        Column("seen", _FORMATS["files"], numeric=True, spare=3),
        *(_column(name, spare=int(name != "file_recall")) for name in _list_measures(report)[:3]),
        Column("first gold at step", _FORMATS["files"], numeric=True, spare=6),
        _column("reward"),
        _column("cost", spare=6),
        _column("seconds", spare=6),
        Column("not measured", spare=7),
    ]
    return Table(columns, [_build_task(report, name, task) for name, task in islice(report.tasks.items(), limit)])


def unreadable_table(report: TraceReport) -> Table:
    """Return what could not be read of traces, task definitions and outcomes."""
    groups: dict[str, list[str]] = {}
    for name, task in report.tasks.items():
        losses = filter(None, (task["coverage"]["degraded_reason"] or "").split("; "))
        outcome = task["outcome"] or {}
        problems = (*task["coverage"].get("ground_truth_problems", ()), *outcome.get("problems", ()))
        for what in (*(loss.rpartition(" (")[0] or loss for loss in losses), *map(gist, problems)):
            groups.setdefault(what, []).append(name)
    return build_error_table("traces", groups)


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


def _format_interval(bounds: Sequence[float] | None) -> str:
    return DASH if bounds is None else f"[{format_signed(bounds[0], 3)}, {format_signed(bounds[1], 3)}]"


def failures_table(report: TraceReport) -> Table:
    """Return the runs that failed, grouped by error."""
    groups: dict[str, list[str]] = {}
    for name, error in report.failures.items():
        groups.setdefault(gist(error, 200), []).append(name)
    return build_error_table("runs", groups)


def tiles(report: TraceReport) -> list[tuple[str, str, str]]:
    """Return the main figures, each with its title and number of tasks.

    There are none for several configurations, whose common means describe none of them.
    """
    if len(report.summary.by_configuration) > 1:
        return []
    figures = report.summary.whole.figures
    shown = ("file_recall", "mrr", *report.names.headline, "ttfr_seconds", "reward")
    return [(title(name), format_figure(name, (of := figures[name])["mean"]), f"of {of['n']:,}") for name in shown]


def describe_task(report: TraceReport, artifact: Artifact) -> str:
    """Return the measures and the outcome of a task, in one line."""
    known, metrics = list_figures(artifact), artifact["file_level_metrics"]
    parts = [
        f"{metrics['n_overlap']} of {metrics['n_ground_truth']} gold" if metrics["computable"] else "not measured",
        *(f"{title(name)} {score(known[name])}" for name in report.names.headline if name in known),
        *([f"reward {score(known['reward'])}"] if "reward" in known else []),
        *([f"${known['cost']:.2f}"] if "cost" in known else []),
        *([duration(known["seconds"])] if "seconds" in known else []),
    ]
    return ", ".join(parts)


def timelines_note(report: TraceReport) -> str:
    """Return how many of the traces with events have a timeline, and how to get more."""
    shown = len(report.timelines)
    n = sum(bool(task["event_summary"].get("total_events")) for task in report.tasks.values())
    order = "Tasks on which configurations differ most come first, then those with the lowest recall."
    if shown == n:
        return order
    return (
        f"{shown:,} of {n:,} traces. {order} For more, set timelines={min(n, max(2 * shown, 100))}, or a more "
        "specific path."
    )


def title(figure: str) -> str:
    """Return the title of a figure in tables."""
    return find_figure(figure).title


def format_figure(figure: str, value: float | None) -> str:
    """Return the value of a figure in its unit."""
    return _FORMATS[find_figure(figure).unit](value)


def confidence_note(report: TraceReport) -> str:
    """Return how many measured traces have gold of low confidence; "" if none has."""
    low = report.summary.whole.confidences.get(LOW, 0)
    if not low:
        return ""
    return (
        f"The gold of {low:,} of {report.summary.whole.n_measured:,} measured traces has low confidence, because "
        "only the prose of the task mentions it. A second row shows the means without these traces."
    )


def _column(figure: str, spare: int = 0) -> Column:
    return Column(title(figure), partial(format_figure, figure), numeric=True, spare=spare)


def _list_measures(report: TraceReport) -> tuple[str, ...]:
    """Return the measures in tables of means."""
    return ("file_recall", "mrr", *report.names.headline, *report.names.precision, "context_efficiency")


def _build_rows(report: TraceReport, folds: Iterable[tuple[str, Fold]]) -> list[list[object]]:
    """Return a row of means for each fold, and a second one without low confidence if it has such tasks."""
    rows: list[list[object]] = []
    for name, fold in folds:
        rows.append(_build_means(report, name, fold))
        if fold.without_low_confidence:
            rows.append(_build_means(report, f"{name}, without low confidence", fold.without_low_confidence))
    return rows


def _build_means(report: TraceReport, name: str, fold: Fold) -> list[object]:
    gold = ", ".join(f"{fold.confidences[level]:,} {level}" for level in _CONFIDENCES if level in fold.confidences)
    shown = (*_list_measures(report), "ttfr_seconds", "reward", "cost", "seconds")
    means = (fold.figures[figure]["mean"] for figure in shown)
    return [name, fold.n_tasks, f"{fold.n_measured:,} of {fold.n_traces:,}", gold, *means]


def _build_task(report: TraceReport, name: str, artifact: Artifact) -> list[object]:
    provenance, metrics, known = artifact["provenance"], artifact["file_level_metrics"], list_figures(artifact)
    confidence = artifact["coverage"].get("ground_truth_confidence")
    step = metrics.get("first_gt_hit_step")
    return [
        name.partition("/")[2], provenance["config_name"], provenance["benchmark"],
        known.get("n_ground_truth"), confidence if metrics["computable"] else None,
        *(known.get(figure) for figure in ("n_overlap", "n_retrieved", *_list_measures(report)[:3])),
        None if step is None else step + 1,
        *(known.get(figure) for figure in ("reward", "cost", "seconds")),
        (metrics["reason"] or "").replace("_", " "),
    ]  # fmt: skip
