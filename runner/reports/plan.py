"""What a sweep would do, as values, a table and plain sentences.

Knows nothing of how it is found out, nor of how a table is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import orjson
from rich.filesize import decimal

from runner.reports.rendering.numbers import DASH, duration, number
from runner.reports.rendering.tables import Column, Table

NAMED = 3
"""How many of the combinations that are to do are named."""

ROUGH, MOST = "~", "\N{LESS-THAN OR EQUAL TO}"
"""What stands before a figure that was measured elsewhere, and before one that is an upper bound."""

TELLING_S = 0.1
"""Less is not told exactly."""


@dataclass(frozen=True)
class PlannedStage:
    """The works of one name: how many there are, are there already and are to do, and what these take.

    `seconds` and `bytes` are of those to do. Of `unknown` of them nothing is known; `rough` is what was measured on
    another machine.
    """

    name: str
    distinct: int
    there: int
    to_do: int
    seconds: float
    bytes: float
    rough: bool = False
    unknown: int = 0


@dataclass(frozen=True)
class PlannedCalls:
    """How often a language model is to be asked for a purpose, at most and without retries.

    With the tokens of all that, None where nothing is known; and the cost, None where prices are not either. What is
    not by what such calls took before is either `rough`, with as many tokens out as there may be, or the `most` that
    it can come to: no token is shorter than a byte.
    """

    purpose: str
    model: str
    calls: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    rough: bool = False
    most: bool = False

    @property
    def mark(self) -> str:
        """Return what stands before its figures: how far they are to be trusted."""
        return MOST if self.most else ROUGH if self.rough else ""


@dataclass(frozen=True)
class Plan:
    """What a sweep would do: its combinations, those to do by name, and the stages of the work.

    `wall_seconds` is how long it takes with so many `workers`, from the command to the report; the `calls` of language
    models take their time besides.
    """

    name: str
    datasets: Sequence[str]
    combinations: int
    finished: int
    to_do: Sequence[str]
    stages: Sequence[PlannedStage]
    wall_seconds: float
    workers: int
    store: str
    calls: Sequence[PlannedCalls] = field(default_factory=tuple)

    @property
    def bytes(self) -> float:
        """Return how much the store grows."""
        return sum(stage.bytes for stage in self.stages)

    @property
    def rough(self) -> bool:
        """Tell whether any time of it that is worth telling was measured on another machine."""
        return any(stage.rough and stage.seconds >= TELLING_S for stage in self.stages)

    @property
    def unknown(self) -> Sequence[str]:
        """Return the stages with works of which nothing is known."""
        return [stage.name for stage in self.stages if stage.unknown]


def as_json(plan: Plan) -> str:
    """Return a plan for machines: all that it has, and the sums of it."""
    content = {**asdict(plan), "bytes": plan.bytes, "rough": plan.rough, "unknown": plan.unknown}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


def search_as_json(name: str, trials: int) -> str:
    """Return of a search for machines what is known of it before it runs."""
    return orjson.dumps({"name": name, "combinations": trials}, option=orjson.OPT_INDENT_2).decode()


def of_search(name: str, trials: int, folds: int) -> str:
    """Return what is known of a search before it runs: its trials on all queries, and as many more for each fold."""
    n = _format_count(trials * (folds + 1), "combination")
    why = f" ({trials:,} trials, and {trials:,} more for each of {folds} folds that check the choice)" if folds else ""
    return f"{name}: a search of up to {n}{why}, each found by what came of those before it"


def heading(plan: Plan) -> str:
    """Return what is planned, and how much of it is finished."""
    n = _format_count(plan.combinations, "combination")
    finished = f"; {plan.finished:,} already finished, {len(plan.to_do):,} to do" if plan.finished else ""
    return f"{plan.name}: {n} on {', '.join(plan.datasets)}{finished}"


def to_do(plan: Plan) -> str:
    """Return which combinations are to do where others are finished, "" where there is nothing to tell."""
    if not plan.finished or not plan.to_do:
        return ""
    more = len(plan.to_do) - NAMED
    return "to do: " + "; ".join(plan.to_do[:NAMED]) + (f"; and {more:,} more" if more > 0 else "")


def stages_table(plan: Plan) -> Table:
    """Return the stages: how many works, how many of them there already and to do, and what these take."""
    columns = [
        Column("work"),
        Column("distinct", number, numeric=True, spare=3),
        Column("in the store", number, numeric=True, spare=2),
        Column("to do", number, numeric=True),
        Column("time", numeric=True),
        Column("disk", numeric=True, spare=1),
    ]
    rows = [[s.name, s.distinct, s.there, s.to_do, _time(s), _size(s.bytes)] for s in plan.stages]
    return Table(columns, rows)


def calls_table(plan: Plan) -> Table:
    """Return how often language models are to be asked, and what that costs."""
    columns = [
        Column("purpose"),
        Column("model", spare=2, least=12),
        Column("calls", number, numeric=True),
        Column("tokens in", numeric=True, spare=1),
        Column("tokens out", numeric=True, spare=1),
        Column("cost", numeric=True),
    ]
    rows = [
        [c.purpose, c.model, c.calls, *(_tokens(c, tokens) for tokens in (c.tokens_in, c.tokens_out)), _cost(c)]
        for c in plan.calls
    ]
    return Table(columns, rows)


def _tokens(calls: PlannedCalls, tokens: int | None) -> str:
    return DASH if tokens is None else f"{calls.mark}{tokens:,}"


def _cost(calls: PlannedCalls) -> str:
    return DASH if calls.cost is None else f"{calls.mark}{calls.cost:.4g}"


def _calls_told(plan: Plan) -> list[str]:
    """Return what is to be known of the calls of language models."""
    if not plan.calls:
        return []
    lines = ["calls are the most that there may be, without retries, and take their time besides"]
    if any(c.rough for c in plan.calls):
        lines.append(f"{ROUGH} by the usual length of the texts, tokens out at most: {_NO_SUCH_CALL}")
    if any(c.most for c in plan.calls):
        lines.append(
            f"{MOST} an upper bound, by the longest texts that may be shown and llm.max_tokens: {_NO_SUCH_CALL}"
        )
    if unknown := dict.fromkeys(c.model for c in plan.calls if c.cost is None):
        lines.append(f"no price known of {', '.join(unknown)}: a cost needs llm.price_in and llm.price_out")
    return lines


_NO_SUCH_CALL = "the ledger has no call of this kind"


def closing(plan: Plan) -> list[str]:
    """Return what all of it takes, and how far that can be trusted."""
    if not plan.to_do:
        return ["Nothing to do."]
    least = "at least" if plan.unknown else "about"
    lines = [
        f"{least} {_about(plan.wall_seconds)} with {_format_count(plan.workers, 'worker')};"
        f" {_size(plan.bytes) if plan.bytes else 'nothing'} more in {plan.store}"
    ]
    lines += _calls_told(plan)
    if plan.rough:
        lines.append(f"{ROUGH} rough: from another machine, as the store has nothing like it to go by")
    if plan.unknown:
        lines.append(f"no estimate of all of: {', '.join(plan.unknown)}")
    return [*lines, "nothing was computed or logged"]


def _time(stage: PlannedStage) -> str:
    if stage.unknown == stage.to_do:
        return DASH
    rough = ROUGH if stage.rough and stage.seconds >= TELLING_S else ""
    return rough + _about(stage.seconds) + (" or more" if stage.unknown else "")


def _about(seconds: float) -> str:
    """Return a duration as exactly as one may be estimated."""
    if seconds < TELLING_S:
        return f"<{TELLING_S} s"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s" if seconds < 59.5 else duration(seconds)


def _size(size: float) -> str:
    return decimal(round(size)) if size >= 1 else DASH


def _format_count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
