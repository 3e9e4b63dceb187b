"""What retrievers of several stages note about each query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QueryNote:
    """What a retriever notes about a query: values by name, which JSON can represent; false if there are none."""

    values: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of_parts(cls, notes: Mapping[str, QueryNote]) -> QueryNote:
        """Return the note of a retriever whose parts made notes, by the names of the parts."""
        return cls({name: note.values for name, note in notes.items()})

    def __bool__(self) -> bool:
        return bool(self.values)

    def with_base(self, notes: Sequence[QueryNote]) -> QueryNote:
        """Return the note with those of the searches that the retriever made with its base, if any."""
        return QueryNote({**self.values, "base": [note.values for note in notes]}) if notes else self

    def to_json(self) -> str:
        """Return the note as it is saved."""
        return json.dumps(self.values)


@dataclass(frozen=True)
class QueryLog:
    """The work for a query besides searches: its time in seconds, a note, and figures to sum over queries.

    `settled` is false if something failed that may succeed next time.
    """

    seconds: float = 0.0
    note: QueryNote = QueryNote()
    figures: Mapping[str, float] = field(default_factory=dict)
    settled: bool = True
