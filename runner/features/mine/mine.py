"""Mine cases: each becomes a query with gold, negatives and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrievers.search import search_cached
from retrievers.store import Store
from runner.features.mine.base import Case, Mining, MiningInput, Objection, Query
from runner.features.mine.checks import GOLD, run_checks
from runner.features.mine.forward import run_forward_check, select_primary
from runner.features.mine.impact import measure_impact
from runner.features.mine.negatives import add_negatives
from runner.features.mine.targets import Targets
from runner.llm.journal import Journal
from runner.llm.none import NoLLM


def mine_cases(mining: Mining, material: MiningInput, store: Store, journal: Journal) -> list[Query]:
    """Return a query for each case, in order; queries without gold are rejected with the reason."""
    targets, cases, llm = material.targets, material.cases, mining.llm
    if not isinstance(llm, NoLLM):
        cases = select_primary(cases, targets, llm, journal)
    queries = [_resolve(case, targets, mining.bare_golds) for case in cases]
    texts = [query.case.query for query in queries]
    rankings = search_cached(mining.retriever, targets.corpus, texts, min(mining.depth, len(targets)), store)
    queries = run_checks(add_negatives(queries, rankings, targets, mining), targets, mining)
    if isinstance(llm, NoLLM):
        return queries
    queries = run_forward_check(queries, targets, llm, journal)
    if not mining.impact.subsets:
        return queries
    return measure_impact(queries, targets, llm, journal, mining.impact, mining.seed)


def select_kept(mining: Mining, queries: Sequence[Query]) -> list[Query]:
    """Return the queries of the output."""
    allowed = ("verified",) if mining.keep == "verified" else ("verified", "doubtful")
    return [query for query in queries if query.verdict in allowed]


def _resolve(case: Case, targets: Targets, bare_golds: str) -> Query:
    """Return a case with its names resolved; a target that several of the names refer to is gold once.

    A target whose document is only its name is never gold: no search can tell that it answers.
    """
    resolutions = tuple(targets.resolve(name) for name in case.names)
    resolved = dict.fromkeys(r.targets[0] for r in resolutions if r.way in ("exact", "alias", "name"))
    readable = [gold for gold in resolved if not targets.all[gold].is_name_only]
    golds = tuple(gold for gold in readable if bare_golds == "keep" or targets.all[gold].about)
    query = Query(case, resolutions, golds)
    if case.fault:
        why = case.fault
    elif not case.query:
        why = "the case has no question"
    elif not case.names:
        why = case.nameless or "its answers contain no names"
    elif not resolved:
        why = "no name in its answers identifies exactly one target: " + ", ".join(
            f"{r.name} ({r.way})" for r in resolutions
        )
    elif not readable:
        why = f"the documents of its answers have no text: {', '.join(targets.all[gold].id for gold in resolved)}"
    elif not golds:
        why = "no gold document has a docstring"
    else:
        return query
    return replace(query, golds=(), objections=(Objection(GOLD, "rejected", why),))
