"""Settings whose values are the names in a table, so that a new row of the table is all that a new value needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class OneOf:
    """The annotation of such a setting: `Annotated[str, OneOf(table)]`; a name maps to what it means, in a line."""

    table: Mapping[str, str]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Accept the names, and list them in the error for any other value."""
        return core_schema.literal_schema([*self.table])

    def __hash__(self) -> int:
        return hash((*self.table,))


def list_choices(kind: Any) -> dict[str, str]:  # noqa: ANN401 (any type)
    """Return the values of an enumeration with what they mean ("" if unknown), also of one within a union."""
    return dict(_iter_choices(kind))


def _iter_choices(kind: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 (any type)
    tables = [part.table for part in getattr(kind, "__metadata__", ()) if isinstance(part, OneOf)]
    for table in tables:
        yield from table.items()
    for part in () if tables else get_args(kind):
        yield from [(part, "")] if get_origin(kind) is Literal else _iter_choices(part)
