"""The forward check: a language model answers each question from its gold, from documents by chance, and from none.

A question that its gold does not answer has the wrong gold; one that needs no gold says nothing of retrieval. All that
was paid for is kept in a journal, so that work which was cut short goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from retrievers.chat import Chat
from runner.generation.mining.base import Case, Held, Query
from runner.generation.mining.checks import SETTLED_BY_A_MODEL
from runner.generation.mining.prompts import filled
from runner.generation.mining.replies import (
    NOTHING_GIVEN,
    JsonReply,
    Silence,
    documents_text,
    is_expected,
    is_true,
    replies_to,
)
from runner.generation.mining.targets import Targets
from runner.llm.journal import Journal

PRIMARY, SUFFICIENCY, NECESSITY = "primary", "sufficiency", "necessity"

_NOT_CHECKED = "not checked: "


def with_primary(cases: Sequence[Case], targets: Targets, llm: Chat, journal: Journal) -> list[Case]:
    """Return cases in whose inferred names the model put the one first that the task is about.

    Where it names none of the candidates, the order stays as it was, and the case says so; so it does where the model
    could not be asked, until it can be.
    """
    choices = {case.id: [name for name in case.candidates if targets.resolve(name).targets] for case in cases}
    open_cases = [case for case in cases if len(choices[case.id]) > 1]
    questions = [
        filled(PRIMARY, question=case.query, candidates="\n".join(f"- {name}" for name in choices[case.id]))
        for case in open_cases
    ]
    said = dict(
        zip((c.id for c in open_cases), replies_to(questions, PRIMARY, "mine: primary", llm, journal), strict=True)
    )
    return [_chosen(case, said[case.id], choices[case.id]) if case.id in said else case for case in cases]


def _chosen(case: Case, heard: JsonReply, choices: Sequence[str]) -> Case:
    if isinstance(heard, Silence) and not heard.lasting:
        return replace(case, unheard=heard.why)
    if isinstance(heard, Silence) or str(heard["primary"]) not in choices:
        why = heard.why if isinstance(heard, Silence) else f"the model named {heard['primary']}"
        return replace(case, metadata={**case.metadata, "primary_by": f"specificity, for {why}"[:200]})
    picked = str(heard["primary"])
    names = (picked, *(name for name in case.names if name != picked))
    return replace(case, names=names, metadata={**case.metadata, "primary_by": "language model"})


def forward_checked(queries: Sequence[Query], targets: Targets, llm: Chat, journal: Journal) -> list[Query]:
    """Return queries with what the model's answers hold against them; those that are rejected already are not asked.

    Nor are those whose primary gold it has yet to pick: another gold is another question. What there is no answer to
    stays doubtful.
    """
    asked = [query for query in queries if query.verdict != "rejected" and not query.case.unheard]
    given = [documents_text(query.golds, targets) for query in asked]
    sufficient = [filled(SUFFICIENCY, question=q.case.query, documents=d) for q, d in zip(asked, given, strict=True)]
    by_chance = [documents_text(query.contexts, targets) for query in asked]
    needed = [
        filled(NECESSITY, question=query.case.query, documents=documents)
        for query, drawn in zip(asked, by_chance, strict=True)
        for documents in (drawn, NOTHING_GIVEN)
    ]
    heard = replies_to([*sufficient, *needed], "answerable", "mine: forward check", llm, journal)
    from_gold, without = heard[: len(asked)], heard[len(asked) :]
    after = {
        query.case.id: _judged(query, from_gold[i], without[2 * i], without[2 * i + 1]) for i, query in enumerate(asked)
    }
    return [after.get(query.case.id) or _postponed(query) for query in queries]


def unfinished(queries: Sequence[Query]) -> int:
    """Return of how many queries the model may still say, another time, what it has not."""
    return sum(query.unfinished for query in queries)


def _postponed(query: Query) -> Query:
    """Return a query that was not asked; where its primary gold is still to be picked, that is held against it."""
    if not query.case.unheard:
        return query
    held = Held(PRIMARY, "doubtful", f"{_NOT_CHECKED}{query.case.unheard}")
    return replace(query, held=(*query.held, held), unfinished=True)


def _judged(query: Query, from_gold: JsonReply, by_chance: JsonReply, from_nothing: JsonReply) -> Query:
    held = [_insufficient(query.case, from_gold)]
    held += [
        _unneeded(query.case, by_chance, "documents by chance"),
        _unneeded(query.case, from_nothing, "no document"),
    ]
    told = {SUFFICIENCY: from_gold, f"{NECESSITY}, by chance": by_chance, f"{NECESSITY}, from nothing": from_nothing}
    new = tuple(each for each in held if each)
    stays = query.held if new else tuple(h for h in query.held if h.check not in SETTLED_BY_A_MODEL)
    heard = {
        name: said.why if isinstance(said, Silence) else json.dumps(said, ensure_ascii=False)
        for name, said in told.items()
    }
    unfinished = any(isinstance(said, Silence) and not said.lasting for said in told.values())
    return replace(query, held=(*stays, *new), heard=heard, unfinished=unfinished)


def _insufficient(case: Case, heard: JsonReply) -> Held | None:
    if isinstance(heard, Silence):
        return Held(SUFFICIENCY, "doubtful", f"{_NOT_CHECKED}{heard.why}")
    if not is_true(heard["answerable"]):
        return Held(SUFFICIENCY, "rejected", "the model cannot answer it from its gold")
    if case.answers and not is_expected(case, heard):
        return Held(SUFFICIENCY, "doubtful", f"from its gold the model answers {str(heard.get('answer'))[:100]!r}")
    return None


def _unneeded(case: Case, heard: JsonReply, given: str) -> Held | None:
    if isinstance(heard, Silence):
        return Held(NECESSITY, "doubtful", f"{_NOT_CHECKED}{heard.why}")
    if is_true(heard["answerable"]) and (not case.answers or is_expected(case, heard)):
        return Held(NECESSITY, "rejected", f"the model answers it from {given}: {str(heard.get('answer'))[:100]!r}")
    return None
