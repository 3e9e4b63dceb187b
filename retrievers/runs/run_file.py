"""Rankings that were computed before, read from a file: TREC calls them a run.

Queries are looked up by their ids (`retrievers.base.QueryText`), so the documents are not needed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import NOTHING, Corpus, Rankings, RetrieverError, create_empty_rankings
from retrievers.capabilities import Capabilities
from retrievers.id_table import select_ids
from retrievers.runs.run_columns import Columns, DocumentIds, OrderedColumns, list_ranges
from retrievers.runs.run_formats import COMPRESSIONS, FORMATS, RunFormat, find_format, read_columns
from retrievers.runs.trec_tokens import decode_token
from retrievers.store import NoStore, Store

RESULTS_VERSION = "run file 1"

log = logging.getLogger("retrievers")


@settings(frozen=True, config={"extra": "forbid"})
class RunFile:
    """Settings of rankings in a file. The extension shows its format, or `format` names it.

    trec: six columns (query, Q0, document, rank, score, tag), between tabs if a line has any, or else between ASCII
    white space. csv, tsv and parquet: columns with
    the ids of queries and documents, and `score` or `rank`, by the names of this program, PyTerrier, ranx, BEIR or
    Pyserini; or one row per query with a list of documents, best first, and perhaps one of `scores`. json: a mapping
    from queries to documents and scores (ranx, pytrec_eval) or to lists, or a list of records; jsonl: one record per
    line. All but Parquet may be compressed (.gz, .lz4, .zst, .bz2, .xz).

    Hits are ranked by score, then document id, both descending, as in trec_eval; ranks are only read where there are no
    scores. A query that is missing from the file has no hits. A document that is listed twice for a query counts once,
    with its best score. Documents that the corpus lacks keep their rank. `label` is the name of the system that wrote
    the file: its files for different datasets are one system.
    """

    access: ClassVar[Access] = Access(paths=("path",))
    # Filters are applied by the system that wrote the file; reports count hits outside. The file may have changed, and
    # reading it is as quick as reading a cache.
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True, texts=False, ids=True, live=True, scans=False)

    path: str
    format: RunFormat | None = None
    label: str | None = Field(default=None, min_length=1)

    def describe_index(self) -> Mapping[str, str]:
        """Return the size and the modification time of the file, which change if it is replaced."""
        try:
            there = Path(self.path).expanduser().stat()
        except OSError:
            return {}
        written = datetime.fromtimestamp(there.st_mtime, UTC).isoformat()
        return {"file": f"{there.st_size} bytes of {written}"}

    def start_reading(self) -> None:
        """Read the file in a thread; the next call of `index` uses what it read."""
        with_one_thread = ThreadPoolExecutor(1)
        self.__dict__["_reading"] = with_one_thread.submit(self._read)
        with_one_thread.shutdown(wait=False)

    def index(self, corpus: Corpus, store: Store) -> RunSearcher:
        """Read the file; raises `RetrieverError`."""
        reading: Future[tuple[Columns | OrderedColumns, bool]] | None = self.__dict__.pop("_reading", None)
        columns, encoded = self._read() if reading is None else reading.result()
        return RunSearcher.of(self.path, columns, corpus, encoded)

    def _read(self) -> tuple[Columns | OrderedColumns, bool]:
        """Return the hits of the file, and whether its ids are encoded."""
        path = Path(self.path).expanduser()
        if not path.is_file():
            raise RetrieverError(
                f"path={self.path}: {'expected a file, found a folder' if path.is_dir() else 'no such file'}"
            )
        kind = self.format or find_format(path)
        if kind is None:
            known = ", ".join([*FORMATS, *COMPRESSIONS])
            raise RetrieverError(
                f"path={self.path}: the extension is not one of {known}; set the retriever's format to trec, json, "
                "jsonl, csv, tsv or parquet"
            )
        return read_columns(path, kind)


@dataclass(frozen=True, eq=False)
class RunSearcher:
    """The hits of each query, best first: those of query i are at `starts[i]` to `ends[i]`.

    Documents are only identified, and ties only broken, to the depth of a search. `encoded` says whether white space is
    percent-encoded in their ids.
    """

    live_weight: ClassVar[int] = 64  # four at a time: a file of a million hits takes 50 MB, and is soon read again

    path: str
    queries: Mapping[str, int]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    scores: NDArray[np.float32]
    documents: DocumentIds
    corpus: Corpus
    encoded: bool

    @classmethod
    def of(cls, path: str, columns: Columns | OrderedColumns, corpus: Corpus, encoded: bool) -> RunSearcher:
        """Order the hits of a file; raises `RetrieverError` for a score that does not fit in 32 bits."""
        ordered = columns if isinstance(columns, OrderedColumns) else _order_columns(path, columns)
        names = map(decode_token, ordered.query_ids) if encoded else ordered.query_ids
        return cls(path, {name: place for place, name in enumerate(names)}, *ordered[1:], corpus, encoded)

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the first k hits of each query, by its id. Raises `RetrieverError` if the file has none of them."""
        ids = [str(getattr(query, "id", query)) for query in queries]
        numbers = np.array([self.queries.get(name, NOTHING) for name in ids], dtype=np.int64)
        missing = int(np.count_nonzero(numbers == NOTHING))
        if missing and missing == len(numbers):
            first = next(iter(self.queries), "none")
            raise RetrieverError(
                f"{self.path}: contains none of the {len(ids):,} queries; the ids in the file look like "
                f"{first!r}, those of the queries like {ids[0]!r}"
            )
        if missing:
            log.warning("%s: %s of %s queries are missing and have no hits", self.path, f"{missing:,}", f"{len(ids):,}")
        begins = np.where(numbers == NOTHING, 0, self.starts[numbers])
        ends = np.where(numbers == NOTHING, 0, self.ends[numbers])
        rankings, repeated = self._rank(begins, self._cut(begins, ends, k), k)
        if repeated:  # later hits move up
            rankings, repeated = self._rank(begins, ends, k)
        diagnostics = {
            "unknown_items": float(np.count_nonzero(rankings.documents >= len(self.corpus))),
            "repeated_items": float(repeated),
            "missing_queries": float(missing),
        }
        return replace(rankings, diagnostics=diagnostics)

    def _cut(self, begins: NDArray[np.int64], ends: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Return the end of the first k hits of each query, extended by the hits that are tied with the last one."""
        cuts = np.minimum(begins + k, ends)
        longer = np.flatnonzero((cuts > begins) & (cuts < ends))
        tied = longer[self.scores[cuts[longer]] == self.scores[cuts[longer] - 1]]
        for query, cut, end in zip(tied.tolist(), cuts[tied].tolist(), ends[tied].tolist(), strict=True):
            cuts[query] = cut + np.searchsorted(-self.scores[cut:end], -self.scores[cut - 1], side="right")
        return cuts

    def _rank(self, begins: NDArray[np.int64], ends: NDArray[np.int64], k: int) -> tuple[Rankings, int]:
        """Return the first k of the hits from each begin to end, and how many of these are repeated documents."""
        queries = np.repeat(np.arange(len(begins)), ends - begins)
        hits = list_ranges(begins, ends)
        scores, (documents, names) = self.scores[hits], self.documents.number(hits)
        names, places, unknown = self._locate(names)
        documents = _break_ties(queries, scores, documents, names)
        kept = ~_find_repeated(queries, documents, np.full(len(names), NOTHING, dtype=np.int64))
        if not kept.all():
            queries, documents, scores = queries[kept], documents[kept], scores[kept]
        counts = np.bincount(queries, minlength=len(begins))
        ranks = np.arange(len(queries)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = ranks < k
        if not first.all():
            queries, documents, scores, ranks = queries[first], documents[first], scores[first], ranks[first]
        depth = int(ranks.max(initial=-1)) + 1  # k may be far larger than the longest ranking
        rankings = create_empty_rankings(len(begins), depth)
        cells = queries * depth + ranks
        rankings.documents.reshape(-1)[cells] = places[documents]  # a flat index takes half the time of two
        rankings.scores.reshape(-1)[cells] = scores
        return replace(rankings, unknown_ids=unknown), int(len(kept) - np.count_nonzero(kept))

    def _locate(self, names: Sequence[str]) -> tuple[Sequence[str], NDArray[np.int32], Sequence[str]]:
        """Return the decoded names of documents, their positions in the corpus, and the names that it lacks."""
        n, positions = len(self.corpus), self.corpus.positions
        if self.encoded:
            names = list(map(decode_token, names))
        places = np.full(len(names), NOTHING, dtype=np.int32)
        if n:
            names = list(names)
            places[:] = np.fromiter(map(positions.get, names, repeat(NOTHING)), np.int32, len(names))
        outside = places == NOTHING
        unknown = select_ids(names, outside)
        places[outside] = np.arange(n, n + len(unknown))
        if n and names and len(unknown) == len(names):
            log.warning(
                "%s: the corpus contains none of its %s documents; the ids in the file look like %r, those of the "
                "corpus like %r",
                self.path, f"{len(names):,}", names[0], self.corpus.ids[0],
            )  # fmt: skip
        return names, places, unknown


def _order_columns(path: str, columns: Columns) -> OrderedColumns:
    """Return hits by query, best first; raises `RetrieverError` for a score that does not fit in 32 bits."""
    queries, documents = columns.queries, columns.documents
    with np.errstate(over="ignore"):
        scores = columns.scores.astype(np.float32, copy=False) + np.float32(0)  # -0 is 0
    if not np.isfinite(scores).all():
        row = np.flatnonzero(~np.isfinite(scores))[:1]
        (number,), names = documents.number(row)
        raise RetrieverError(
            f"{path}: query {columns.query_ids[queries[row[0]]]!r}, document {names[number]!r}: the score "
            f"{columns.scores[row[0]]} is not a finite 32-bit number"
        )
    if not _are_in_order(queries, scores):
        rows = np.lexsort((-scores, queries))
        queries, scores, documents = queries[rows], scores[rows], documents.reorder(rows)
    starts = np.searchsorted(queries, np.arange(len(columns.query_ids) + 1, dtype=queries.dtype))
    return OrderedColumns(columns.query_ids, starts[:-1], starts[1:], scores, documents)


def _break_ties(
    queries: NDArray[np.int64], scores: NDArray[np.float32], documents: NDArray[np.int32], names: Sequence[str]
) -> NDArray[np.int32]:
    """Return documents, given by query and descending score, with equal scores in the descending order of names."""
    ties = np.concatenate(((queries[1:] == queries[:-1]) & (scores[1:] == scores[:-1]), [False]))[: len(queries)]
    tied = ties.copy()
    tied[1:] |= ties[:-1]
    if not tied.any():
        return documents
    rows = np.flatnonzero(tied)
    group = np.cumsum(~np.concatenate(([False], ties[:-1])))[rows]
    distinct, codes = np.unique(documents[rows], return_inverse=True)
    order = sorted(range(len(distinct)), key=[names[number] for number in distinct.tolist()].__getitem__, reverse=True)
    by_name = np.empty(len(distinct), dtype=np.int64)
    by_name[order] = np.arange(len(distinct))
    documents = documents.copy()
    documents[rows] = documents[rows[np.lexsort((by_name[codes], group))]]
    return documents


@njit(cache=True, nogil=True)
def _are_in_order(queries: Any, scores: Any) -> bool:  # noqa: ANN401 (compiled)
    """Return whether hits are grouped by ascending query numbers, and their scores never rise within a query."""
    for row in range(1, len(queries)):
        if queries[row] < queries[row - 1] or (queries[row] == queries[row - 1] and scores[row] > scores[row - 1]):
            return False
    return True


@njit(cache=True)
def _find_repeated(queries: Any, documents: Any, latest: Any) -> Any:  # noqa: ANN401 (compiled)
    """Return which hits are of a document that its query had before; `latest` is -1 for each document."""
    repeated = np.zeros(len(queries), dtype=np.bool_)
    for row in range(len(queries)):
        repeated[row] = latest[documents[row]] == queries[row]
        latest[documents[row]] = queries[row]
    return repeated
