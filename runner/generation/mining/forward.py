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
from runner.generation.mining.replies import (
    NECESSITY,
    PRIMARY,
    SUFFICIENCY,
    JsonReply,
    NoReply,
    ask_for_json,
    fill_prompt,
    is_expected,
    is_true,
    load_bundled,
)
from runner.generation.mining.targets import Targets
from runner.llm.journal import Journal

_NOT_CHECKED = "not checked: "


def with_primary(cases: Sequence[Case], targets: Targets, llm: Chat, journal: Journal) -> list[Case]:
    """Return cases in whose inferred names the model put the one first that the task is about.

    Where it names none of the candidates, the order stays as it was, and the case says so; so it does where the model
    could not be asked, until it can be.
    """
    choices = {case.id: [name for name in case.candidates if targets.resolve(name).targets] for case in cases}
    open_cases = [case for case in cases if len(choices[case.id]) > 1]
    prompt = load_bundled(PRIMARY, ("question", "candidates"))
    questions = [
        prompt.fill(question=case.query, candidates="\n".join(f"- {name}" for name in choices[case.id]))
        for case in open_cases
    ]
    answers = ask_for_json(questions, PRIMARY, "mine: primary", llm, journal)
    replies = {case.id: reply for case, reply in zip(open_cases, answers, strict=True)}
    return [_put_first(case, replies[case.id], choices[case.id]) if case.id in replies else case for case in cases]


def _put_first(case: Case, reply: JsonReply, choices: Sequence[str]) -> Case:
    if isinstance(reply, NoReply) and not reply.is_lasting:
        return replace(case, unheard=reply.reason)
    if isinstance(reply, NoReply) or str(reply["primary"]) not in choices:
        reason = reply.reason if isinstance(reply, NoReply) else f"the model named {reply['primary']}"
        return replace(case, metadata={**case.metadata, "primary_by": f"specificity, for {reason}"[:200]})
    picked = str(reply["primary"])
    names = (picked, *(name for name in case.names if name != picked))
    return replace(case, names=names, metadata={**case.metadata, "primary_by": "language model"})


def forward_checked(queries: Sequence[Query], targets: Targets, llm: Chat, journal: Journal) -> list[Query]:
    """Return queries with what the model's answers hold against them; those that are rejected already are not asked.

    Nor are those whose primary gold it has yet to pick: another gold is another question. What there is no answer to
    stays doubtful.
    """
    open_queries = [query for query in queries if query.verdict != "rejected" and not query.case.unheard]
    sufficiency = [fill_prompt(SUFFICIENCY, query.case.query, query.golds, targets) for query in open_queries]
    necessity = [
        fill_prompt(NECESSITY, query.case.query, documents, targets)
        for query in open_queries
        for documents in (query.contexts, ())
    ]
    replies = ask_for_json([*sufficiency, *necessity], "answerable", "mine: forward check", llm, journal)
    from_gold, without = replies[: len(open_queries)], replies[len(open_queries) :]
    after = {
        query.case.id: _judge(query, from_gold[i], without[2 * i], without[2 * i + 1])
        for i, query in enumerate(open_queries)
    }
    return [after.get(query.case.id) or _postpone(query) for query in queries]


def count_unfinished(queries: Sequence[Query]) -> int:
    """Return the number of queries with questions that the model may still answer on the next run."""
    return sum(query.unfinished for query in queries)


def _postpone(query: Query) -> Query:
    """Return a query that was not asked; where its primary gold is still to be picked, that is held against it."""
    if not query.case.unheard:
        return query
    held = Held(PRIMARY, "doubtful", f"{_NOT_CHECKED}{query.case.unheard}")
    return replace(query, held=(*query.held, held), unfinished=True)


def _judge(query: Query, from_gold: JsonReply, by_chance: JsonReply, from_nothing: JsonReply) -> Query:
    faults = (
        _check_sufficiency(query.case, from_gold),
        _check_necessity(query.case, by_chance, "documents by chance"),
        _check_necessity(query.case, from_nothing, "no document"),
    )
    replies = {SUFFICIENCY: from_gold, f"{NECESSITY}, by chance": by_chance, f"{NECESSITY}, from nothing": from_nothing}
    new = tuple(filter(None, faults))
    old = query.held if new else tuple(held for held in query.held if held.check not in SETTLED_BY_A_MODEL)
    texts = {
        name: reply.reason if isinstance(reply, NoReply) else json.dumps(reply, ensure_ascii=False)
        for name, reply in replies.items()
    }
    unfinished = any(isinstance(reply, NoReply) and not reply.is_lasting for reply in replies.values())
    return replace(query, held=(*old, *new), heard=texts, unfinished=unfinished)


def _check_sufficiency(case: Case, reply: JsonReply) -> Held | None:
    if isinstance(reply, NoReply):
        return Held(SUFFICIENCY, "doubtful", f"{_NOT_CHECKED}{reply.reason}")
    if not is_true(reply["answerable"]):
        return Held(SUFFICIENCY, "rejected", "the model cannot answer it from its gold")
    if case.answers and not is_expected(case, reply):
        return Held(SUFFICIENCY, "doubtful", f"from its gold the model answers {str(reply.get('answer'))[:100]!r}")
    return None


def _check_necessity(case: Case, reply: JsonReply, source: str) -> Held | None:
    if isinstance(reply, NoReply):
        return Held(NECESSITY, "doubtful", f"{_NOT_CHECKED}{reply.reason}")
    if is_true(reply["answerable"]) and (not case.answers or is_expected(case, reply)):
        return Held(NECESSITY, "rejected", f"the model answers it from {source}: {str(reply.get('answer'))[:100]!r}")
    return None
