"""Measure how much each document helps a language model to answer, using random subsets of a query's documents.

The impact of a document is the success rate of the subsets with it minus that of the subsets without it. A query that
the model answers correctly without documents is not measured, because no document can help. Draws depend only on the
seed and the query, so resumed work asks the same questions, which the journal answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from retrievers.llm.chat import Chat
from retrievers.store import fingerprint
from runner.features.mine.base import DocumentImpact, Impact, ImpactSettings, Query
from runner.features.mine.replies import (
    NECESSITY,
    JsonReply,
    NoReply,
    ask_for_json,
    fill_prompt,
    is_expected,
    is_true,
)
from runner.features.mine.targets import Targets
from runner.llm.journal import Journal

PURPOSE = "mine: impact"


@dataclass
class _Trials:
    """The answers to one query so far: the documents of each subset, and whether the answer was correct."""

    query: Query
    documents: tuple[int, ...]
    subsets: Iterator[tuple[bool, ...]]
    drawn: list[tuple[bool, ...]] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)
    baseline: bool | None = None
    questions: int = 0
    why: str = ""
    unfinished: bool = False

    def impacts(self) -> list[DocumentImpact]:
        return [_impact(document, place, self.drawn, self.correct) for place, document in enumerate(self.documents)]

    def has_converged(self, error: float) -> bool:
        return all(impact.error is not None and impact.error <= error for impact in self.impacts())


def measure_impact(
    queries: Sequence[Query], targets: Targets, llm: Chat, journal: Journal, measuring: ImpactSettings, seed: int
) -> list[Query]:
    """Return queries with the impact of their documents, both golds and negatives.

    Queries are measured if they are not rejected and have an expected answer. Each is asked without documents first,
    then with subsets, until all documents have converged or the budget is spent.
    """
    able = [query for query in queries if query.verdict != "rejected" and query.golds and query.case.answers]
    trials = [_Trials(query, _documents(query), _subsets(query, seed)) for query in able]
    left = math.inf if measuring.calls is None else measuring.calls
    left -= _ask_without(trials, targets, left, llm, journal)
    while waiting := [trial for trial in trials if _needs_answers(trial, measuring)]:
        if left < 1:
            for trial in waiting:
                trial.why = "the call budget is spent"
            break
        left -= _ask_batch(waiting, targets, left, llm, journal, measuring)
    measured = {trial.query.case.id: _conclude(trial, measuring) for trial in trials}
    return [measured.get(query.case.id, query) for query in queries]


def _ask_without(trials: Sequence[_Trials], targets: Targets, budget: float, llm: Chat, journal: Journal) -> int:
    """Ask each query without documents; return the number of questions."""
    within = trials if budget == math.inf else trials[: int(budget)]
    questions = [fill_prompt(NECESSITY, trial.query.case.query, (), targets) for trial in within]
    for trial, reply in zip(within, ask_for_json(questions, "answerable", PURPOSE, llm, journal), strict=True):
        trial.baseline = _is_correct(trial, reply)
    for trial in trials[len(within) :]:
        trial.why = "the call budget is spent"
    return len(within)


def _ask_batch(
    waiting: Sequence[_Trials], targets: Targets, budget: float, llm: Chat, journal: Journal, measuring: ImpactSettings
) -> int:
    """Ask each waiting query with its next subsets, within the budget; return the number of questions."""
    drawn: list[tuple[_Trials, tuple[bool, ...]]] = []
    for trial in waiting:
        most = min(measuring.batch, measuring.subsets - trial.questions)
        subsets = [*islice(trial.subsets, most)] if len(drawn) + most <= budget else []
        if not subsets:
            trial.why = "the call budget is spent" if len(drawn) + most > budget else "all subsets have been tried"
        trial.questions += len(subsets)
        drawn += [(trial, subset) for subset in subsets]
    questions = [_question(trial, subset, targets) for trial, subset in drawn]
    replies = ask_for_json(questions, "answerable", PURPOSE, llm, journal)
    for (trial, subset), reply in zip(drawn, replies, strict=True):
        correct = _is_correct(trial, reply)
        if correct is not None:
            trial.drawn.append(subset)
            trial.correct.append(correct)
    return len(drawn)


def _needs_answers(trials: _Trials, measuring: ImpactSettings) -> bool:
    is_over = trials.baseline is not False or trials.why or trials.questions >= measuring.subsets
    return not is_over and not trials.has_converged(measuring.error)


def _is_correct(trials: _Trials, reply: JsonReply) -> bool | None:
    """Return whether a reply has an expected answer, None if there is no reply."""
    if isinstance(reply, NoReply):
        if not reply.is_lasting:
            trials.why, trials.unfinished = f"not answered: {reply.reason}", True
        return None
    return is_true(reply["answerable"]) and is_expected(trials.query.case, reply)


def _question(trials: _Trials, subset: Sequence[bool], targets: Targets) -> str:
    chosen = [document for document, is_in in zip(trials.documents, subset, strict=True) if is_in]
    return fill_prompt(NECESSITY, trials.query.case.query, chosen, targets)


def _documents(query: Query) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*query.golds, *query.hard_negatives, *query.random_negatives)))


def _subsets(query: Query, seed: int) -> Iterator[tuple[bool, ...]]:
    """Yield distinct non-empty subsets in random order, each document with a probability of one half.

    Subsets are distinct because a cache would answer a repeated question, which adds no information.
    """
    n = len(_documents(query))
    rng = np.random.default_rng([seed, int(fingerprint("impact", query.case.id), 16)])
    seen = {(False,) * n}
    while len(seen) < 2**n:
        subset = tuple((rng.random(n) < 0.5).tolist())
        if subset not in seen:
            seen.add(subset)
            yield subset


def _impact(document: int, place: int, drawn: Sequence[tuple[bool, ...]], correct: Sequence[bool]) -> DocumentImpact:
    """Return the difference of success rates, and its standard error from those of both rates.

    The error of a rate p of n answers is sqrt(p (1 - p) / n), but at least 1 / n, because n equal answers do not make
    certainty.
    """
    sides = [[ok for subset, ok in zip(drawn, correct, strict=True) if subset[place] is side] for side in (True, False)]
    if not all(sides):
        return DocumentImpact(document, None, None, len(sides[0]), len(sides[1]))
    rates = [sum(side) / len(side) for side in sides]
    errors = [
        max(math.sqrt(rate * (1 - rate) / len(side)), 1 / len(side)) for rate, side in zip(rates, sides, strict=True)
    ]
    return DocumentImpact(document, rates[0] - rates[1], math.hypot(*errors), len(sides[0]), len(sides[1]))


def _conclude(trials: _Trials, measuring: ImpactSettings) -> Query:
    converged = trials.baseline is False and trials.has_converged(measuring.error)
    why = "" if converged else trials.why
    if trials.baseline:
        why = "the model answers it without any document"
    elif trials.baseline is None and not why:
        why = "without documents, the model gave no readable reply"
    elif not converged and not why:
        why = f"{measuring.subsets:,} subsets did not suffice"
    impact = Impact(trials.baseline, tuple(trials.impacts()), len(trials.drawn), converged, why)
    return replace(trials.query, impact=impact, unfinished=trials.query.unfinished or trials.unfinished)
