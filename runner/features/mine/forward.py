"""Run the forward check: a language model answers each question from its gold, from random documents, and without any.

A question that its gold does not answer has the wrong gold; one that needs no gold says nothing about retrieval.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from retrievers.llm.chat import Chat
from runner.features.mine.base import Case, Objection, Query
from runner.features.mine.checks import SETTLED_BY_A_MODEL
from runner.features.mine.replies import (
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
from runner.features.mine.targets import Targets
from runner.llm.journal import Journal

_NOT_CHECKED = "not checked: "


def select_primary(cases: Sequence[Case], targets: Targets, llm: Chat, journal: Journal) -> list[Case]:
    """Return cases with the primary one of their inferred names first, as chosen by the model.

    If the model chooses none of the candidates, or cannot be asked, the order is kept and the case records the reason.
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
        return replace(case, primary_pending=reply.reason)
    if isinstance(reply, NoReply) or str(reply["primary"]) not in choices:
        reason = reply.reason if isinstance(reply, NoReply) else f"the model named {reply['primary']}"
        return replace(case, metadata={**case.metadata, "primary_by": f"specificity, for {reason}"[:200]})
    picked = str(reply["primary"])
    names = (picked, *(name for name in case.names if name != picked))
    return replace(case, names=names, metadata={**case.metadata, "primary_by": "language model"})


def run_forward_check(queries: Sequence[Query], targets: Targets, llm: Chat, journal: Journal) -> list[Query]:
    """Return queries with the objections that follow from the model's answers.

    The model is not asked about rejected queries, or about those whose primary gold it has yet to choose, because their
    gold may change. Queries without an answer stay doubtful.
    """
    open_queries = [query for query in queries if query.verdict != "rejected" and not query.case.primary_pending]
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
    """Return a query that was not checked, with an objection if the model has yet to choose its primary gold."""
    if not query.case.primary_pending:
        return query
    objection = Objection(PRIMARY, "doubtful", f"{_NOT_CHECKED}{query.case.primary_pending}")
    return replace(query, objections=(*query.objections, objection), unfinished=True)


def _judge(query: Query, from_gold: JsonReply, by_chance: JsonReply, from_nothing: JsonReply) -> Query:
    faults = (
        _check_sufficiency(query.case, from_gold),
        _check_necessity(query.case, by_chance, "random documents"),
        _check_necessity(query.case, from_nothing, "no document"),
    )
    replies = {
        SUFFICIENCY: from_gold,
        f"{NECESSITY}, random documents": by_chance,
        f"{NECESSITY}, no documents": from_nothing,
    }
    new = tuple(filter(None, faults))
    old = tuple(old for old in query.objections if new or old.check not in SETTLED_BY_A_MODEL)
    texts = {
        name: reply.reason if isinstance(reply, NoReply) else json.dumps(reply, ensure_ascii=False)
        for name, reply in replies.items()
    }
    unfinished = any(isinstance(reply, NoReply) and not reply.is_lasting for reply in replies.values())
    return replace(query, objections=(*old, *new), model_replies=texts, unfinished=unfinished)


def _check_sufficiency(case: Case, reply: JsonReply) -> Objection | None:
    if isinstance(reply, NoReply):
        return Objection(SUFFICIENCY, "doubtful", f"{_NOT_CHECKED}{reply.reason}")
    if not is_true(reply["answerable"]):
        return Objection(SUFFICIENCY, "rejected", "the model cannot answer the query from its gold")
    if case.answers and not is_expected(case, reply):
        return Objection(
            SUFFICIENCY, "doubtful", f"the model's answer from the gold is {str(reply.get('answer'))[:100]!r}"
        )
    return None


def _check_necessity(case: Case, reply: JsonReply, source: str) -> Objection | None:
    if isinstance(reply, NoReply):
        return Objection(NECESSITY, "doubtful", f"{_NOT_CHECKED}{reply.reason}")
    if is_true(reply["answerable"]) and (not case.answers or is_expected(case, reply)):
        return Objection(
            NECESSITY, "rejected", f"the model can answer the query from {source}: {str(reply.get('answer'))[:100]!r}"
        )
    return None
