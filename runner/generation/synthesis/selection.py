"""Which chunks a query is to be answered by, and which only look like them: bundles, from the neighbours of chunks.

It knows nothing of queries, nor of where vectors come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.store import Arrays, Key, Store
from runner.config.objects import ConfigError
from runner.generation.synthesis.base import Bundle, Chunks

BLOCK = 256
"""How many chunks' neighbours are looked for, and kept, together."""

POOL = 64
"""How many neighbours are looked at first; where they are not enough, four times as many, and so on."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Selection:
    """How bundles are made.

    `sample_rate` is the share of `chunks` or of `documents` (with all their chunks) that a bundle may begin with;
    `bundles` is how many there are at most (None: as many as are asked for). With `spread_documents` no document has a
    second one before all have one. A bundle has `distractors`: the chunks of other documents that are nearest to the
    first golden, as many documents as there can be.

    Chunks of other documents with a cosine of `golden_similarity` or more say the same. In mode `cluster` they are
    goldens too, one a document and no more than `max_goldens` in all; with fewer than `min_goldens` the first golden
    stands alone, as it does in mode `single`. None of them is ever a distractor.
    """

    by: Literal["chunks", "documents"] = "chunks"
    sample_rate: float = Field(default=1.0, gt=0, le=1)
    bundles: int | None = Field(default=None, ge=1)
    spread_documents: bool = True
    distractors: int = Field(default=3, ge=1)
    mode: Literal["single", "cluster"] = "single"
    golden_similarity: float = Field(default=0.92, gt=0, le=1)
    max_goldens: int = Field(default=5, ge=1)
    min_goldens: int = Field(default=2, ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_goldens > self.max_goldens:
            raise ValueError(f"min_goldens={self.min_goldens} is above max_goldens={self.max_goldens}")
        return self


def check_documents(doc_ids: Sequence[str]) -> None:
    """Raise `ConfigError` where all chunks are of one document: distractors are of others."""
    if len(set(doc_ids)) < 2:
        raise ConfigError(
            f"source: all {len(doc_ids):,} chunks are of one document, {doc_ids[0]!r}: distractors come from other "
            "documents; add some"
        )


def bundles_of(selection: Selection, chunks: Chunks, fingerprint: str, seed: int, store: Store) -> Iterator[Bundle]:
    """Yield bundles in an order that `seed` decides; `fingerprint` is the chunks'.

    No chunk that was a golden before begins another. Raises `ConfigError` where no chunk has a distractor.
    """
    seeds = _seeds(selection, chunks, seed)
    numbers = {document: number for number, document in enumerate(dict.fromkeys(chunks.doc_ids))}
    document_of = np.array([numbers[document] for document in chunks.doc_ids], dtype=np.int64)
    yielded, used = 0, set[int]()
    for start in range(0, len(seeds), BLOCK):
        block = seeds[start : start + BLOCK]
        for bundle in _kept(selection, chunks, fingerprint, document_of, block, store):
            if not bundle.distractors or bundle.goldens[0] in used:
                continue
            used.update(bundle.goldens)
            yield bundle
            yielded += 1
            if yielded == selection.bundles:
                return
    if not yielded:
        raise ConfigError(
            "selection: no distractors can be had: the chunks of other documents all say the same "
            f"(a cosine of selection.golden_similarity={selection.golden_similarity} or more)"
        )


def _seeds(selection: Selection, chunks: Chunks, seed: int) -> NDArray[np.int64]:
    """Return the chunks that bundles begin with, in order."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(chunks))
    if selection.by == "documents":
        documents = list(dict.fromkeys(chunks.doc_ids))
        share = max(round(selection.sample_rate * len(documents)), 1)
        chosen = {documents[i] for i in random.permutation(len(documents))[:share].tolist()}
        order = order[[chunks.doc_ids[p] in chosen for p in order.tolist()]]
    else:
        order = order[: max(round(selection.sample_rate * len(order)), 1)]
    if selection.spread_documents:
        turns, turn = Counter[str](), []
        for position in order.tolist():
            turn.append(turns[chunks.doc_ids[position]])
            turns[chunks.doc_ids[position]] += 1
        order = order[np.argsort(turn, kind="stable")]
    return order


def _kept(
    selection: Selection,
    chunks: Chunks,
    fingerprint: str,
    document_of: NDArray[np.int64],
    seeds: NDArray[np.int64],
    store: Store,
) -> list[Bundle]:
    """Return the bundles that chunks begin, which are in the store if they were made before."""
    key = Key.of("bundles", (__name__,), chunks=fingerprint, selection=selection, seeds=seeds.tolist())

    def build() -> Arrays:
        made = _Neighbourhood(selection, chunks.vectors, document_of).bundles(seeds)
        rows = [[*bundle.goldens, *bundle.distractors] for bundle in made]
        return {
            "positions": np.array([position for row in rows for position in row], dtype=np.int64),
            "goldens": np.array([len(bundle.goldens) for bundle in made], dtype=np.int64),
            "sizes": np.array([len(row) for row in rows], dtype=np.int64),
        }

    kept = store.arrays(key, build)
    parts = np.split(kept["positions"], np.cumsum(kept["sizes"])[:-1])
    pairs = zip(parts, kept["goldens"].tolist(), strict=True)
    return [Bundle(tuple(row[:goldens].tolist()), tuple(row[goldens:].tolist())) for row, goldens in pairs]


@dataclass(frozen=True, eq=False)
class _Neighbourhood:
    """Chunks as vectors of length 1 (n x d), and the number of each one's document (n)."""

    selection: Selection
    vectors: NDArray[np.float32]
    document_of: NDArray[np.int64]

    def bundles(self, seeds: NDArray[np.int64], pool: int = POOL) -> list[Bundle]:
        """Return the bundle of each seed; neighbours are found exactly, in batches."""
        import faiss

        pool = min(pool, len(self.vectors))
        cosines, places = faiss.knn(self.vectors[seeds], self.vectors, pool, metric=faiss.METRIC_INNER_PRODUCT)
        made: list[Bundle | None] = []
        for seed, row, near in zip(seeds.tolist(), cosines, places, strict=True):
            order = np.lexsort((near, -row))  # equals by position, whichever FAISS finds first
            made.append(self._bundle(seed, row[order].tolist(), near[order].tolist()))
        deeper = [i for i, bundle in enumerate(made) if bundle is None]
        found = iter(self.bundles(seeds[deeper], 4 * pool) if deeper else ())
        return [next(found) if bundle is None else bundle for bundle in made]

    def _bundle(self, seed: int, cosines: Sequence[float], neighbours: Sequence[int]) -> Bundle | None:
        """Return the bundle of a seed from its neighbours, the nearest first; None where more are to be looked at."""
        selection, document_of = self.selection, self.document_of
        goldens, golden_documents = [seed], {int(document_of[seed])}
        others: list[int] = []
        for cosine, neighbour in zip(cosines, neighbours, strict=True):
            document = int(document_of[neighbour])
            if cosine < selection.golden_similarity:
                others.append(neighbour)
            elif document not in golden_documents and len(goldens) < selection.max_goldens:
                goldens.append(neighbour)
                golden_documents.add(document)
        if selection.mode == "single" or len(goldens) < selection.min_goldens:
            goldens, golden_documents = [seed], {int(document_of[seed])}
        nearest: dict[int, list[int]] = {}  # by document
        for other in others:
            if (document := int(document_of[other])) not in golden_documents:
                nearest.setdefault(document, []).append(other)
        wanted = selection.distractors
        possible = min(wanted, int(document_of.max()) + 1 - len(golden_documents))
        if len(neighbours) < len(self.vectors) and (
            len(nearest) < possible or sum(map(len, nearest.values())) < wanted
        ):
            return None
        firsts = [rows[0] for rows in nearest.values()]
        rest = [other for other in others if int(document_of[other]) in nearest and other not in firsts]
        return Bundle(tuple(goldens), tuple([*firsts, *rest][:wanted]))
