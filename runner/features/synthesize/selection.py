"""Select bundles of chunks by their vectors: goldens, which answer a query, and distractors, which resemble them."""

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
from retrievers.vectors.nearest import find_nearest
from retrievers.work import BUNDLES
from runner.config.objects import ConfigError
from runner.features.synthesize.base import Bundle, Chunks

RESULTS_VERSION = "bundles 1"

BLOCK = 256
"""The number of chunks whose neighbours are searched and stored together."""

POOL = 64
"""The number of neighbours searched first; if they are not enough, four times as many, and so on."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class BundleSelection:
    """Settings of bundles.

    Bundles start from a share of `sample_rate` of the `chunks`, or of the chunks of a share of `documents`. `bundles`
    is their maximum number (None: as many as requested). With `spread_documents`, no document has a second bundle
    before all have one. The `distractors` of a bundle are the chunks of other documents nearest to the first golden,
    from as many documents as possible.

    Chunks of other documents with a cosine of at least `golden_similarity` have the same content. In mode `cluster`,
    they are goldens too, one per document and `max_goldens` in all; with fewer than `min_goldens`, and in mode
    `single`, the first golden is the only one. They are never distractors.
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
    def _check_order(self) -> Self:
        if self.min_goldens > self.max_goldens:
            raise ValueError(f"min_goldens={self.min_goldens}: should be at most max_goldens={self.max_goldens}")
        return self


def check_documents(doc_ids: Sequence[str]) -> None:
    """Raise `ConfigError` if all chunks are from one document, because distractors come from others."""
    if len(set(doc_ids)) < 2:
        raise ConfigError(
            f"source: all {len(doc_ids):,} chunks are from one document, {doc_ids[0]!r}, but distractors come "
            "from other documents; add documents"
        )


def iter_bundles(
    selection: BundleSelection, chunks: Chunks, fingerprint: str, seed: int, store: Store
) -> Iterator[Bundle]:
    """Yield bundles in an order that `seed` determines; `fingerprint` is the hash of the chunks.

    No bundle starts from a chunk that was a golden. Raises `ConfigError` if no chunk has a distractor.
    """
    seeds = _seeds(selection, chunks, seed)
    numbers = {document: number for number, document in enumerate(dict.fromkeys(chunks.doc_ids))}
    document_of = np.array([numbers[document] for document in chunks.doc_ids], dtype=np.int64)
    yielded, used = 0, set[int]()
    for start in range(0, len(seeds), BLOCK):
        block = seeds[start : start + BLOCK]
        for bundle in _load_or_build(selection, chunks, fingerprint, document_of, block, store):
            if not bundle.distractors or bundle.goldens[0] in used:
                continue
            used.update(bundle.goldens)
            yield bundle
            yielded += 1
            if yielded == selection.bundles:
                return
    if not yielded:
        raise ConfigError(
            "selection: no chunk has a distractor, because all chunks of other documents have a cosine of at "
            f"least selection.golden_similarity={selection.golden_similarity}; raise this setting"
        )


def _seeds(selection: BundleSelection, chunks: Chunks, seed: int) -> NDArray[np.int64]:
    """Return the first chunks of bundles, in order."""
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


def _load_or_build(
    selection: BundleSelection,
    chunks: Chunks,
    fingerprint: str,
    document_of: NDArray[np.int64],
    seeds: NDArray[np.int64],
    store: Store,
) -> list[Bundle]:
    """Return the bundles that start from the seeds, from the store if they are there."""
    key = Key.of(BUNDLES, __name__, chunks=fingerprint, selection=selection, seeds=seeds.tolist())

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
    """Chunks as vectors of length 1 (n x d), and the number of each chunk's document (n,)."""

    selection: BundleSelection
    vectors: NDArray[np.float32]
    document_of: NDArray[np.int64]

    def bundles(self, seeds: NDArray[np.int64], pool: int = POOL) -> list[Bundle]:
        """Return the bundle of each seed, by exact search for neighbours."""
        pool = min(pool, len(self.vectors))
        cosines, places = find_nearest(self.vectors[seeds], self.vectors, pool)
        made: list[Bundle | None] = []
        for seed, row, near in zip(seeds.tolist(), cosines, places, strict=True):
            order = np.lexsort((near, -row))  # ties by position; their order would be undefined
            made.append(self._bundle(seed, row[order].tolist(), near[order].tolist()))
        # A fixed number of neighbours would not do: if a document has 64 chunks about one subject, all neighbours of
        # such a chunk are in its own document, and its bundle would have no distractor. Few bundles need a larger pool.
        deeper = [i for i, bundle in enumerate(made) if bundle is None]
        deeper_bundles = iter(self.bundles(seeds[deeper], 4 * pool) if deeper else ())
        return [next(deeper_bundles) if bundle is None else bundle for bundle in made]

    def _bundle(self, seed: int, cosines: Sequence[float], neighbours: Sequence[int]) -> Bundle | None:
        """Return the bundle of a seed from its neighbours, the nearest first; None if more neighbours are needed."""
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
        count = selection.distractors
        possible = min(count, int(document_of.max()) + 1 - len(golden_documents))
        if len(neighbours) < len(self.vectors) and (len(nearest) < possible or sum(map(len, nearest.values())) < count):
            return None
        firsts = [rows[0] for rows in nearest.values()]
        rest = [other for other in others if int(document_of[other]) in nearest and other not in firsts]
        return Bundle(tuple(goldens), tuple([*firsts, *rest][:count]))
