"""Judge chunks by the share of gold spans that they cover, in words.

A word is a run of letters and digits, as in the sizes of chunks. It belongs to a chunk or span if it starts there. The
words of all documents are numbered, so that a chunk and a span are each a range of numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus
from retrievers.store import fingerprint
from runner.datasets.base import DatasetError, Judgments
from runner.datasets.chunking import DOCUMENT, END, START
from runner.datasets.spans import AnchoredSpan
from runner.datasets.words import word_starts

if TYPE_CHECKING:
    from runner.datasets.dataset import Dataset

SIMILARITY = 0.8
"""The least similarity of an edited passage to its quote, unless a setting says otherwise."""

Words = NDArray[np.int64]
"""Numbers of words, counted over all documents."""


@dataclass(frozen=True, eq=False)
class SpanGold:
    """The gold spans of a dataset's queries, in columns, and the documents that they are in.

    `documents` are positions in `corpus`, the whole documents; -1 for a lost span, whose number of words is that of its
    quote. `starts` and `ends` are offsets of characters. A chunk is gold if it covers at least `threshold` of the words
    of a span or, for a chunk with fewer words than the span, if at least `threshold` of its own words are in the span.
    `anchored` are all spans as read, for reports; a fuzzy match was at least `similarity` similar.
    """

    corpus: Corpus
    queries: NDArray[np.int32]
    documents: NDArray[np.int32]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    grades: NDArray[np.int32]
    names: Sequence[str]
    lost_words: NDArray[np.int64]
    threshold: float
    anchored: Sequence[AnchoredSpan]
    similarity: float

    @property
    def is_lost(self) -> NDArray[np.bool_]:
        """Return which spans have no place in a document."""
        is_lost: NDArray[np.bool_] = self.documents == NOTHING
        return is_lost

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the places and grades of the spans, and of the threshold."""
        columns = (self.queries, self.documents, self.starts, self.ends, self.grades, self.lost_words)
        return fingerprint(
            "spans", str(self.threshold), *(column.astype("<i8").tobytes().hex() for column in columns)
        )  # fmt: skip

    @cached_property
    def word_starts(self) -> Sequence[NDArray[np.intp]]:
        """Return the offsets of the words of each document."""
        return [word_starts(text) for text in self.corpus.texts]

    @cached_property
    def first_words(self) -> Words:
        """Return the number of each document's first word, and after them the number of all words."""
        return np.cumsum([0, *map(len, self.word_starts)], dtype=np.int64)

    @cached_property
    def words(self) -> tuple[Words, Words]:
        """Return the first word of each span and the word after its last; both are -1 for a lost span."""
        first, last = np.full(len(self.queries), -1, np.int64), np.full(len(self.queries), -1, np.int64)
        for place in np.flatnonzero(~self.is_lost).tolist():
            document, start, end = (int(column[place]) for column in (self.documents, self.starts, self.ends))
            start = _find_word_start(self.corpus.texts[document], self.word_starts[document], start)
            first[place], last[place] = self._number(document, start, end)
        return first, last

    def find_words(self, corpus: Corpus) -> tuple[Words, Words]:
        """Return the first word of each chunk of the documents and the word after its last."""
        if corpus is self.corpus:
            return self.first_words[:-1], self.first_words[1:]
        ranges = [self._number(*place) for place in map(self._locate, range(len(corpus)), [corpus] * len(corpus))]
        columns = np.array(ranges, dtype=np.int64).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]

    def judge(self, corpus: Corpus) -> Judgments:
        """Return the judgments of chunks; the spans that no chunk covers are unknown documents, by name.

        The latter are gold that cannot be found, with positions after those of the chunks: a query whose spans are cut
        to pieces stays in the means. A chunk that covers several spans of a query has the highest of their grades.
        """
        starts, ends = self.find_words(corpus)
        chunks = _group_by_document(starts, self.first_words)
        rows: dict[tuple[int, int], int] = {}
        missed: list[tuple[int, int]] = []
        for span, (first, last) in enumerate(zip(*(column.tolist() for column in self.words), strict=True)):
            query, grade = int(self.queries[span]), int(self.grades[span])
            own = chunks[int(self.documents[span])] if not self.is_lost[span] else np.zeros(0, dtype=np.int64)
            shares = measure_shares(starts[own], ends[own], first, last)
            covering = own[(shares > 0) & (shares >= self.threshold)].tolist()
            if not covering:
                missed.append((span, query))
            for chunk in covering:
                rows[query, chunk] = max(rows.get((query, chunk), 0), grade)
        unknown: dict[str, int] = {}
        for span, query in missed:
            item = len(corpus) + unknown.setdefault(self.names[span], len(unknown))
            rows[query, item] = max(rows.get((query, item), 0), int(self.grades[span]))
        judgments = Judgments.of((*pair, grade) for pair, grade in rows.items())
        return replace(judgments, unknown_documents=tuple(unknown), spans=self)

    def list_gold_words(self, n_queries: int) -> tuple[list[Words], NDArray[np.int64]]:
        """Return the distinct words of each query's spans, ascending, and the number of words that were lost."""
        rows: list[list[Words]] = [[] for _ in range(n_queries)]
        for query, first, last in zip(self.queries.tolist(), *(c.tolist() for c in self.words), strict=True):
            rows[query].append(np.arange(first, last, dtype=np.int64))
        lost = np.bincount(self.queries, weights=self.lost_words, minlength=n_queries).astype(np.int64)
        return [np.unique(np.concatenate(row)) if row else np.zeros(0, np.int64) for row in rows], lost

    def _locate(self, chunk: int, corpus: Corpus) -> tuple[int, int, int]:
        """Return the document of a chunk and its range of characters."""
        about = corpus.metadata[chunk] if corpus.metadata else {}
        if not {DOCUMENT, START, END} <= about.keys():
            raise DatasetError(
                f"dataset.gold=spans: the chunk {corpus.ids[chunk]!r} has no position in its document; the chunking "
                f"must add {DOCUMENT}, {START} and {END} to its metadata"
            )
        return self.corpus.positions[about[DOCUMENT]], about[START], about[END]

    def _number(self, document: int, start: int, end: int) -> tuple[int, int]:
        first, last = np.searchsorted(self.word_starts[document], (start, end))
        return int(self.first_words[document] + first), int(self.first_words[document] + last)


def attach_spans(
    dataset: Dataset,
    spans: Sequence[AnchoredSpan],
    lost: Collection[str],
    threshold: float,
    similarity: float = SIMILARITY,
) -> Dataset:
    """Return a dataset of whole documents that is judged by spans.

    Spans of other queries are left out, and so are lost spans, except those with the names `lost`. No documents are
    excluded as a query's own.
    """
    queries = {identifier: position for position, identifier in enumerate(dataset.queries.ids)}
    places, wanted = dataset.corpus.positions, set(lost)
    kept = [
        (queries[anchored.span.query], NOTHING if anchored.anchor.is_lost else places[anchored.span.document], anchored)
        for anchored in spans
        if anchored.span.query in queries and (not anchored.anchor.is_lost or anchored.span.name in wanted)
    ]
    gold = SpanGold(
        corpus=dataset.corpus,
        queries=np.array([query for query, _, _ in kept], dtype=np.int32),
        documents=np.array([document for _, document, _ in kept], dtype=np.int32),
        starts=np.array([anchored.anchor.start for _, _, anchored in kept], dtype=np.int64),
        ends=np.array([anchored.anchor.end for _, _, anchored in kept], dtype=np.int64),
        grades=np.array([anchored.span.grade for _, _, anchored in kept], dtype=np.int32),
        names=[anchored.span.name for _, _, anchored in kept],
        lost_words=np.array([_count_lost_words(anchored) for _, _, anchored in kept], dtype=np.int64),
        threshold=threshold,
        anchored=spans,
        similarity=similarity,
    )
    judgments = replace(gold.judge(dataset.corpus), unjudged=dataset.judgments.unjudged)
    return replace(dataset, judgments=judgments, exclude_self="false")


def measure_shares(starts: Words, ends: Words, first: int, last: int) -> NDArray[np.float64]:
    """Return the share of the words from `first` to `last` (exclusive) that chunks cover, out of those they could.

    A chunk cannot cover more words than it has: the share is that of the span's words or, for a shorter chunk, of its
    own words.
    """
    shared = np.minimum(ends, last) - np.maximum(starts, first)
    most = np.minimum(ends - starts, last - first)
    return np.where((shared > 0) & (most > 0), shared / np.maximum(most, 1), 0.0)


def _group_by_document(starts: Words, first_words: Words) -> list[NDArray[np.int64]]:
    """Return the positions of each document's chunks."""
    document_of = np.searchsorted(first_words, starts, side="right") - 1
    order = np.argsort(document_of, kind="stable")
    bounds = np.searchsorted(document_of[order], np.arange(1, len(first_words) - 1))
    return np.split(order, bounds)


def _find_word_start(text: str, words: NDArray[np.intp], start: int) -> int:
    """Return the start of the word that an offset is inside of, or the offset itself."""
    place = int(np.searchsorted(words, start, side="right")) - 1
    if place < 0 or words[place] == start:
        return start
    before = text[int(words[place]) : start + 1]
    return start if any(character.isspace() for character in before) else int(words[place])


def _count_lost_words(anchored: AnchoredSpan) -> int:
    """Return the number of words of a lost span, 1 if only its place was recorded; 0 for any other span."""
    if not anchored.anchor.is_lost:
        return 0
    return max(1, len(word_starts(anchored.span.quote.text))) if anchored.span.quote else 1
