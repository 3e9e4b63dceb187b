"""Follow measures over windows, and raise alarms for those that have fallen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runner.features.monitor.settings import Monitoring
from runner.features.monitor.windows import WindowMean, WindowRecord
from runner.statistics.change_detection import Course, Detector, Means

QUALITY, ANSWERED = "quality", "answered"
"""The measure of judged searches, and the share of searches with at least one hit."""

WITHIN = 3
"""The number of windows within which a fall should be noticed."""


@dataclass(frozen=True, eq=False)
class Watched:
    """A measure that is watched: its estimate and the evidence of a fall after each window.

    `since` is the mean of the windows since the most likely start of the present fall with its 95 % interval, and
    `chance` the probability that a fall by the drop raises an alarm within three windows; both are NaN without windows
    after the baseline.
    """

    name: str
    estimates: Sequence[WindowMean | None]
    course: Course
    since: tuple[float, float, float]
    chance: float

    @property
    def has_fallen(self) -> bool:
        """Return whether the newest window raises an alarm."""
        return bool(len(self.course.alarms) and self.course.alarms[-1])

    @property
    def start(self) -> int:
        """Return the window in which the present fall began, if there is one."""
        return int(self.course.starts[-1])


@dataclass(frozen=True)
class Watching:
    """All measures that are watched, and slices that cannot be, with the number of windows in which they are known."""

    watched: Sequence[Watched]
    left_out: Mapping[str, int]

    @property
    def fallen(self) -> list[Watched]:
        """Return the measures that raise an alarm in the newest window."""
        return [watched for watched in self.watched if watched.has_fallen]


def watch(records: Sequence[WindowRecord], monitoring: Monitoring) -> Watching:
    """Follow quality, answers and slices over windows; each has its share of the false alarms of all.

    A measure is watched if it is known in more windows than the baseline has.
    """
    getters: dict[str, Callable[[WindowRecord], WindowMean | None]] = {
        QUALITY: lambda record: record.quality,
        ANSWERED: lambda record: record.answered,
    }
    for name in sorted({name for record in records for name in record.slices}):
        getters[name] = lambda record, name=name: record.slices.get(name)  # type: ignore[misc]  # bound at once
    columns = {name: [get(record) for record in records] for name, get in getters.items()}
    known = {name: sum(estimate is not None for estimate in column) for name, column in columns.items()}
    chosen = [name for name in columns if known[name] > monitoring.baseline]
    detector = Detector(monitoring.drop, monitoring.run_length * max(len(chosen), 1), monitoring.baseline)
    left_out = {name: n for name, n in known.items() if name not in chosen and n and name not in (QUALITY, ANSWERED)}
    return Watching([_follow(name, columns[name], detector) for name in chosen], left_out)


def _follow(name: str, estimates: Sequence[WindowMean | None], detector: Detector) -> Watched:
    values = [(e.mean, e.error, e.degrees) if e else (np.nan,) * 3 for e in estimates]
    means = Means(*np.array(values).T)
    course = detector.follow(means)
    known = means[~np.isnan(means.values)]
    chance = detector.find_chance(known, course.baseline_error, course.threshold, WITHIN)
    return Watched(name, estimates, course, _pool(estimates[int(course.starts[-1]) :], means, course), chance)


def _pool(estimates: Sequence[WindowMean | None], means: Means, course: Course) -> tuple[float, float, float]:
    """Return the mean of the windows since the most likely start of a fall, and its interval."""
    known = [estimate for estimate in estimates if estimate]
    if len(known) == 1:
        return known[0].mean, known[0].low, known[0].high
    mean, error = means[int(course.starts[-1]) :].pool()
    return (mean, mean - 1.96 * error, mean + 1.96 * error) if known else (np.nan,) * 3
