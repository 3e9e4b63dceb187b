"""The first hits of each query of one or more results on the same queries, with texts, as data of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from retrievers.base import NOTHING, Corpus
from runner.comparison.insights import Insights
from runner.config.report import Texts
from runner.evaluation.failure_classes import ADVICE
from runner.evaluation.failure_summary import choose_first_step
from runner.evaluation.failures import QueryFailure
from runner.evaluation.report.insights import EVIDENCE
from runner.evaluation.result import Hits, QueryTable, Result, without_metadata
from runner.pages.explorer.data import DataColumn
from runner.pages.numbers import gist

DEPTH = 10
"""Hits of each query on a page."""

SNIPPET = 1_200
"""Most characters of a document, unless a report contains full texts."""

TEXTS = 12_000_000
"""Most characters of all documents; the texts of the hardest queries come first."""

MOST_NOTE = 200
"""Most characters of the metadata of a document."""

MOST_GOLD = 10
"""Expected documents of each query on a page."""


AROUND = 600
"""Most characters on each side of a chunk, unless a report contains full texts."""


@dataclass(frozen=True)
class DocumentText:
    """The title and text of a document or chunk, and the texts of its document before and after a chunk."""

    title: str
    text: str | None
    before: str = ""
    after: str = ""

    def cut(self, longest: int | None) -> DocumentText:
        """Return the first `longest` characters of the text, and `AROUND` on each side of it; None: all of it."""
        if longest is None:
            return self
        return DocumentText(self.title, self.text and self.text[:longest], self.before[-AROUND:], self.after[:AROUND])


@dataclass(frozen=True)
class ShownDocument:
    """A document or chunk that a page shows: of a chunk, also its document, title and place there.

    Chunks of two splits may have the same id; their places tell them apart.
    """

    id: str
    parent: str = ""
    title: str = ""
    start: int = 0
    end: int = 0

    @property
    def key(self) -> str:
        """Return the name by which a page asks a server for the whole text."""
        return f"{self.id} {self.start}-{self.end}" if self.end else self.id

    @classmethod
    def of_hits(cls, hits: Hits, query: int, depth: int) -> list[ShownDocument]:
        """Return the first hits of a query."""
        places = [place for place in hits.rankings.documents[query, :depth].tolist() if place != NOTHING]
        if not hits.parents:
            return [cls(hits.documents[place]) for place in places]
        chunks, shown = hits.chunks, []
        for place in places:
            where = ("", 0, 0) if chunks is None else chunks.read(place)
            shown.append(cls(hits.documents[place], hits.parents[place], *where))
        return shown

    def read(self, corpus: Corpus, positions: Mapping[str, int]) -> DocumentText | None:
        """Return its text from a corpus of documents or of the chunks themselves; None if that lacks it.

        A chunk whose place is unknown, as in old records, has the text of its document.
        """
        position = positions.get(self.id, positions.get(self.parent))
        if position is None:
            return None
        title, text = corpus.titles[position] if corpus.titles else "", corpus.texts[position]
        if self.id in positions or not self.end:
            return DocumentText(title, text)
        return DocumentText(self.title, text[self.start : self.end], text[: self.start], text[self.end :])


class DocumentTable:
    """The documents that a page shows, each once, with the texts of a corpus while there is room.

    `longest` is the number of characters of a text that are shown (None: all).
    """

    def __init__(self, corpus: Corpus | None, longest: int | None = SNIPPET) -> None:
        self._corpus, self._longest = corpus, longest
        self._positions: Mapping[str, int] = {} if corpus is None else {id: i for i, id in enumerate(corpus.ids)}
        self._numbers: dict[ShownDocument, int] = {}
        self._texts: list[DocumentText] = []
        self._notes: list[str] = []
        self._room = TEXTS

    def number(self, document: ShownDocument, metadata: Mapping[str, Any] = MappingProxyType({})) -> int:
        """Return the number of a document; `metadata` are shown with its id, if there are any."""
        if (known := self._numbers.get(document)) is not None:
            return known
        self._numbers[document] = len(self._texts)
        self._texts.append(self._read(document))
        self._notes.append(gist("; ".join(f"{name}: {value}" for name, value in metadata.items()), MOST_NOTE))
        return self._numbers[document]

    def _read(self, document: ShownDocument) -> DocumentText:
        shown = None if self._corpus is None else document.read(self._corpus, self._positions)
        if shown is None:
            return DocumentText("", None)
        shown = shown.cut(self._longest)
        size = len(shown.text or "") + len(shown.before) + len(shown.after)
        if size > self._room:
            return DocumentText(shown.title, None)
        self._room -= size
        return shown

    def to_dict(self) -> dict[str, Any]:
        """Return the documents as columns for JSON; a text that was not available or had no room is null.

        `parents` are the ids of the documents that chunks are pieces of, and `around` the texts before and after them;
        `keys` are the names of the documents in `look`.
        """
        columns: dict[str, Any] = {"ids": [document.id for document in self._numbers]}
        columns |= {"titles": [shown.title for shown in self._texts], "texts": [shown.text for shown in self._texts]}
        if any(self._notes):
            columns["notes"] = self._notes
        if any(document.parent for document in self._numbers):
            columns["keys"] = [document.key for document in self._numbers]
            columns["parents"] = [document.parent for document in self._numbers]
            columns["around"] = [[shown.before, shown.after] for shown in self._texts]
        return columns


def build_rankings(
    results: Sequence[Result],
    labels: Sequence[str],
    corpus: Corpus | None,
    insights: Sequence[Insights] = (),
    texts: Texts = "snippets",
    snippet: int = SNIPPET,
) -> dict[str, Any]:
    """Return the hits, scores and grades of each query and system, the gold, and the documents that they name.

    `texts` says how much of each document is shown, `snippet` how many characters a snippet has.
    """
    if texts == "none":
        corpus, results = None, [without_metadata(result) for result in results]
    table, queries = DocumentTable(corpus, None if texts == "full" else snippet), results[0].queries
    hardness = np.nan_to_num(np.stack([result.of(result.primary) for result in results]), nan=2.0).min(axis=0)
    order = np.argsort(hardness, kind="stable").tolist()
    hits = results[0].hits
    metadata = {} if hits is None else dict(zip(hits.documents, hits.metadata, strict=False))  # often there are none
    gold: list[list[int]] = [[] for _ in queries.ids]
    systems: list[dict[str, Any]] = [
        {"name": label, "hits": [[] for _ in queries.ids], "scores": [[] for _ in queries.ids],
         "grades": [[] for _ in queries.ids], "failures": {}}
        for label in labels
    ]  # fmt: skip
    for i in order:
        gold[i] = [
            table.number(ShownDocument(name), metadata.get(name, {})) for name in queries.expected[i][:MOST_GOLD]
        ]
        for system, result in zip(systems, results, strict=True):
            if result.hits is None:
                continue
            shown = ShownDocument.of_hits(result.hits, i, DEPTH)
            positions = result.hits.rankings.documents[i, : len(shown)].tolist()
            notes = [result.hits.metadata[d] if result.hits.metadata else {} for d in positions]
            system["hits"][i] = [table.number(*hit) for hit in zip(shown, notes, strict=True)]
            system["scores"][i] = [float(f"{s:.6g}") for s in result.hits.rankings.scores[i, : len(shown)].tolist()]
            system["grades"][i] = result.hits.grades[i, : len(shown)].tolist()
    for system, insight in zip(systems, insights, strict=False):
        system["failures"] = {str(f.query): _describe_failure(f, insight.cutoff) for f in insight.failures}
    return {"documents": table.to_dict(), "systems": systems, "gold": gold}


LENGTHS = ((2, "1 to 2 words"), (4, "3 to 4 words"), (8, "5 to 8 words"), (16, "9 to 16 words"))
"""Lengths of queries up to a number of words."""


def describe_length(text: str) -> str:
    """Return the slice of queries of about the same length that a query belongs to."""
    words = len(text.split())
    return next((name for most, name in LENGTHS if words <= most), "17 words or more")


_TAKEN = {"query", "text", "type", "first_gold", "status", "missed", "words", "length", "gold", "ms"}
"""The names of columns that pages have for all datasets."""


def build_field_columns(queries: QueryTable) -> list[DataColumn]:
    """Return the other fields of queries as columns by which the table can be grouped; types have a column already."""
    names = dict.fromkeys(name for of in queries.fields for name in of)  # tables of two datasets may be merged
    columns = {name: [of.get(name, "") for of in queries.fields] for name in names}
    own = {name: values for name, values in columns.items() if values != list(queries.types)}
    titles = {name: f"query.{name}" if name in _TAKEN else name for name in own}
    return [
        DataColumn(f"f{i}", titles[name], titles[name], values, kind="setting", shown=False,
                   definition="A field of the dataset's queries")
        for i, (name, values) in enumerate(own.items())
    ]  # fmt: skip


def list_queries(queries: QueryTable | None) -> dict[str, Any]:
    """Return the queries, and the number of each one's cluster for intervals: null if each is its own cluster."""
    numbers = None if queries is None else queries.cluster_numbers
    names = ("ids", "texts", "types", "expected")
    return {
        "queries": {name: [] if queries is None else list(getattr(queries, name)) for name in names},
        "clusters": None if numbers is None else numbers.tolist(),
    }


_EVIDENCE = {
    "semantic_rank": "LSA rank", "lead": "lead", "overlap": "overlap", "rival_overlap": "overlap above", "idf": "IDF",
    "spread": "spread", "unjudged": "unjudged",
}  # fmt: skip


def _describe_failure(failure: QueryFailure, cutoff: int) -> dict[str, Any]:
    """Return the classes of a missed query with their advice, and its evidence, as pairs of a meaning and a value."""
    values = vars(failure)
    evidence = [
        [EVIDENCE[title], float(f"{values[name]:.4g}")] for name, title in _EVIDENCE.items() if values[name] is not None
    ]
    named = [["the document above the gold", failure.rival], ["similar to the gold", failure.lookalike]]
    return {
        "classes": [
            [name, f"{ADVICE[name].meaning} {choose_first_step(name, [failure], cutoff)}"] for name in failure.labels
        ],
        "evidence": [*evidence, *(pair for pair in named if pair[1])],
    }


def replace_nan(values: Sequence[float]) -> list[float | None]:
    """Return values to six decimals, with None for NaN."""
    return [None if value != value else round(value, 6) for value in values]
