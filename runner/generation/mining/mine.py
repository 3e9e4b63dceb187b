"""Mining: cases become queries with gold, negatives and a verdict. Nothing that was a case is lost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrievers.search import search_cached
from retrievers.store import Store
from runner.generation.mining.base import Case, Held, Material, Mining, Query
from runner.generation.mining.checks import GOLD, checked
from runner.generation.mining.forward import forward_checked, with_primary
from runner.generation.mining.impact import with_impact
from runner.generation.mining.negatives import with_negatives
from runner.generation.mining.targets import Targets
from runner.llm.journal import Journal
from runner.llm.none import NoLLM


def mined(mining: Mining, material: Material, store: Store, journal: Journal) -> list[Query]:
    """Return a query for each case, in their order; those without gold are rejected, with the reason."""
    targets, cases, llm = material.targets, material.cases, mining.llm
    if not isinstance(llm, NoLLM):
        cases = with_primary(cases, targets, llm, journal)
    queries = [_resolved(case, targets, mining.bare_golds) for case in cases]
    texts = [query.case.query for query in queries]
    rankings = search_cached(mining.retriever, targets.corpus, texts, min(mining.depth, len(targets)), store)
    queries = checked(with_negatives(queries, rankings, targets, mining), targets, mining)
    if isinstance(llm, NoLLM):
        return queries
    queries = forward_checked(queries, targets, llm, journal)
    if not mining.impact.subsets:
        return queries
    return with_impact(queries, targets, llm, journal, mining.impact, mining.seed)


def kept(mining: Mining, queries: Sequence[Query]) -> list[Query]:
    """Return the queries that the output has."""
    allowed = ("verified",) if mining.keep == "verified" else ("verified", "doubtful")
    return [query for query in queries if query.verdict in allowed]


def _resolved(case: Case, targets: Targets, bare_golds: str) -> Query:
    """Return a case with its names resolved; each target is gold once, under whatever names it has."""
    resolutions = tuple(targets.resolve(name) for name in case.names)
    found = dict.fromkeys(r.targets[0] for r in resolutions if r.way in ("exact", "alias", "name"))
    golds = tuple(gold for gold in found if bare_golds == "keep" or targets.all[gold].about)
    query = Query(case, resolutions, golds)
    if case.fault:
        why = case.fault
    elif not case.query:
        why = "there is no question"
    elif not case.names:
        why = "it names no answer"
    elif not found:
        why = "no name of its answers is that of one target: " + ", ".join(f"{r.name} ({r.way})" for r in resolutions)
    elif not golds:
        why = "no gold has a docstring"
    else:
        return query
    return replace(query, golds=(), held=(Held(GOLD, "rejected", why),))
