"""The source of a dataset that was made in Python."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.datasets.base import DatasetError, Raw
from runner.datasets.dataset import Dataset
from runner.datasets.source import SHARED_PATHS, DatasetSource


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class GivenDataset(DatasetSource):
    """A dataset in the memory of this process, identified by the fingerprint of its `content`."""

    access: ClassVar[Access] = Access(paths=SHARED_PATHS)

    content: str
    dataset: Any = Field(default=None, repr=False)  # a Dataset; with this type, pydantic would check every field

    @property
    def origin(self) -> str:
        """Return the name."""
        return self.name or "given"

    def load(self) -> Dataset:
        """Return the dataset; raises `DatasetError` in a process where it does not exist."""
        if self.dataset is None:
            raise DatasetError(
                f"dataset=_given: {self.name} exists only in the Python process that created it; save it to files "
                "and load them, for example with dataset=jsonl"
            )
        given: Dataset = self.dataset
        if given.split != self.split:
            raise DatasetError(
                f"dataset.split={self.split}: {self.name} was created in Python with the split {given.split}"
            )
        return given

    def read(self) -> Raw:
        """Raise an error, because there are no files."""
        raise DatasetError("a dataset created in Python has no files; save it, and load the files with dataset=jsonl")
