"""Collect verdicts from a language model: one number per question, parsed from any form of reply.

A missing verdict is null, with the reason; none is made up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from retrievers.llm.chat import Chat, ChatError, Reply
from runner.llm.faults import LASTING
from runner.llm.journal import Journal
from runner.llm.json_replies import iter_json_objects
from runner.llm.rounds import Rounds

Outcome = Literal["graded", "rescued", "unreadable", "refused", "error", "unasked"]
"""How a question ended, in this order.

A number from JSON; a number from other text; a reply without a number; a refusal that will not change; a temporary
error; not asked, because the budget was spent or no model was available."""

ELLIPSIS = " [...]"
"""The mark for the part of a text that was cut off."""

_NUMBER = r"[\"'*_` ]*(-?\d+(?:\.\d+)?)"


@dataclass(frozen=True)
class Scale:
    """The smallest and the largest grade; grades outside count as the nearer end."""

    least: int
    greatest: int

    def warning(self, verdicts: Iterable[GradeVerdict]) -> str:
        """Return a warning about grades outside the scale; "" if there are none."""
        graded = [verdict for verdict in verdicts if verdict.grade is not None]
        clamped = sum(verdict.clamped for verdict in graded)
        if not clamped:
            return ""
        return (
            f"{clamped:,} of {len(graded):,} grades were outside the scale of {self.least} to {self.greatest} and "
            "count as its nearer end; the judge may use another scale, so check its prompt before you trust the "
            "figures"
        )


@dataclass(frozen=True)
class GradeVerdict:
    """A grade with the model's reasoning, or None with the reason.

    `clamped` marks a grade from outside the scale, `cut` one of a text that was too long to be sent whole. `attempts`
    counts how often the question was asked, and `calls` the requests that this took, with their tokens, and their cost
    if prices are known. `cached` is true if no reply had to be paid for.
    """

    grade: float | None
    outcome: Outcome
    reasoning: str = ""
    clamped: bool = False
    cached: bool = False
    attempts: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    cut: bool = False


def read(text: str, scale: Scale) -> GradeVerdict:
    """Return the verdict in a reply: the last `{"grade": n, "reasoning": "..."}` in it, or a number from other text."""
    graded = iter_json_objects(text, lambda content: _number(content.get("grade")) is not None)
    content = [{}, *graded][-1]  # a model that reasons aloud ends with its answer
    number = _number(content.get("grade"))
    if number is not None:
        return _within(scale, number, "graded", str(content.get("reasoning") or ""))
    number = _rescue_number(text, scale)
    if number is None:
        return GradeVerdict(None, "unreadable", f"no grade in: {' '.join(text.split())[:200]}")
    return _within(scale, number, "rescued", " ".join(text.split()))


def _within(scale: Scale, number: float, outcome: Outcome, reasoning: str) -> GradeVerdict:
    grade = min(max(number, float(scale.least)), float(scale.greatest))
    return GradeVerdict(grade, outcome, reasoning, clamped=grade != number)


def _number(value: object) -> float | None:
    """Return a finite number, also from a string; else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _rescue_number(text: str, scale: Scale) -> float | None:
    """Return the number in text that is not JSON: grade: n, n/10 (10 being the largest grade), score: n."""
    patterns = (
        rf"\bgrade[\"'*_` ]*[:=]{_NUMBER}",
        rf"(?<![\d./-])(-?\d+(?:\.\d+)?)[*_` ]*/ *{scale.greatest}(?![\d/]|\.\d)",
        rf"\bscore[\"'*_` ]*[:=]{_NUMBER}",
    )
    matches = (re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
    return next((float(match[1]) for match in matches if match), None)


@dataclass(frozen=True)
class Patience:
    """How often questions without a grade are asked again, and the first pause in seconds, which then doubles."""

    retries: int = 3
    backoff_s: float = 1.0


def collect_verdicts(
    llm: Chat,
    questions: Sequence[str],
    scale: Scale,
    purpose: str,
    journal: Journal,
    patience: Patience = Patience(),
    repeats: int = 1,
    advance: Callable[[bool], None] = lambda failed: None,
) -> list[list[GradeVerdict]]:
    """Return the verdicts on each question, `repeats` of them; `advance` is called after each first answer or failure.

    All questions are asked once before any is asked again, so that as many as possible have a verdict when the budget
    is spent. The rest, also after any other final error, are `unasked`. Each repeated question ends with one more line
    break, so that no cache returns the previous reply.
    """
    columns = []
    for repeat in range(repeats):
        column = [GradeVerdict(None, "unasked")] * len(questions)
        again = "\n" * (repeat * (patience.retries + 1))
        texts = {position: question + again for position, question in enumerate(questions)}
        ask = partial(journal.ask_all, llm, purpose=purpose)
        rounds = Rounds(ask, texts, patience.retries, patience.backoff_s)
        for position, outcome in rounds.outcomes():
            before, failed = column[position], isinstance(outcome, ChatError)
            if not before.attempts and not (isinstance(outcome, ChatError) and outcome.final):
                advance(failed)
            column[position] = _after(before, outcome, scale)
            if not failed and column[position].outcome == "unreadable":
                rounds.ask_again(position)
        columns.append(column)
    return [list(row) for row in zip(*columns, strict=True)]


def shorten(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters; " [...]" replaces what was cut off."""
    return text if len(text) <= longest else f"{text[: max(longest - len(ELLIPSIS), 0)]}{ELLIPSIS}"


def cut_warning(verdicts: Iterable[GradeVerdict]) -> str:
    """Return a warning about verdicts on cut texts; "" if there are none."""
    every = list(verdicts)
    cut = sum(verdict.cut for verdict in every)
    if not cut:
        return ""
    return f"{cut:,} of {len(every):,} verdicts are based on texts that were cut to max_characters"


def _after(before: GradeVerdict, outcome: Reply | ChatError, scale: Scale) -> GradeVerdict:
    """Return the verdict after one more answer, with its total cost; a final error keeps an earlier verdict."""
    if before.attempts and isinstance(outcome, ChatError) and outcome.final:  # it may have made calls itself
        return replace(before, calls=before.calls + outcome.calls, cost=before.cost + outcome.cost)
    if isinstance(outcome, Reply):
        verdict, free = read(outcome.text, scale), outcome.cached
    else:
        kind: Outcome = "unasked" if outcome.final else "refused" if outcome.kind in LASTING else "error"
        verdict, free = GradeVerdict(None, kind, str(outcome)), False
    return replace(
        verdict,
        cached=free and (before.cached or not before.attempts),
        attempts=before.attempts + (verdict.outcome != "unasked"),
        calls=before.calls + outcome.calls,
        tokens_in=before.tokens_in + outcome.tokens_in,
        tokens_out=before.tokens_out + outcome.tokens_out,
        cost=before.cost + outcome.cost,
    )
