"""The base of all dataset formats.

A format's module only reads its files into `Raw`; `DatasetSource.load` checks, limits and assembles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

from pydantic.dataclasses import dataclass as settings

from retrievers.base import RepeatedIdError, RetrieverError
from runner.config.addresses import SPLIT
from runner.config.objects import describe_choices
from runner.datasets import files
from runner.datasets.assembly import add_qrels, assemble, describe_repeated_id
from runner.datasets.base import DatasetError, Raw
from runner.datasets.dataset import Dataset
from runner.datasets.overlap import attach_spans
from runner.datasets.qrels import read_qrels
from runner.datasets.source_settings import SourceSettings
from runner.datasets.spans import anchor_spans, check_spans, list_span_qrels
from runner.datasets.splits import list_splits

SHARED_PATHS = ("spans", "extra_qrels")
"""The settings of every source that name files."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class DatasetSource(SourceSettings, ABC):
    """The settings of a format, and how it reads its files."""

    @abstractmethod
    def read(self) -> Raw:
        """Read the files."""

    def splits(self) -> Sequence[str]:
        """Return the available splits; empty if no path contains `{split}`.

        A split exists if all paths with `{split}` exist for it. Files that another setting names do not count.
        """
        if not self._split_paths:
            return ()
        others = {Path(path) for path in self._texts.values()}
        existing = (
            {n for n in list_splits(str(files.find_copy(path, setting))) if Path(path.replace(SPLIT, n)) not in others}
            for setting, path in self._split_paths.items()
        )
        return sorted(set.intersection(*existing))

    def load(self) -> Dataset:
        """Read and check the files, and return a dataset with whole documents; raises `DatasetError`."""
        source = self._resolve_split()
        try:
            raw = source.read()
            if source.gold == "spans":
                return source._load_with_spans(raw)
            for file in source.extra_qrels:
                path = files.resolve_path(file, "extra_qrels")
                raw = add_qrels(raw, read_qrels(path), str(path))
            return source.assemble(raw)
        except RepeatedIdError as error:
            raise DatasetError(describe_repeated_id(source, "document", error.identifier)) from None
        except RetrieverError as error:
            raise DatasetError(f"{source.origin}: {error}") from None

    def assemble(self, raw: Raw) -> Dataset:
        """Check and limit the content of files, and return it as a dataset; raises `DatasetError`."""
        return Dataset(*assemble(self, raw))

    def _load_with_spans(self, raw: Raw) -> Dataset:
        spans = anchor_spans(self.read_spans(), raw.corpus, self.span_similarity)
        name = self.spans or f"the spans of {self.origin}"
        check_spans(spans, name, self.unknown_judged)
        judged = replace(
            raw, qrels=list_span_qrels(spans), qrels_by_search_type={}, grade_intervals=(), qrels_name=name
        )
        dataset = self.assemble(judged)
        lost = dataset.judgments.unknown_documents
        return attach_spans(dataset, spans, lost, self.span_threshold, self.span_similarity)

    @property
    def _texts(self) -> dict[str, str]:
        """Return the text settings of the format, by name."""
        common = {field.name for field in fields(SourceSettings)}
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in common}
        return {name: value for name, value in own.items() if isinstance(value, str)}

    @property
    def _split_paths(self) -> dict[str, str]:
        """Return the paths that contain `{split}`, by setting."""
        return {name: path for name, path in self._texts.items() if SPLIT in path}

    def _resolve_split(self) -> Self:
        """Return the settings with the paths of the split; raises `DatasetError` if there are none."""
        if self._split_paths and self.split not in (there := self.splits()):
            path = next(iter(self._split_paths.values()))
            raise DatasetError(f"dataset.split={self.split}: {path} has no such split; {describe_choices(there)}")
        paths: dict[str, Any] = {name: path.replace(SPLIT, self.split) for name, path in self._split_paths.items()}
        return replace(self, **paths) if paths else self
