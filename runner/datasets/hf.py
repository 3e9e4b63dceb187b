"""Read datasets by name from the Hugging Face hub, in the layouts of BEIR and MTEB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.extras import check_installed
from retrievers.runs.run_formats import COMPRESSIONS
from runner.datasets.base import DatasetError, Raw, corpus_of
from runner.datasets.beir import build_queries, iter_documents
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.filtering import DocumentFields
from runner.datasets.ir_datasets import EXTRA
from runner.datasets.layouts import iter_places, iter_qrels, iter_rows, list_qrels, list_tables
from runner.datasets.source import SHARED_PATHS, DatasetSource

_TSV = tuple(f"*.tsv{ending}" for ending in ("", *COMPRESSIONS))
_PATTERNS = ("corpus*", "queries*", "qrels*", "data/*", "default/*", *_TSV)
"""The files of a repository that may be needed."""


@settings(frozen=True, config={"extra": "forbid"})
class HuggingFace(DatasetSource):
    """A dataset repository of the hub; it is downloaded once and then read from the hub's cache.

    The repository has tables `corpus` and `queries` in JSONL or Parquet, with the columns `_id`, `title` and `text`,
    and judgments for each split: TSV as in BEIR, or a table with `query-id`, `corpus-id` and `score` as in MTEB.
    `qrels` names another repository for the judgments; if it is not set and the repository has no judgments, they are
    read from the repository whose name ends in "-qrels". `revision` and, for the repository of judgments,
    `qrels_revision` are a branch, a tag or a commit.
    """

    access: ClassVar[Access] = Access("services", names=("name", "qrels"), paths=SHARED_PATHS)

    name: str
    revision: str | None = None
    qrels: str | None = None
    qrels_revision: str | None = None

    @field_validator("name", "qrels")
    @classmethod
    def _check_name(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
            raise ValueError("should be OWNER/NAME, as in the address of the dataset's page")
        return name

    @model_validator(mode="after")
    def _check_installed(self) -> Self:
        check_installed("huggingface_hub", "huggingface_hub", EXTRA)
        return self

    @property
    def origin(self) -> str:
        """Return the name of the repository."""
        return self.name

    def splits(self) -> list[str]:
        """Return the splits that have judgments."""
        return sorted(self._find_qrels(download_repository(self.name, self.revision)))

    def read(self) -> Raw:
        """Download files that the cache lacks, and read the dataset; raises `DatasetError`."""
        folder = download_repository(self.name, self.revision)
        qrels = self._find_qrels(folder)
        if self.split not in qrels:
            has = ", ".join(sorted(qrels)) or "none"
            raise DatasetError(f"dataset.split={self.split}: {self.name} has no such split; choose from: {has}")
        records = list(self._iter_rows(folder, "queries"))
        queries = build_queries(records, self.name, query_fields=self.query_fields, filter_field=self.filter_field)
        fields = DocumentFields(queries.filters, self.name, self.search_fields)
        return Raw(
            corpus=corpus_of(iter_documents(self._iter_rows(folder, "corpus"), fields)),
            queries=queries,
            qrels=[qrel for file in qrels[self.split] for qrel in iter_qrels(file)],
            qrels_name=f"{self.qrels or self.name} ({self.split})",
            document_fields=fields.names,
        )

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the row of each document, query or judgment."""
        folder = download_repository(self.name, self.revision)
        if table == "judgment":
            for file in self._find_qrels(folder)[self.split]:
                yield from iter_places(file)
            return
        for row in self._iter_rows(folder, "corpus" if table == "document" else "queries"):
            yield row.location, (row.identifier("_id", "id"),)

    def _iter_rows(self, folder: Path, name: Literal["corpus", "queries"]) -> Iterator[SourceRecord]:
        if not (tables := list_tables(folder, name, self.split)):
            raise DatasetError(
                f"dataset.name={self.name}: has no {name}.jsonl or {name}/*.parquet, which the BEIR and MTEB "
                "layouts require"
            )
        return iter_rows(tables)

    def _find_qrels(self, folder: Path) -> Mapping[str, Sequence[Path]]:
        """Return the files of judgments by split, from the repository that has them."""
        splits = list_qrels(folder) if self.qrels is None else {}
        if splits:
            return splits
        return list_qrels(download_repository(self.qrels or f"{self.name}-qrels", self.qrels_revision, "qrels"))


def download_repository(name: str, revision: str | None, setting: Literal["name", "qrels"] = "name") -> Path:
    """Return the folder of a dataset repository; raises `DatasetError` if it is neither on the hub nor cached."""
    from huggingface_hub import snapshot_download, utils
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    pinned = "revision" if setting == "name" else "qrels_revision"
    place = f"dataset.{setting}={name}" + (f" dataset.{pinned}={revision}" if revision else "")
    bars: Any = utils  # does not export these functions for mypy
    has_bars = not bars.are_progress_bars_disabled()
    bars.disable_progress_bars()
    try:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=list(_PATTERNS)))
    except RepositoryNotFoundError:
        raise DatasetError(f"{place}: the hub has no such dataset, or HF_TOKEN does not give access to it") from None
    except LocalEntryNotFoundError:
        raise DatasetError(f"{place}: is not in the cache, and the hub cannot be reached") from None
    except (HfHubHTTPError, OSError) as error:
        raise DatasetError(f"{place}: cannot be downloaded: {str(error).splitlines()[0]}") from error
    finally:
        if has_bars:
            bars.enable_progress_bars()
