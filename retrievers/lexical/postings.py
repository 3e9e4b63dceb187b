"""Term counts of a corpus, counted once per analyzer, for BM25 and LSA.

The columns are stored in the form in which they are used, term by term, so that they can be memory-mapped.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus
from retrievers.lexical.analyzer import RESULTS_VERSION as ANALYZER_VERSION
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.field_postings import FieldContents, join_fields
from retrievers.lexical.term_ids import TermIds, iter_term_ids
from retrievers.store import Arrays, Key, Store, check_rows
from retrievers.threads import count_threads, map_threads
from retrievers.work import LIVE_CODE, LIVE_POSTINGS, POSTINGS

RESULTS_VERSION = f"postings 1, {ANALYZER_VERSION}"

Column = NDArray[Any]

log = logging.getLogger("retrievers.lexical.postings")


@dataclass(frozen=True, eq=False)
class Postings:
    """The documents of each term, with counts: for term t, the entries `offsets[t]` to `offsets[t + 1]`.

    `documents` (int32, ascending for each term) and `counts` (the smallest unsigned integer type that holds them) have
    one entry per pair; `lengths` (int32) is the number of terms of each document. Counted by field, `counts` and
    `lengths` have a second dimension, the fields.
    """

    vocabulary: Sequence[str]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    counts: NDArray[np.unsignedinteger]
    lengths: NDArray[np.int32]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Return each term's position in the vocabulary."""
        return {term: position for position, term in enumerate(self.vocabulary)}

    @cached_property
    def frequencies(self) -> NDArray[np.int64]:
        """Return the document frequency of each term."""
        return np.diff(self.offsets)

    @cached_property
    def mean_length(self) -> float:
        """Return the mean number of terms of a document, empty ones included (1 for a corpus without terms)."""
        return float(self.lengths.mean()) or 1.0 if len(self.lengths) else 1.0

    def find_terms(self, queries: Sequence[str], analyzer: Analyzer) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the known terms of all queries, concatenated, and the offsets of each query, of shape (n + 1,)."""
        known = self.positions
        terms = [[known[t] for t in analyzer.tokens(query) if t in known] for query in queries]
        starts = np.zeros(len(queries) + 1, dtype=np.int64)
        np.cumsum([len(t) for t in terms], out=starts[1:])
        return np.array([t for row in terms for t in row], dtype=np.int32), starts


def build_postings_key(corpus: Corpus, analyzer: Analyzer, fields: Sequence[str] = ()) -> Key:
    """Return the key under which the postings of a corpus are stored."""
    return Key.of(POSTINGS, __name__, **corpus.key_parts, **_field_parts(fields), analyzer=analyzer)


def load_postings(corpus: Corpus, analyzer: Analyzer, store: Store, fields: Sequence[str] = ()) -> Postings:
    """Return the postings of whole documents, or by field, counted once per corpus and analyzer."""
    n_fields = len(fields)

    def count_columns(corpus: Corpus) -> Arrays:
        if not fields:
            return _count(corpus, analyzer)
        return join_fields(_count(FieldContents(corpus, fields), analyzer), n_fields)

    def count_terms() -> Arrays:
        compiled = Key.of(LIVE_CODE, __name__, **_field_parts(fields))  # so that compiling is not timed as counting
        store.share(compiled, lambda: _check(count_columns(Corpus(["id"], ["word"])), 1, n_fields))
        return count_columns(corpus)

    def load() -> Postings:
        try:
            key = build_postings_key(corpus, analyzer, fields).with_check(check_rows, len(corpus), ("lengths",))
            columns = store.arrays(key, count_terms)
            return _check(columns, len(corpus), n_fields)
        except _OutOfBounds as error:
            log.warning("the stored postings are damaged; counting the terms again: %s", error)
            return _check(count_terms(), len(corpus), n_fields)

    parts = {"corpus": corpus.fingerprint, "analyzer": analyzer, **_field_parts(fields)}
    return store.share(Key.of(LIVE_POSTINGS, __name__, **parts), load)


def _field_parts(fields: Sequence[str]) -> dict[str, object]:
    return {"fields": ", ".join(fields)} if fields else {}


class _OutOfBounds(ValueError):
    """Stored postings are inconsistent."""


def _check(columns: Arrays, n_documents: int, n_fields: int = 0) -> Postings:
    """Return stored columns as postings; raises `_OutOfBounds`, as compiled code does not check its bounds."""
    try:
        text = columns["vocabulary"].tobytes().decode("utf-8", "surrogatepass")
        offsets, documents, counts, lengths = (columns[name] for name in _COLUMNS)
    except (KeyError, UnicodeDecodeError) as error:
        raise _OutOfBounds(f"a column cannot be read ({error})") from error
    vocabulary = text.split("\n") if text else []
    if len(offsets) != len(vocabulary) + 1 or len(lengths) != n_documents or len(counts) != len(documents):
        raise _OutOfBounds("the lengths of the columns do not match")
    if not counts.shape[1:] == lengths.shape[1:] == ((n_fields,) if n_fields else ()):
        raise _OutOfBounds(f"the counts do not have {n_fields or 1} column(s), one for each field")
    if offsets[0] != 0 or offsets[-1] != len(documents) or (np.diff(offsets) < 0).any():
        raise _OutOfBounds("a term refers to postings that are not there")
    if not is_ascending(offsets, documents, n_documents):
        raise _OutOfBounds(f"the documents of a term are not in ascending order from 0 to {n_documents - 1}")
    return Postings(vocabulary, offsets, documents, counts, lengths)


_COLUMNS = ("offsets", "documents", "counts", "lengths")

_MOST_PARTS = 4
"""How many parts of a corpus are counted in parallel; each has its own counts for every term."""

_Part = Sequence[tuple[int, TermIds]]
"""Chunks of a corpus, each with the position of its first document."""


def _count(corpus: Corpus | FieldContents, analyzer: Analyzer) -> Arrays:
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    parts = _split_parts(list(iter_term_ids(corpus.contents(), analyzer, vocabulary.__getitem__)))
    # Terms contain no white space, so the vocabulary fits in lines.
    n_terms, lines = len(vocabulary), "\n".join(vocabulary).encode("utf-8", "surrogatepass")
    del vocabulary
    tallies = list(map_threads(partial(_tally, n_terms), parts))
    frequencies = np.array([frequencies for frequencies, _ in tallies])
    offsets = np.zeros(n_terms + 1, dtype=np.int64)
    np.cumsum(frequencies.sum(axis=0), out=offsets[1:])
    free = offsets[:-1] + np.cumsum(frequencies, axis=0) - frequencies  # the first entry of each part for each term
    documents = np.empty(offsets[-1], dtype=np.int32)
    counts = np.empty(offsets[-1], dtype=np.min_scalar_type(max(1, *(largest for _, largest in tallies))))
    list(map_threads(partial(_fill, documents, counts), zip(parts, free, strict=True)))
    kept: dict[str, Column] = {
        "vocabulary": np.frombuffer(lines, dtype=np.uint8),
        "offsets": offsets,
        "documents": documents,
        "counts": counts,
        "lengths": np.concatenate([np.zeros(0, dtype=np.int32), *(c.lengths for part in parts for _, c in part)]),
    }
    for column in kept.values():
        column.flags.writeable = False  # like columns from disk, so that code is compiled once
    return kept


def _split_parts(chunks: Sequence[TermIds]) -> list[_Part]:
    firsts = accumulate((len(chunk.lengths) for chunk in chunks), initial=0)
    placed = list(zip(firsts, chunks, strict=False))
    n_parts = max(1, min(count_threads(), _MOST_PARTS, len(chunks)))
    return [placed[n * len(placed) // n_parts : (n + 1) * len(placed) // n_parts] for n in range(n_parts)]


def _tally(n_terms: int, part: _Part) -> tuple[NDArray[np.int64], int]:
    """Return the document frequencies of a part, and the largest count of a term in a document."""
    from retrievers.compiled.postings import tally_chunk

    frequencies, largest = np.zeros(n_terms, dtype=np.int64), 0
    last, within = np.full(n_terms, NOTHING, dtype=np.int32), np.zeros(n_terms, dtype=np.int32)
    for first, chunk in part:
        largest = max(largest, tally_chunk(first, chunk.lengths, chunk.terms, last, within, frequencies))
    return frequencies, largest


def _fill(documents: Column, counts: Column, task: tuple[_Part, NDArray[np.int64]]) -> None:
    from retrievers.compiled.postings import fill_chunk

    part, free = task
    last = np.full(len(free), NOTHING, dtype=np.int32)
    for first, chunk in part:
        fill_chunk(first, chunk.lengths, chunk.terms, last, free, documents, counts)


_BLOCK = 1 << 20
"""How many postings are checked at a time."""


def is_ascending(offsets: Column, documents: Column, n_documents: int) -> bool:
    """Return whether the documents of each term ascend and are positions in a corpus of this size."""
    for first in range(0, len(documents), _BLOCK):
        span = documents[first : first + _BLOCK + 1]  # includes the first posting of the next block
        if span.min() < 0 or span.max() >= n_documents:
            return False
        ascends = span[1:] > span[:-1]
        begin, end = np.searchsorted(offsets, (first + 1, first + len(span)))
        ascends[offsets[begin:end] - (first + 1)] = True  # the first document of a term need not ascend
        if not ascends.all():
            return False
    return True
