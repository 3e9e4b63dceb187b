"""What the swept settings of a leaderboard explain: the mean by value, and the importance of each setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.evaluation.result import Result
from runner.statistics.importance import Importance, estimate_importance

FEWEST_OF_RANGE = 3
"""The fewest values of a numeric setting that are a range, of which the best may be at an end."""


@dataclass(frozen=True)
class SweptSetting:
    """A swept setting with its value for each row, None for a row without it; numbers if all values `are_numbers`."""

    name: str
    values: Sequence[float | str | None]
    are_numbers: bool


@dataclass(frozen=True)
class ValueMean:
    """The primary measure of the combinations with a value of a setting: their number, their mean, and the best."""

    value: str
    combinations: int
    mean: float
    best: float


@dataclass(frozen=True)
class SettingEffect:
    """The primary measure at each value of a setting, over all other swept settings, in the order of the values."""

    setting: str
    means: Sequence[ValueMean]

    @property
    def reach(self) -> float:
        """Return the difference of the mean between the best and the worst value."""
        means = [at.mean for at in self.means]
        return max(means) - min(means)


@dataclass(frozen=True)
class RangeEnd:
    """A numeric setting whose smallest or largest value that was tried the best combination has.

    `next_value` is the next one; `is_significant` says whether the combination that differs in it alone is
    significantly worse.
    """

    setting: str
    value: object
    next_value: object
    is_largest: bool
    is_significant: bool


def list_settings(board: Leaderboard) -> list[SweptSetting]:
    """Return the swept settings that differ between combinations; the retriever comes first if it is not swept."""
    keys = _list_keys(board)
    settings = []
    retrievers = [row.retriever for row in board.rows]
    if "retriever" not in keys and len(set(retrievers)) > 1:
        settings.append(SweptSetting("retriever", retrievers, False))
    for key in keys:
        are_numbers = None not in [_read_number(row.swept[key]) for row in board.rows if key in row.swept]
        show = _read_number if are_numbers else format_setting
        values = [show(row.swept[key]) if key in row.swept else None for row in board.rows]
        settings.append(SweptSetting(key, values, are_numbers))
    return settings


def measure_effects(board: Leaderboard) -> list[SettingEffect]:
    """Return the effect of each swept setting with several values, the one with the largest range first."""
    effects = []
    for key in _list_keys(board):
        having = [row for row in board.rows if key in row.swept and not math.isnan(row.mean)]
        groups: dict[str, list[float]] = {}
        for row in sorted(having, key=lambda row: _in_order(row.swept[key])):
            groups.setdefault(format_setting(row.swept[key]), []).append(row.mean)
        means = [ValueMean(value, len(of), sum(of) / len(of), max(of)) for value, of in groups.items()]
        if len(means) > 1:
            effects.append(SettingEffect(key, means))
    return sorted(effects, key=lambda effect: (-effect.reach, effect.setting))


def find_range_ends(board: Leaderboard) -> list[RangeEnd]:
    """Return the settings of the best at an end of the three or more values that were tried with its other settings.

    The ends of a weight, 0 and 1, do not count: there are no values beyond them.
    """
    best, ends = board.rows[0], []
    for key in best.swept:
        tried = {}
        for row in board.rows:
            number = _read_number(row.swept.get(key))
            if number is not None and {**row.swept, key: best.swept[key]} == best.swept:
                tried[number] = row
        values, own = sorted(tried), _read_number(best.swept[key])
        if len(values) < FEWEST_OF_RANGE or own not in (values[0], values[-1]):
            continue
        is_largest = own == values[-1]
        if own == 0 or (own == 1 and is_largest and values[0] >= 0):
            continue
        after = tried[values[-2 if is_largest else 1]]
        ends.append(RangeEnd(key, best.swept[key], after.swept[key], is_largest, after.difference.significant))
    return ends


def estimate_shares(board: Leaderboard, results: Sequence[Result]) -> list[Importance]:
    """Return the importance of each swept setting and of each pair, the largest share first.

    `results` are those that the leaderboard was built from, in the same order; without them, there are no shares.
    """
    if not board.rows or not results:
        return []
    ranked = [results[row.position] for row in board.rows]
    scores = np.stack([result.of(board.primary) for result in ranked])
    settings = {setting.name: setting.values for setting in list_settings(board)}
    clusters = ranked[0].queries.cluster_numbers
    importances = estimate_importance(scores, settings, np.random.default_rng(0), clusters, board.statistics.confidence)
    return sorted(importances, key=lambda importance: -importance.share)


def _list_keys(board: Leaderboard) -> list[str]:
    return [key for key in dict.fromkeys(key for row in board.rows for key in row.swept) if key not in board.shared]


def _read_number(value: object) -> float | None:
    """Return a swept value as a number, if it is one or its text is; settings may be kept as they were typed."""
    try:
        number = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _in_order(value: object) -> tuple[bool, float, str]:
    """Order swept values: numbers by size, then the rest by their text."""
    number = _read_number(value)
    return number is None, number or 0.0, str(value)
