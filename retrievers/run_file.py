"""Rankings that were computed before, read from a file: TREC calls them a run.

They are looked up by the ids of queries (`retrievers.base.QueryText`), so that they need no documents.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, RetrieverError, create_empty_rankings
from retrievers.run_formats import COMPRESSIONS, FORMATS, Columns, RunFormat, decode_token, find_format, read_columns
from retrievers.store import NoStore, Store

log = logging.getLogger("retrievers")


@settings(frozen=True, config={"extra": "forbid"})
class RunFile:
    """Settings of rankings in a file. The extension shows its format, or `format` names it.

    trec: six columns between spaces or tabs (query, Q0, document, rank, score, tag). csv, tsv and parquet: columns with
    the ids of queries and documents, and `score` or `rank`, by the names of this program, PyTerrier, ranx, BEIR or
    Pyserini; or one row per query with a list of documents, best first, and perhaps one of `scores`. json: a mapping
    from queries to documents and scores (ranx, pytrec_eval) or to lists, or a list of records; jsonl: one record per
    line. All but Parquet may be compressed (.gz, .lz4, .zst, .bz2).

    Hits are ranked by score, then document id, both descending, as in trec_eval; ranks are only read where there are no
    scores. A query that is missing from the file has no hits. A document that is listed twice for a query counts once,
    with its best score. Documents that the corpus lacks keep their rank.
    """

    live: ClassVar[bool] = True  # the file may have changed, and reading it is as quick as reading a cache

    path: str
    format: RunFormat | None = None

    def describe_index(self) -> Mapping[str, str]:
        """Return the size of the file and when it was written, which a new file under the same name changes."""
        try:
            there = Path(self.path).expanduser().stat()
        except OSError:
            return {}
        written = datetime.fromtimestamp(there.st_mtime, UTC).isoformat()
        return {"file": f"{there.st_size} bytes of {written}"}

    def index(self, corpus: Corpus, store: Store) -> RunSearcher:
        """Read the file; raises `RetrieverError`."""
        path = Path(self.path).expanduser()
        if not path.is_file():
            raise RetrieverError(f"path={self.path}: {'is a folder' if path.is_dir() else 'no such file'}")
        kind = self.format or find_format(path)
        if kind is None:
            known = ", ".join([*FORMATS, *COMPRESSIONS])
            raise RetrieverError(f"path={self.path}: unknown format ({known} are known); set the retriever's format")
        return RunSearcher.of(self.path, read_columns(path, kind), corpus, tokens=kind == "trec")


@dataclass(frozen=True, eq=False)
class RunSearcher:
    """The hits of each query, best first: those of query i are at `starts[i]` to `starts[i + 1]`.

    `documents` (int32) are positions in the corpus; position len(corpus) + i is `unknown_ids[i]`.
    """

    path: str
    queries: Mapping[str, int]
    starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    scores: NDArray[np.float32]
    unknown_ids: Sequence[str]
    n_documents: int
    repeated: int

    @classmethod
    def of(cls, path: str, columns: Columns, corpus: Corpus, tokens: bool) -> RunSearcher:
        """Rank the hits of a file; `tokens` are ids in which white space may be encoded."""
        positions = corpus.positions
        names = list(columns.document_ids)
        if tokens and "%" in "".join(names):
            names = [decode_token(name) if name not in positions else name for name in names]
        n = len(corpus)
        known = list(map(positions.get, names))
        unknown = [name for name, place in zip(names, known, strict=True) if place is None] if None in known else []
        outside = iter(range(n, n + len(unknown)))
        places = np.array([next(outside) if place is None else place for place in known], dtype=np.int32)
        if names and n and len(unknown) == len(names):
            log.warning(
                "%s: none of its %s documents is in the corpus: it has ids such as %r, the corpus %r",
                path, f"{len(names):,}", names[0], corpus.ids[0],
            )  # fmt: skip
        queries, documents, scores = _rank_hits(columns, names, path)
        kept = ~_find_repeated(queries, documents, np.full(len(names), -1, dtype=np.int32))
        repeated = len(kept) - int(np.count_nonzero(kept))
        if repeated:
            queries, documents, scores = queries[kept], documents[kept], scores[kept]
        starts = np.searchsorted(queries, np.arange(len(columns.query_ids) + 1))
        rows = {name: place for place, name in enumerate(columns.query_ids)}
        if tokens:
            rows = {decode_token(name): place for name, place in rows.items()} | rows
        return cls(path, rows, starts, places[documents], scores, tuple(unknown), n, repeated)

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the first k hits of each query, by its id. Raises `RetrieverError` if the file has none of them."""
        ids = [str(getattr(query, "id", query)) for query in queries]
        rows = np.array([self.queries.get(name, -1) for name in ids], dtype=np.int64)
        missing = int(np.count_nonzero(rows < 0))
        if missing and missing == len(rows):
            first = next(iter(self.queries), "none")
            raise RetrieverError(
                f"{self.path}: has none of the {len(ids):,} queries: its ids are such as {first!r}, those of the "
                f"queries such as {ids[0]!r}"
            )
        if missing:
            log.warning("%s: %s of %s queries are missing and have no hits", self.path, f"{missing:,}", f"{len(ids):,}")
        begins = np.where(rows < 0, 0, self.starts[rows])
        lengths = np.where(rows < 0, 0, np.minimum(self.starts[rows + 1] - begins, k))
        rankings = create_empty_rankings(len(ids), k)
        there = np.arange(k) < lengths[:, None]
        source = (begins[:, None] + np.arange(k))[there]
        rankings.documents[there], rankings.scores[there] = self.documents[source], self.scores[source]
        outside = float(np.count_nonzero(rankings.documents >= self.n_documents))
        diagnostics = {
            "unknown_items": outside,
            "repeated_items": float(self.repeated),
            "missing_queries": float(missing),
        }
        return replace(rankings, diagnostics=diagnostics, unknown_ids=self.unknown_ids)


def _rank_hits(
    columns: Columns, names: Sequence[str], path: str
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Return queries, documents and scores in the order of the queries, then of descending scores and ids."""
    queries, documents = columns.queries, columns.documents
    with np.errstate(over="ignore"):
        scores = columns.scores.astype(np.float32) + np.float32(0)  # -0 is 0
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise RetrieverError(
            f"{path}: query {columns.query_ids[queries[row]]!r}, document {names[documents[row]]!r}: the score is "
            f"{columns.scores[row]}, not a number that fits in 32 bits"
        )
    same = queries[1:] == queries[:-1]
    if (queries[1:] < queries[:-1]).any() or (same & (scores[1:] > scores[:-1])).any():
        order = np.lexsort((-scores, queries))
        queries, documents, scores = queries[order], documents[order], scores[order]
        same = queries[1:] == queries[:-1]
    ties = np.concatenate((same & (scores[1:] == scores[:-1]), [False]))[: len(queries)]
    tied = ties.copy()
    tied[1:] |= ties[:-1]
    if tied.any():
        rows = np.flatnonzero(tied)
        group = np.cumsum(~np.concatenate(([False], ties[:-1])))[rows]
        ids = [names[document] for document in documents[rows].tolist()]
        by_name = np.array(sorted(range(len(rows)), key=ids.__getitem__, reverse=True), dtype=np.int64)
        order = rows[by_name[np.argsort(group[by_name], kind="stable")]]
        documents = documents.copy()
        documents[rows] = documents[order]
    return queries, documents, scores


@njit(cache=True)
def _find_repeated(queries: Any, documents: Any, latest: Any) -> Any:  # noqa: ANN401 (compiled)
    """Return which hits are of a document that its query had before; `latest` is -1 for each document."""
    repeated = np.zeros(len(queries), dtype=np.bool_)
    for row in range(len(queries)):
        repeated[row] = latest[documents[row]] == queries[row]
        latest[documents[row]] = queries[row]
    return repeated
