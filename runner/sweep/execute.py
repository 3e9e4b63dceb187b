"""Runs a sweep over a grid, from its axes to its reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from retrievers.base import RetrieverError
from runner.comparison.selection import KFOLD
from runner.config.objects import ConfigError
from runner.datasets.source import DatasetSource
from runner.evaluation.experiment import Experiment
from runner.llm.spending import describe_spending
from runner.pages import console
from runner.pages.numbers import duration
from runner.pages.progress import LONG_S, PLAN, Status
from runner.sweep.closing import SweepContent, SweepEnding, report
from runner.sweep.computation import needs_model
from runner.sweep.declared import Declared, axes_of_points
from runner.sweep.identity import identify_combinations
from runner.sweep.plan import count_workers, plan, plan_combinations
from runner.sweep.products import Combination
from runner.sweep.reporting import ReportWriter
from runner.sweep.run import SweepRun
from runner.sweep.selection import Chosen, Selecting, place, refuse_splits
from runner.sweep.settings import SweepSettings
from runner.tracking.background import BackgroundTracker
from runner.tracking.tracing import log_exchanges

GOLDEN_REPORT = 100
"""The largest number of combinations for a golden report, as their rankings stay in memory."""


def sweep(declared: Declared, writer: ReportWriter) -> SweepEnding:
    """Run, log and report every combination; return how the sweep ended. Raises errors of settings before any work."""
    with Status("composing the combinations and loading their data"):
        experiments = declared.experiments(declared.points)
        declared.check_read(declared.points)
    primary, statistics = str(declared.metrics(experiments).primary_measure), experiments[0].statistics
    axes = axes_of_points(declared.points)
    choices = _choices(declared, experiments, axes)
    head = declared.sweep(axes, len(declared.points), experiments, _describe_choice(declared.settings))
    with (
        log_exchanges(declared.tracking, declared.traces),
        BackgroundTracker(declared.tracking) as tracker,
        SweepRun(head, declared.settings, declared.bench, tracker, writer, _golden(experiments)) as run,
    ):
        selectings = [Selecting(declared, run, statistics, source, on) for source, on, _ in choices]
        wanted: dict[str, Experiment] = {} if choices else identify_combinations(experiments, declared.bench)
        for selecting, (_, _, points) in zip(selectings, choices, strict=True):
            wanted |= dict(selecting.identify(points))
        if declared.settings.dry_run:
            return SweepEnding(plan(declared, head, wanted, tracker))
        if expected := _describe_long_work(wanted, run.parent.state.finished, declared):
            console.note(expected)
        chosen: list[Chosen] = []
        try:
            for _ in run.evaluate(run.race.hold(wanted) if declared.settings.race else wanted):
                pass
            if not (declared.settings.fail_fast and run.outcome.failures):
                chosen = [c for selecting in selectings if (c := selecting.choose(list(selecting.points)))]
        except KeyboardInterrupt:
            run.outcome.interrupted = True
        ending = report(run, SweepContent(list(wanted), primary, statistics, chosen), declared)
    if note := describe_spending(
        part for experiment in experiments for part in (experiment.retriever, experiment.grading)
    ):
        console.note(note)
    return ending


def _describe_long_work(wanted: Mapping[str, Experiment], finished: Collection[str], declared: Declared) -> str:
    """Return the expected time of the combinations to compute, "" if it is short, unknown, or not worth an estimate.

    Only combinations with pre-trained models or services are worth it: others are computed in the time of an estimate.
    Rates are those of the work in the store.
    """
    if not any(needs_model(experiment.retriever) for experiment in wanted.values()):
        return ""
    try:
        made = plan_combinations("", wanted, finished, declared.bench, count_workers(declared.settings))
    except (ConfigError, RetrieverError):  # such as a service that does not answer: its combinations fail one by one
        return ""
    if (made.wall_seconds or 0.0) < LONG_S:
        return ""
    least = "at least " if any(stage.unknown for stage in made.stages) else ""
    return f"expected time: {least}{duration(made.wall_seconds)}; {PLAN}"


def _describe_choice(settings: SweepSettings) -> dict[str, object]:
    """Return the settings by which a grid chooses its combinations and its winner, for the identity of its report."""
    choice: dict[str, object] = {"method": "grid", "select_on": settings.select_on}
    if settings.constraints:
        choice["constraints"] = list(map(str, settings.constraints))
    if settings.race:
        choice["race"] = {"block": settings.race_block, "margin": settings.race_margin, "seed": settings.seed}
    if settings.select_on == KFOLD:
        choice["folds"] = {"seed": settings.seed, "resamples": settings.resamples}
    return choice


def _choices(
    declared: Declared, experiments: Sequence[Experiment], axes: Mapping[str, str]
) -> list[tuple[DatasetSource, str, list[Combination]]]:
    """Return each dataset of a sweep that selects a winner, the split to select on, and the points of the dataset."""
    select_on = declared.settings.select_on
    if select_on is None:
        return []
    refuse_splits(axes)
    points: dict[str, list[Combination]] = {}
    for experiment, point in zip(experiments, declared.points, strict=True):
        points.setdefault(repr(experiment.source), []).append(point)
    sources = {repr(experiment.source): experiment.source for experiment in experiments}
    return [(source, place(select_on, source), points[which]) for which, source in sources.items()]


def _golden(experiments: Sequence[Experiment]) -> bool:
    """Return whether a sweep can have a golden report: all datasets are golden, and the combinations are few."""
    return len(experiments) <= GOLDEN_REPORT and all(experiment.source.golden for experiment in experiments)
