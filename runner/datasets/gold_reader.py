"""Read the gold of questions from the columns of their rows: judgments of documents, or passages of these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile

from retrievers.base import Corpus
from runner.datasets.anchoring import Quote, hash_text
from runner.datasets.base import DatasetError, Qrel
from runner.datasets.files import SourceRecord, grade_of
from runner.datasets.folder import DOCUMENTS
from runner.datasets.gold import (
    IDS,
    PLACES,
    TEXTS,
    WORD,
    Locator,
    Match,
    Reference,
    is_nothing,
    is_unspaced,
    is_whole,
    parse_references,
    split,
)
from runner.datasets.sections import sections
from runner.datasets.spans import GoldSpan

_LINES = re.compile(rf"(?:{'|'.join(map(re.escape, DOCUMENTS))}):L?(\d+)(?:-L?(\d+))?$", re.IGNORECASE)
"""The lines of a text file after its name; after that of other files, a number is a page."""


@dataclass(frozen=True)
class Gold:
    """The judgments of questions, each with its row, and how many names were understood in which way.

    `several` texts are in several documents. `unknown` are the names without a document, and `cause` says why the first
    of these has none.
    """

    qrels: Sequence[Qrel] = ()
    records: Sequence[SourceRecord] = ()
    kinds: Counter[str] = field(default_factory=Counter)
    several: int = 0
    unknown: Sequence[str] = ()
    cause: str = ""


@dataclass(frozen=True)
class GoldReader:
    """Reads the gold of questions from a column, and its grades from another one; without a locator, names are ids."""

    column: str
    grades: str | None
    separator: str | None
    locator: Locator | None

    def read(self, record: SourceRecord) -> list[Reference]:
        """Return what a row names as gold, with grades; raises `DatasetError`."""
        references = parse_references(record, self.column, self.separator, self._is_known)
        if len(references) == 1 and is_nothing(references[0].name) and not self._is_document(references[0].name):
            return []
        graded = record.fields.get(self.grades) if self.grades else None
        if graded is None or graded == "":
            return references
        values = graded if isinstance(graded, list) else [graded] * len(references)
        if len(values) != len(references):
            raise record.fault(
                f"{self.grades!r} has {len(values)} grades, but {self.column!r} {len(references)} documents"
            )
        try:
            return [own._replace(grade=grade_of(value)) for own, value in zip(references, values, strict=True)]
        except ValueError as error:
            raise record.fault(str(error)) from None

    @cached_property
    def find(self) -> Callable[[str], Match]:
        """Return what finds the documents that a reference names."""
        return self.locator.find if self.locator else lambda name: Match([name], IDS)

    def read_all(self, queries: Iterable[str], records: Iterable[SourceRecord]) -> Gold:
        """Return the gold in rows, each with the id of its question; raises `DatasetError`."""
        qrels, rows, names, find = list[Qrel](), list[SourceRecord](), list[str](), self.find
        for query, record in zip(queries, records, strict=True):
            for name, grade, _ in self.read(record):
                names.append(name)
                for document in find(name).documents or (name,):
                    qrels.append((query, document, 1 if grade is None else grade))
                    rows.append(record)
        counts, kinds = Counter(names), Counter[str]()
        for name, count in counts.items():
            kinds[find(name).kind] += count
        unknown = [name for name in counts if not find(name).documents]
        several = sum(find(name).kind == TEXTS and len(find(name).documents) > 1 for name in counts)
        return Gold(qrels, rows, kinds, several, unknown, find(unknown[0]).cause if unknown else "")

    def _is_document(self, name: str) -> bool:
        return self.locator is not None and bool(self.locator.find(name).documents)

    def is_empty(self, records: Sequence[SourceRecord]) -> bool:
        """Return whether no row names anything."""
        return all(record.fields.get(self.column) in (None, "", [], {}) for record in records)

    def read_spans(self, queries: Iterable[str], records: Iterable[SourceRecord], corpus: Corpus) -> list[GoldSpan]:
        """Return the passages in rows, each with the id of its question: every place of a text, or a whole document."""
        spans = list[GoldSpan]()
        for query, record in zip(queries, records, strict=True):
            for name, grade, quote in self.read(record):
                match = self.find(name)
                text = quote or (name if match.kind in (TEXTS, "") else "")
                if grade is None or grade > 0:
                    base = GoldSpan(query, "", grade or 1, Quote(text) if text else None, location=record.location)
                    place = name if match.kind == PLACES else ""
                    spans += _iter_spans(base, match.documents or [name if quote else ""], corpus, place)
        return spans

    def has_documents(self, records: Sequence[SourceRecord]) -> bool:
        """Return whether any row names a document."""
        return any(self.find(reference.name).documents for reference in self._read_all(records))

    def has_only_documents(self, records: Sequence[SourceRecord]) -> bool:
        """Return whether rows name documents and nothing else."""
        names = [reference.name for reference in self._read_all(records)]
        return bool(names) and all(self.find(name).documents for name in names)

    def _read_all(self, records: Sequence[SourceRecord]) -> Iterator[Reference]:
        for record in records:
            with suppress(DatasetError):
                yield from self.read(record)

    def _is_known(self, name: str) -> bool:
        """Return whether a text is one reference: as a whole it is a document, but not all of its parts are."""
        if self.locator is None or name in self.locator.ids:
            return self.locator is not None
        parts = split(name, self.separator)
        if self.separator != " " and all(part in self.locator.ids for part in parts):  # the usual case, fast
            return False
        if not self.find(name).documents:
            return False
        return is_whole(name, self.separator, self.locator) or not all(self.find(part).documents for part in parts)


def _iter_spans(base: GoldSpan, documents: Sequence[str], corpus: Corpus, place: str) -> Iterator[GoldSpan]:
    """Yield a span for each place of a quote in documents or, without a quote, for the lines, section or all of each.

    `place` is the name of a file with the lines or the heading after it.
    """
    for document in documents:
        position = corpus.positions.get(document)
        span, text = replace(base, document=document), "" if position is None else corpus.texts[position]
        digest = hash_text(text)
        places = list(_find_places(base.quote.text, text)) if base.quote else []
        for start, end in places:
            quote = Quote(text[start:end], start, digest=digest)
            yield replace(span, quote=quote, offsets=(start, end), digest=digest)
        if base.quote and not places:  # it may have been edited
            yield span
        elif not base.quote and (match := _LINES.search(place)):
            yield replace(span, lines=(int(match[1]), int(match[2] or match[1])), digest=digest)
        elif not base.quote:
            yield replace(span, offsets=_find_section(place, text) or (0, len(text)), digest=digest)


def _find_places(quote: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a text has the words of a quote in a row, as ranges of characters."""
    unspaced, words = is_unspaced(quote), WORD.findall(quote)
    gap, edge, parts = (r"\W*", "", [*"".join(words)]) if unspaced else (r"\W+", r"\b", words)
    pattern = f"{edge}{gap.join(map(re.escape, parts))}{edge}"
    yield from (match.span() for match in re.finditer(pattern, text, re.IGNORECASE) if words)


def _find_section(name: str, text: str) -> tuple[int, int] | None:
    """Return the characters of the only section with the heading that a name has after #; None without one."""
    heading, parts = _spell_anchor(name.partition("#")[2]), sections(text)
    own = [place for place, part in enumerate(parts) if part.path and _spell_anchor(part.path[-1]) == heading]
    if len(own) != 1:
        return None
    path = parts[own[0]].path
    inside = list(takewhile(lambda part: part.path[: len(path)] == path, parts[own[0] :]))
    return inside[0].start, inside[-1].end


def _spell_anchor(heading: str) -> str:
    return re.sub(r"\W+", "-", heading.casefold()).strip("-")
