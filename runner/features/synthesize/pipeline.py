"""Produce accepted queries from chunks: check, select, generate, validate, and repeat until there are enough.

Work is done and stored in batches whose content does not depend on what is stored, so that interrupted work resumes
with the same result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import orjson
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.store import Arrays, Key, MemoryStore, NoStore, Store, fingerprint
from retrievers.work import DRAFTS, VERDICTS, WorkKind
from runner.config.objects import ConfigError
from runner.features.synthesize.answers import GoldPassage, locate_answer
from runner.features.synthesize.base import Bundle, Chunks, Draft, Generator, Request, check_types
from runner.features.synthesize.checks import Checks, Rejection, filter_chunks
from runner.features.synthesize.language import detect_languages, fold_question
from runner.features.synthesize.limits import collapse_spaces
from runner.features.synthesize.loading import ChunkSource, embed_chunks, hash_chunks, read, rows
from runner.features.synthesize.sampling import Sampling
from runner.features.synthesize.selection import RESULTS_VERSION as BUNDLES_VERSION
from runner.features.synthesize.selection import BundleSelection, check_documents, iter_bundles
from runner.features.synthesize.validation import QueryVerdict, Validation, validate_queries
from runner.llm.journal import Journal

RESULTS_VERSION = f"synthesis 1, {BUNDLES_VERSION}"

BATCH = 256
"""The number of queries generated and stored together; a killed run loses at most this many."""

EXACT_SNIPPET = "exact_snippet"

FEWEST = 16
"""The minimum size of a batch."""


@settings(frozen=True, config={"extra": "forbid"})
class Caching:
    """Which results are read from the store: vectors, bundles, queries, verdicts.

    Replies of a language model have a separate setting, `llm.cache`.
    """

    loading: bool = True
    selection: bool = True
    generation: bool = True
    validation: bool = True


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Synthesis:
    """All settings of the queries: `count` is their number, or None for those of one pass over the input."""

    source: ChunkSource
    checks: Checks
    selection: BundleSelection
    sampling: Sampling
    generator: Generator
    validation: Validation
    count: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    cache: Caching = Field(default=Caching(), repr=False)  # does not affect queries


@dataclass(frozen=True)
class Candidate:
    """A request, its draft, and the verdict that decides whether the query is in the dataset."""

    request: Request
    draft: Draft
    verdict: QueryVerdict


@dataclass(frozen=True, eq=False)
class SynthesisResult:
    """The result of a synthesis: the accepted and rejected chunks, and all queries, in order.

    `exhausted` is true if the input did not give enough queries; `types` are the requested ones.
    """

    chunks: Chunks
    source: Chunks
    rejected: Sequence[Rejection]
    bundles: Sequence[Bundle]
    types: Sequence[str]
    candidates: Sequence[Candidate]
    exhausted: bool

    @property
    def accepted(self) -> list[Candidate]:
        """Return the queries of the dataset, in order."""
        return [candidate for candidate in self.candidates if candidate.verdict.accepted]

    @cached_property
    def answers(self) -> list[list[GoldPassage]]:
        """Return the place of the answer in each gold chunk of each accepted query."""
        texts, languages = self.chunks.texts, detect_languages(self.chunks)
        titles = self.chunks.titles or [""] * len(texts)
        return [
            [
                locate_answer(candidate.draft.query, texts[golden], titles[golden], languages[golden])
                for golden in candidate.request.bundle.goldens
            ]
            for candidate in self.accepted
        ]


def synthesize(
    synthesis: Synthesis, store: Store, journal: Journal, note: Callable[[str], None] = lambda text: None
) -> SynthesisResult:
    """Generate queries; `note` is called with the progress, and the journal keeps paid replies.

    Raises `ConfigError` or `DatasetError` for bad input, `ChatError` if a language model failed.
    """
    several = synthesis.selection.mode == "cluster"
    generator = synthesis.generator
    check_types(generator, generator.types or ())  # before any work
    types = synthesis.sampling.select_types(generator.types, generator.possible_types, several)
    caches = synthesis.cache
    note("loading chunks")
    table = read(synthesis.source)
    check_documents(table.doc_ids)
    source = embed_chunks(synthesis.source, table, store if caches.loading else MemoryStore())
    note(f"checking {len(source):,} chunks")
    kept, rejected = filter_chunks(synthesis.checks, source)
    chunks = rows(source, kept)
    _check_left(chunks, rejected)
    digest = hash_chunks(chunks)
    used: list[Bundle] = []

    def bundles() -> Iterator[Bundle]:
        selected = store if caches.selection else NoStore()
        for bundle in iter_bundles(synthesis.selection, chunks, digest, synthesis.seed, selected):
            used.append(bundle)
            yield bundle

    queue = synthesis.sampling.iter_requests(
        types, chunks, bundles(), synthesis.seed, again=synthesis.count is not None
    )
    work = _Work(synthesis, chunks, digest, "\0".join(map(collapse_spaces, source.texts)), store, journal, note)
    candidates: list[Candidate] = []
    accepted = 0
    while batch := list(islice(queue, _batch_size(synthesis.count, accepted, len(candidates)))):
        candidates += work.process(batch)
        accepted = sum(query.verdict.accepted for query in candidates)
        work.so_far = f"{accepted:,} of {len(candidates):,} accepted"
    exhausted = synthesis.count is not None and accepted < synthesis.count
    return SynthesisResult(
        chunks, source, rejected, used, types, _limit_accepted(candidates, synthesis.count), exhausted
    )


def _check_left(chunks: Chunks, rejected: Sequence[Rejection]) -> None:
    """Raise `ConfigError` unless chunks of at least two documents passed the checks."""
    if len(set(chunks.doc_ids)) > 1:
        return
    reasons = Counter(rejection.reason for rejection in rejected)
    out = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    raise ConfigError(
        f"checks: {len(chunks):,} of {len(chunks) + len(rejected):,} chunks pass ({out}), but chunks of at least "
        "two documents are needed; add documents, or change checks.min_tokens or checks.duplicate_similarity"
    )


def _batch_size(count: int | None, accepted: int, made: int) -> int:
    """Return the size of the next batch, by the share accepted so far; 0 for none."""
    if count is None:
        return BATCH
    if accepted >= count:
        return 0
    # The size depends only on the verdicts of earlier batches, not on the store: a resumed run forms the same batches,
    # so their keys match, and no query is paid for twice.
    expected = math.ceil((count - accepted) * (made + 1) / (accepted + 1))
    return min(max(expected, FEWEST), BATCH)


def _limit_accepted(candidates: Sequence[Candidate], count: int | None) -> list[Candidate]:
    """Return all queries, with those beyond `count` accepted ones rejected."""
    limited: list[Candidate] = []
    accepted = 0
    for query in candidates:
        accepted += query.verdict.accepted
        if count is not None and query.verdict.accepted and accepted > count:
            query = replace(query, verdict=replace(query.verdict, accepted=False, reason="beyond count"))
        limited.append(query)
    return limited


@dataclass(eq=False)
class _Work:
    """Processes batches of requests, detects repeated queries, and reports progress."""

    synthesis: Synthesis
    chunks: Chunks
    digest: str
    everything: str  # the texts of all chunks, including rejected ones
    store: Store
    journal: Journal
    note: Callable[[str], None]
    so_far: str = "none yet"
    seen: set[str] = field(default_factory=set)

    def process(self, batch: Sequence[Request]) -> list[Candidate]:
        """Return the queries of a batch with their verdicts."""
        drafts = self._drafts(batch)
        verdicts = [self._reject_early(request, draft) for request, draft in zip(batch, drafts, strict=True)]
        open_ = [i for i, verdict in enumerate(verdicts) if verdict is None]
        judged = iter(self._verdicts([(batch[i], drafts[i].query) for i in open_]))
        return [
            Candidate(request, draft, next(judged) if verdict is None else verdict)
            for request, draft, verdict in zip(batch, drafts, verdicts, strict=True)
        ]

    def _reject_early(self, request: Request, draft: Draft) -> QueryVerdict | None:
        """Return the verdict on a missing or repeated query, or a snippet of other chunks; None for other queries."""
        if not draft.query:
            return QueryVerdict(False, draft.reason)
        question = fold_question(draft.intended or draft.query)
        if question in self.seen:
            return QueryVerdict(False, "repeated")
        self.seen.add(question)
        if request.query_type == EXACT_SNIPPET:
            snippet = collapse_spaces(draft.query)
            in_goldens = sum(
                collapse_spaces(self.chunks.texts[golden]).count(snippet) for golden in request.bundle.goldens
            )
            if self.everything.count(snippet) > in_goldens:  # those chunks would be correct answers too
                return QueryVerdict(False, "also elsewhere")
        return None

    def _drafts(self, batch: Sequence[Request]) -> list[Draft]:
        generator, on = self.synthesis.generator, self.synthesis.cache.generation
        inputs = [repr(request) for request in batch]
        drafts = generator.drafts(self.chunks, batch, self.journal)
        return [Draft(**row) for row in self._load_or_run(DRAFTS, generator, on, inputs, drafts)]

    def _verdicts(self, items: Sequence[tuple[Request, str]]) -> list[QueryVerdict]:
        validation, on = self.synthesis.validation, self.synthesis.cache.validation
        inputs = [f"{request!r}\0{query}" for request, query in items]
        verdicts = validate_queries(validation, self.chunks, items, self.journal)
        return [QueryVerdict(**row) for row in self._load_or_run(VERDICTS, validation, on, inputs, verdicts)]

    def _load_or_run(
        self, kind: WorkKind, settings: object, on: bool, inputs: Sequence[str], work: Iterator[tuple[int, object]]
    ) -> list[dict[str, Any]]:
        """Return the results of work, in order, as JSON objects; the work only runs if the store lacks its results.

        Settings that read files have an `identity`, which includes the content of these.
        """
        identity = getattr(settings, "identity", settings)
        key = Key.of(kind, (__name__, settings), chunks=self.digest, settings=identity, asked=fingerprint(*inputs))

        def build() -> Arrays:
            results: dict[int, object] = {}
            for position, result in work:
                results[position] = result
                self.note(f"{self.so_far}; {len(results):,} of the next {len(inputs):,} {kind.name}")
            rows = [results[position] for position in range(len(inputs))]
            return {"json": np.frombuffer(orjson.dumps(rows), dtype=np.uint8)}

        store = self.store if on else NoStore()
        rows: list[dict[str, Any]] = orjson.loads(store.arrays(key, build)["json"].tobytes())
        return rows
