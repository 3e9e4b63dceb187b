"""What a leaderboard recommends, in sentences: the row to use, what the choice rests on, which values to try next."""

from __future__ import annotations

import math

from runner.comparison.criteria import COSTS
from runner.comparison.gate import find_allowed_loss
from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard, LeaderboardRow
from runner.comparison.recommendation import Recommendation, recommend
from runner.comparison.selection import WinnerSelection
from runner.comparison.swept_settings import RangeEnd, find_range_ends
from runner.pages.numbers import FORMATS, format_signed, score4
from runner.sweep.report.tables import describe_best, name_queries


def describe_recommendation(board: Leaderboard) -> str:
    """Return what to use, why, and which values to try next; "" if there is no choice."""
    advice = recommend(board)
    if advice is None:
        return ""
    return " ".join([_describe_choice(board, advice), *map(_describe_range_end, find_range_ends(board))])


def _describe_choice(board: Leaderboard, advice: Recommendation) -> str:
    labels, n, chosen = board.labels, len(advice.alike), board.selection
    if advice.arbitrary:
        figures = f"{board.primary} {score4(advice.row.mean)}{_describe_time(advice.row, ', ')}"
        which = "any, such as" if advice.cheapest is None else "the cheapest:"
        use = f"Use {which} {labels[advice.row.rank - 1]} ({figures})."
        return f"{_describe_alike(board, advice)} {use}{_describe_needed(board, advice)}"
    if chosen is not None and not chosen.is_on_reported_data:
        return f"Use {describe_best(board)}{_describe_doubt(chosen)}."
    queries = f"on {name_queries(board)}"
    use = f"Use {labels[0]} ({board.primary} {score4(board.rows[0].mean)})"
    if n == 1:
        return f"{use}; all others are significantly worse {queries}."
    count = f"{n - 1:,} others do" if n > 2 else f"{labels[advice.alike[1].rank - 1]} does"
    use = f"{use}; {count} not differ significantly from it {queries}."
    if advice.cheapest is None:
        return use
    if advice.cheapest is advice.row:
        return f"{use} It is also the cheapest of these ({_describe_time(advice.row)})."
    return f"{use} The cheapest of these: {labels[advice.cheapest.rank - 1]} ({_describe_time(advice.cheapest)})."


def _describe_alike(board: Leaderboard, advice: Recommendation) -> str:
    """Return whether the choice among the rows alike is shown not to matter, or cannot be decided by these queries."""
    n = len(advice.alike)
    among = f"the best {n:,}" if advice.alike[-1].rank == n else f"{n:,} combinations"
    if advice.is_harmless:
        return (
            f"The choice among {among} does not matter: their differences from the best are within "
            f"{find_allowed_loss():g} ({board.statistics.confidence * 100:g}% intervals)."
        )
    queries = name_queries(board)
    seen = f"they usually show differences from about {score4(board.detectable)}, and "
    return (
        f"{queries[0].upper()}{queries[1:]} cannot show which of {among} is better: "
        f"{seen if 0 < board.detectable < math.inf else ''}{_describe_chance(board)}."
    )


def _describe_chance(board: Leaderboard) -> str:
    """Return why choosing the best is arbitrary."""
    if board.search_gain.observed <= board.search_gain.expected:
        return "choosing the best gained no more than chance gives"
    return "no difference is significant"


def _describe_doubt(chosen: WinnerSelection) -> str:
    """Return that what was selected is not shown to be better than the default settings; "" if it is."""
    default = chosen.default
    if default is None or (default.difference.p < default.statistics.alpha and default.difference.mean > 0):
        return ""
    return f"; but it is not shown to be better than the default settings ({score4(default.default)})"


def _describe_needed(board: Leaderboard, advice: Recommendation) -> str:
    """Return how many queries would show the difference between the row to use and the best, or else the next row."""
    other = advice.row if advice.row is not advice.alike[0] else advice.alike[1]
    own, rival = other.difference, "the best" if other is advice.row else "the next"
    if advice.is_harmless or not math.isfinite(own.needed):
        return ""
    needed = f"{own.needed:,.0f} {'queries' if board.clusters is None else 'clusters'}"
    difference = format_signed(own.mean if other is advice.row else -own.mean)
    return f" About {needed} would be needed to show its difference from {rival} ({difference})."


def _describe_range_end(end: RangeEnd) -> str:
    """Return that the best has the smallest or the largest value that was tried, as a hint."""
    most, more = ("largest", "larger") if end.is_largest else ("smallest", "smaller")
    best, next_value = (format_setting(value) for value in (end.value, end.next_value))
    if end.is_significant:
        return (
            f"The best {end.setting} is the {most} tried ({best}), significantly better than {next_value}: try {more} "
            "values."
        )
    return (
        f"The best {end.setting} is the {most} tried ({best}), though not significantly better than {next_value}; "
        f"{more} values may be worth a try."
    )


def _describe_time(row: LeaderboardRow, start: str = "") -> str:
    cost = COSTS["median_ms"]
    time = row.means.get(cost.name, math.nan)
    return "" if math.isnan(time) else f"{start}{FORMATS[cost.format](time)} ms a query"
