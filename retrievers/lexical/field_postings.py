"""Term counts by field: the fields of a document are counted as documents of their own, then joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrievers.base import Corpus
from retrievers.store import Arrays


@dataclass(frozen=True, eq=False)
class FieldContents:
    """Some fields of a corpus as contents: those of the first document, of the second, and so on."""

    corpus: Corpus
    fields: Sequence[str]

    def contents(self) -> Iterator[str]:
        """Yield each field of each document."""
        for row in zip(*map(self.corpus.read_field, self.fields), strict=True):
            yield from row


def join_fields(columns: Arrays, n_fields: int) -> Arrays:
    """Return the postings of documents from those of their fields, with counts and lengths by field."""
    from retrievers.compiled.field_postings import join

    joined = join(columns["offsets"], columns["documents"], columns["counts"], n_fields)
    lengths = columns["lengths"].reshape(-1, n_fields)
    kept = dict(columns, lengths=lengths, **dict(zip(("offsets", "documents", "counts"), joined, strict=True)))
    for column in kept.values():
        column.flags.writeable = False
    return kept
