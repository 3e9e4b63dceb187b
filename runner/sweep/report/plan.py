"""The plan of a sweep as tables and sentences."""

from __future__ import annotations

from rich.filesize import decimal

from runner.comparison.report.significance import describe_limit
from runner.pages.numbers import DASH, duration, format_count, number, score
from runner.pages.tables import Column, Table
from runner.sweep.work import LEAST_S, Plan, PlannedCalls, PlannedStage, SearchPlan

NAMED = 3
"""Most names of combinations to do."""

ROUGH, MOST = "~", "\N{LESS-THAN OR EQUAL TO}"
"""Marks of a rough figure and of an upper bound."""

_NO_SUCH_CALL = "the ledger has no call of this kind"


def describe_search(plan: SearchPlan) -> str:
    """Return the number of trials of a search."""
    n, trials = format_count(plan.combinations, "combination", "combinations"), plan.trials
    why = f" ({trials:,} trials, and {trials:,} more for each of {plan.folds} folds that validate the selection)"
    return (
        f"{plan.name}: a search of up to {n}{why if plan.folds else ''}; each depends on the results of those before it"
    )


def heading(plan: Plan) -> str:
    """Return the name, size and datasets of a plan, and how much is finished."""
    n = format_count(plan.combinations, "combination", "combinations")
    finished = f"; {plan.finished:,} already finished, {len(plan.to_do):,} to do" if plan.finished else ""
    return f"{plan.name}: {n} on {', '.join(plan.datasets)}{finished}"


def to_do(plan: Plan) -> str:
    """Return the combinations to do if others are finished, otherwise ""."""
    if not plan.finished or not plan.to_do:
        return ""
    more = len(plan.to_do) - NAMED
    return "to do: " + "; ".join(plan.to_do[:NAMED]) + (f"; and {more:,} more" if more > 0 else "")


def stages_table(plan: Plan) -> Table:
    """Return the stages: how many pieces of work there are, are cached and are to do, with their time and disk."""
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
    """Return the calls of models behind APIs and their cost."""
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


def _mark(calls: PlannedCalls) -> str:
    return MOST if calls.most else ROUGH if calls.rough else ""


def _tokens(calls: PlannedCalls, tokens: int | None) -> str:
    return DASH if tokens is None else f"{_mark(calls)}{tokens:,}"


def _cost(calls: PlannedCalls) -> str:
    return DASH if calls.cost is None else f"{_mark(calls)}{calls.cost:.4g}"


def _describe_calls(plan: Plan) -> list[str]:
    """Return remarks on the calls of models behind APIs."""
    if not plan.calls:
        return []
    lines = ["calls are upper bounds without retries; their time is not included"]
    prompts, texts = ([c for c in plan.calls if (c.tokens_out is None) is alone] for alone in (False, True))
    if any(c.rough for c in texts):
        lines.append(f"{ROUGH} estimated from the tokens per byte of earlier calls")
    if any(c.most for c in texts):
        lines.append(f"{MOST} upper bound with a token for each byte: {_NO_SUCH_CALL}")
    if any(c.rough for c in prompts):
        lines.append(f"{ROUGH} estimated from typical text lengths, with tokens out at most: {_NO_SUCH_CALL}")
    if any(c.most for c in prompts):
        lines.append(f"{MOST} upper bound from the longest texts that may be sent and llm.max_tokens: {_NO_SUCH_CALL}")
    unknown: dict[str, list[str]] = {}
    for c in plan.calls:
        if c.cost is None:
            unknown.setdefault(c.price_settings, []).append(c.model)
    for settings, models in unknown.items():
        lines.append(f"no price for {', '.join(dict.fromkeys(models))}; set {settings} to see a cost")
    return lines


def describe_power(plan: Plan | SearchPlan) -> list[str]:
    """Return which differences and losses the queries of each dataset can show, and where the spread comes from."""
    lines = []
    for power in plan.power:
        tested = f"{power.measure} on {power.units:,} {power.unit}"
        if len(plan.power) > 1:
            tested = f"{power.dataset}: {tested}"
        spread = f"the deviation of differences is {power.spread:.2f}, "
        spread += (
            f"as in {power.results} earlier results on this dataset" if power.results
            else "assumed: there are no two earlier results on this dataset"
        )  # fmt: skip
        of = f", corrected for {power.pairs:,} pairs" if power.pairs > 1 else ""
        limit = describe_limit(power.single, power.units, power.unit)
        alone = f"a comparison with a baseline detects a loss of about {score(power.single)}"
        if power.pairs:
            lines.append(
                f"{tested}: differences below about {score(power.corrected)} usually cannot be seen (power 80%{of}; "
                f"{spread})."
            )
            lines.append(f"{alone[0].upper()}{alone[1:]}. {limit}")
        else:
            lines.append(f"{tested}: {alone} (power 80%; {spread}). {limit}")
    return lines


def closing(plan: Plan) -> list[str]:
    """Return the total time and disk space, and how reliable the estimates are."""
    if not plan.to_do:
        return ["Nothing to do."]
    lines = [describe_total(plan), *_describe_calls(plan)]
    if plan.race:
        lines.append(plan.race)
    if plan.rough:
        lines.append(f"{ROUGH} from earlier work that was less than a tenth as large")
    if plan.unknown and plan.wall_seconds is not None:
        lines.append(f"not measured yet, and not included: {', '.join(plan.unknown)}")
    return [*lines, "nothing was computed or logged"]


def describe_total(plan: Plan) -> str:
    """Return the total time and the growth of the store, or that nothing comparable was measured yet."""
    if plan.wall_seconds is None:
        return f"no time or disk space: no comparable work was measured with {plan.store} and these runs yet"
    least = "at least" if plan.unknown else "about"
    grows = _size(plan.bytes) if plan.bytes else "nothing"
    workers = format_count(plan.workers, "worker", "workers")
    return f"{least} {_about(plan.wall_seconds)} of work with {workers}; {grows} more in {plan.store}"


def _time(stage: PlannedStage) -> str:
    if stage.unknown == stage.to_do:
        return DASH
    rough = ROUGH if stage.rough and stage.seconds >= LEAST_S else ""
    return rough + _about(stage.seconds) + (" or more" if stage.unknown else "")


def _about(seconds: float) -> str:
    """Return an estimated duration as text."""
    if seconds < LEAST_S:
        return f"<{LEAST_S} s"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s" if seconds < 59.5 else duration(seconds)


def _size(size: float) -> str:
    return decimal(round(size)) if size >= 1 else DASH
