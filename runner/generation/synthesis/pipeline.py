"""From chunks to queries that were accepted: check, select, generate, validate, and go on until there are enough.

Work is done and kept in batches whose content does not depend on what was kept, so that what is cut short goes on where
it was and comes to the same. It knows nothing of files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import orjson
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.code import code_of
from retrievers.store import Arrays, Key, MemoryStore, NoStore, Store, fingerprint
from runner.config.objects import ConfigError
from runner.generation.synthesis.base import Bundle, Chunks, Draft, Generator, Wanted, check_types
from runner.generation.synthesis.checks import Checks, Rejection, checked
from runner.generation.synthesis.limits import squeezed
from runner.generation.synthesis.loading import ChunkSource, embedded, fingerprint_of_chunks, read, rows
from runner.generation.synthesis.sampling import Sampling
from runner.generation.synthesis.selection import Selection, bundles_of, check_documents
from runner.generation.synthesis.validation import Generated, Validation, Verdict, validated
from runner.llm.journal import Journal

BATCH = 256
"""How many queries are made and kept together: what a run that is killed makes again at most."""

EXACT_SNIPPET = "exact_snippet"

FEWEST = 16
"""The fewest queries that are worth a batch."""


@settings(frozen=True, config={"extra": "forbid"})
class Caching:
    """What is taken from the store if it was made before: vectors, bundles, queries, verdicts.

    Replies of a language model have a switch of their own, `llm.cache`.
    """

    loading: bool = True
    selection: bool = True
    generation: bool = True
    validation: bool = True


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Synthesis:
    """All that decides which queries are made: `count` of them, or all that a turn over the input gives (None)."""

    source: ChunkSource
    checks: Checks
    selection: Selection
    sampling: Sampling
    generator: Generator
    validation: Validation
    count: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    cache: Caching = Field(default=Caching(), repr=False)  # decides no query


@dataclass(frozen=True)
class Made:
    """A query that was wanted, what came of it, and whether it is one of the dataset."""

    wanted: Wanted
    draft: Draft
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a synthesis came to: the chunks that passed the checks, those that did not, and all queries, in order.

    `exhausted` is true where the input gave all it can before there were enough; `types` are those asked for.
    """

    chunks: Chunks
    source: Chunks
    rejected: Sequence[Rejection]
    bundles: Sequence[Bundle]
    types: Sequence[str]
    made: Sequence[Made]
    exhausted: bool

    @property
    def accepted(self) -> list[Made]:
        """Return the queries of the dataset, in order."""
        return [made for made in self.made if made.verdict.accepted]


def synthesize(
    synthesis: Synthesis, store: Store, journal: Journal, note: Callable[[str], None] = lambda text: None
) -> Outcome:
    """Make queries; `note` is told what is being done, and the journal keeps what is paid for.

    Raises `ConfigError` or `DatasetError` for bad input, `ChatError` where a language model left work undone.
    """
    several = synthesis.selection.mode == "cluster"
    generator = synthesis.generator
    check_types(generator, generator.types or ())  # before any work
    types = synthesis.sampling.chosen(generator.types, generator.possible_types, several)
    caches = synthesis.cache
    note("loading chunks")
    table = read(synthesis.source)
    check_documents(table.doc_ids)
    source = embedded(synthesis.source, table, store if caches.loading else MemoryStore())
    note(f"checking {len(source):,} chunks")
    kept, rejected = checked(synthesis.checks, source)
    chunks = rows(source, kept)
    _check_left(chunks, rejected)
    digest = fingerprint_of_chunks(chunks)
    used: list[Bundle] = []

    def bundles() -> Iterator[Bundle]:
        selected = store if caches.selection else NoStore()
        for bundle in bundles_of(synthesis.selection, chunks, digest, synthesis.seed, selected):
            used.append(bundle)
            yield bundle

    queue = synthesis.sampling.wanted(types, chunks, bundles(), synthesis.seed, again=synthesis.count is not None)
    work = _Work(synthesis, chunks, digest, "\0".join(map(squeezed, source.texts)), store, journal, note)
    made: list[Made] = []
    accepted = 0
    while batch := list(islice(queue, _batch_size(synthesis.count, accepted, len(made)))):
        made += work.done(batch)
        accepted = sum(each.verdict.accepted for each in made)
        work.so_far = f"{accepted:,} of {len(made):,} accepted"
    exhausted = synthesis.count is not None and accepted < synthesis.count
    return Outcome(chunks, source, rejected, used, types, _cut(made, synthesis.count), exhausted)


def _check_left(chunks: Chunks, rejected: Sequence[Rejection]) -> None:
    """Raise `ConfigError` where the checks left no chunks of two documents, as it takes."""
    if len(set(chunks.doc_ids)) > 1:
        return
    reasons = Counter(rejection.reason for rejection in rejected)
    out = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    raise ConfigError(
        f"checks: {len(chunks):,} of {len(chunks) + len(rejected):,} chunks pass ({out}), and it takes chunks of two "
        "documents: add some, or see checks.min_tokens and checks.duplicate_similarity"
    )


def _batch_size(count: int | None, accepted: int, made: int) -> int:
    """Return how many more queries to make at once, by the share that was accepted so far; 0 for none."""
    if count is None:
        return BATCH
    if accepted >= count:
        return 0
    expected = math.ceil((count - accepted) * (made + 1) / (accepted + 1))
    return min(max(expected, FEWEST), BATCH)


def _cut(made: Sequence[Made], count: int | None) -> list[Made]:
    """Return all queries, of which no more are accepted than were asked for."""
    found: list[Made] = []
    accepted = 0
    for each in made:
        accepted += each.verdict.accepted
        if count is not None and each.verdict.accepted and accepted > count:
            each = replace(each, verdict=replace(each.verdict, accepted=False, reason="beyond count"))
        found.append(each)
    return found


@dataclass(eq=False)
class _Work:
    """Makes batches of queries, remembers which there were, and tells how far it is."""

    synthesis: Synthesis
    chunks: Chunks
    digest: str
    everything: str  # the texts of all chunks, those that did not pass the checks too
    store: Store
    journal: Journal
    note: Callable[[str], None]
    so_far: str = "none yet"
    seen: set[str] = field(default_factory=set)

    def done(self, batch: Sequence[Wanted]) -> list[Made]:
        """Return the queries of a batch, with the verdict on each."""
        drafts = self._drafts(batch)
        verdicts = [self._unasked(wanted, draft) for wanted, draft in zip(batch, drafts, strict=True)]
        open_ = [i for i, verdict in enumerate(verdicts) if verdict is None]
        judged = iter(self._verdicts([Generated(batch[i], drafts[i]) for i in open_]))
        return [
            Made(wanted, draft, next(judged) if verdict is None else verdict)
            for wanted, draft, verdict in zip(batch, drafts, verdicts, strict=True)
        ]

    def _unasked(self, wanted: Wanted, draft: Draft) -> Verdict | None:
        """Return the verdict on what is none, was there before, or is a snippet of others; None for what is left."""
        if not draft.query:
            return Verdict(False, draft.reason)
        words = " ".join(draft.query.casefold().split())
        if words in self.seen:
            return Verdict(False, "repeated")
        self.seen.add(words)
        if wanted.query_type == EXACT_SNIPPET:
            snippet = squeezed(draft.query)
            in_goldens = sum(squeezed(self.chunks.texts[golden]).count(snippet) for golden in wanted.bundle.goldens)
            if self.everything.count(snippet) > in_goldens:  # whoever finds it there is right too
                return Verdict(False, "also elsewhere")
        return None

    def _drafts(self, batch: Sequence[Wanted]) -> list[Draft]:
        generator, on = self.synthesis.generator, self.synthesis.cache.generation
        asked = [repr(wanted) for wanted in batch]
        drafts = generator.drafts(self.chunks, batch, self.journal)
        return [Draft(**row) for row in self._kept("drafts", generator, on, asked, drafts)]

    def _verdicts(self, items: Sequence[Generated]) -> list[Verdict]:
        validation, on = self.synthesis.validation, self.synthesis.cache.validation
        asked = [f"{item.wanted!r}\0{item.draft.query}" for item in items]
        found = validated(validation, self.chunks, items, self.journal)
        return [Verdict(**row) for row in self._kept("verdicts", validation, on, asked, found)]

    def _kept(
        self, kind: str, settings: object, on: bool, asked: Sequence[str], work: Iterator[tuple[int, object]]
    ) -> list[dict[str, Any]]:
        """Return what work comes to, in order, as JSON has it; work is begun only where the store does not have that.

        Settings that read files have an `identity`, of which their content is part.
        """
        identity, made_by = getattr(settings, "identity", settings), {__name__, *code_of(settings)}
        key = Key.of(kind, made_by, chunks=self.digest, settings=identity, asked=fingerprint(*asked))

        def build() -> Arrays:
            came: dict[int, object] = {}
            for position, each in work:
                came[position] = each
                self.note(f"{self.so_far}; {len(came):,} of the next {len(asked):,} {kind}")
            rows = [came[position] for position in range(len(asked))]
            return {"json": np.frombuffer(orjson.dumps(rows), dtype=np.uint8)}

        store = self.store if on else NoStore()
        found: list[dict[str, Any]] = orjson.loads(store.arrays(key, build)["json"].tobytes())
        return found
