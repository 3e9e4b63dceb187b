"""The settings that all sources of datasets share, and the places of what they read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.runs.run_formats import strip_compression
from runner.config.addresses import SPLIT
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.files import Place, PlaceTable
from runner.datasets.overlap import SIMILARITY
from runner.datasets.own_documents import ExcludeSelf, OwnIdRule
from runner.datasets.qrels import iter_qrel_places
from runner.datasets.spans import SPANS, GoldSpan, read_spans


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class SourceSettings:
    """Settings of every source of a dataset.

    `max_queries` and `max_documents` take a seeded sample for a quick look; judged documents are always kept.
    `unknown_judged` decides about judged documents that the corpus lacks: reject the dataset, keep them (only a
    retriever with its own documents or rankings can find them), or drop them, together with the queries left without
    gold. `unknown_queries` decides about judgments of queries that the dataset lacks: reject the dataset, or drop
    them, as for a sample of the queries. Any path may contain `{split}`, which is replaced by `split`. `exclude_self`
    leaves a query that is a document of the corpus out of its own results: `true` by its id, `auto` if the text is
    the same too, and an `OwnIdRule` if the ids differ. `cluster_field` names the field of queries whose value the
    variants of a query share: tests and intervals resample such clusters, and a query without the field is a cluster
    of its own. `filter_field` names the field of queries with conditions on the metadata of documents; null for none.
    `search_fields` are fields of documents, besides title and text, for retrievers with field weights.
    If `gold` is `spans`, gold is passages of documents, in the file `spans`, which replace the judgments of the format:
    a chunk is gold if it covers the share `span_threshold` of one. A passage that was edited is found again if its
    similarity is at least `span_similarity`; `unknown_judged` also decides about passages that are lost.
    `extra_qrels` are files of qrels, one or a list, that are added to the judgments of the dataset, and replace them
    for the same pairs; of several files, a later one replaces an earlier one. `unjudged_queries` says whether queries
    without any judgment are left out, or kept without gold so that people can judge their results. If `golden` is true,
    the metadata of documents are for readers, and evaluations write a golden report.
    """

    golden: ClassVar[bool] = False

    name: str | None = None
    split: str = "test"
    max_queries: int | None = Field(default=None, ge=1)
    max_documents: int | None = Field(default=None, ge=1)
    unknown_judged: Literal["error", "keep", "drop"] = "error"
    unknown_queries: Literal["error", "drop"] = "error"
    unjudged_queries: Literal["drop", "keep"] = "drop"
    extra_qrels: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    exclude_self: ExcludeSelf = "auto"
    cluster_field: str | None = Field(default=None, min_length=1)
    filter_field: str | None = Field(default="filter", min_length=1)
    search_fields: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    gold: Literal["documents", "spans"] = "documents"
    spans: str | None = Field(default=None, min_length=1)
    span_threshold: float = Field(default=0.5, gt=0, le=1)
    span_similarity: float = Field(default=SIMILARITY, gt=0, le=1)
    seed: int = Field(default=0, ge=0)

    @field_validator("exclude_self", mode="before")
    @classmethod
    def _format_boolean(cls, value: object) -> object:
        """Return a boolean as a word: YAML reads an unquoted true as a boolean."""
        return str(value).lower() if isinstance(value, bool) else value

    @field_validator("extra_qrels", mode="before")
    @classmethod
    def _list_files(cls, value: object) -> object:
        """Return one file as a list of one, and null as an empty list."""
        return () if value is None else (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_gold(self) -> Self:
        if self.gold != "spans":
            if self.spans is not None:
                raise ValueError(f"spans={self.spans}: set gold=spans too, or remove spans")
            return self
        if self.extra_qrels:
            raise ValueError("extra_qrels: grades of documents cannot be added to gold=spans; remove one of the two")
        if self.exclude_self not in ("auto", "false"):
            raise ValueError(f"exclude_self={self.exclude_self}: not supported with gold=spans; set auto or false")
        if not self.has_documents:
            raise ValueError("gold=spans: the dataset has no documents; spans are passages of documents")
        return self

    @property
    def query_fields(self) -> dict[str, str]:
        """Return the fields of queries that settings name and that their metadata must have, by setting."""
        own = self.exclude_self.field if isinstance(self.exclude_self, OwnIdRule) else None
        named = {"cluster_field": self.cluster_field, "exclude_self.field": own}
        return {setting: field for setting, field in named.items() if field is not None}

    @property
    def has_documents(self) -> bool:
        """Return whether documents are given: a retriever with its own index only needs queries and judgments."""
        return getattr(self, "documents", "") is not None

    @property
    def origin(self) -> str:
        """Return the file or folder that names a dataset without a name: by default, the setting `path`."""
        return str(getattr(self, "path", type(self).__name__.lower()))

    @property
    def title(self) -> str:
        """Return the name, which by default is that of `origin`, without the extensions of a file."""
        path = Path(self.origin).expanduser()
        name = path.resolve().name
        return self.name or (name if path.is_dir() else strip_compression(name).rpartition(".")[0] or name)

    def read_spans(self) -> list[GoldSpan]:
        """Read the file of spans; raises `DatasetError`. A format with spans of its own overrides this."""
        return read_spans(self._find_spans())

    def _find_spans(self) -> Path:
        """Return the file of spans: the setting, or the one that a generator wrote next to the dataset."""
        if self.spans is not None:
            return files.resolve_path(self.spans.replace(SPLIT, self.split), "spans")
        beside = self.spans_beside
        if not beside.is_file():
            raise DatasetError(f"dataset.gold=spans: {beside} does not exist; set dataset.spans to the file of spans")
        return beside

    @property
    def spans_beside(self) -> Path:
        """Return the path of the file of spans that a generator wrote next to the dataset."""
        return Path(f"{self.origin}{SPANS}")

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the location of each document, query or judgment; nothing for a format without locations."""
        yield from ()

    def places(self, table: PlaceTable, *ids: str | None) -> Sequence[str]:
        """Return where an id occurs, as FILE:LINE, or a judgment with these ids (None: any), in the order of reading.

        The files are read again, so this is for errors.
        """
        rows = self.iter_places(table)
        if table == "judgment" and self.gold == "spans":
            rows = ((span.location, (span.query, span.document)) for span in self.read_spans())
        if table == "judgment":
            extra = (files.resolve_path(file, "extra_qrels") for file in self.extra_qrels)
            rows = chain(rows, chain.from_iterable(map(iter_qrel_places, extra)))
        return [place for place, own in rows if all(a in (None, b) for a, b in zip(ids, own, strict=False))]
