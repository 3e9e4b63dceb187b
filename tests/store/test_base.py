"""An evaluation asks its store for the protocol alone: it need not be a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np

from retrievers.lexical.bm25 import BM25
from retrievers.store import Arrays, Key, MemoryStore
from retrievers.work import WorkKind
from runner.evaluation.bench import Bench
from runner.store.base import Costs, Entry, RunFiles
from runner.store.disk import DiskStore
from tests.evaluation.test_bench import experiment


class ElsewhereStore(MemoryStore):
    """A store without a folder."""

    location = "elsewhere"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.run_files = RunFiles(folder)

    def arrays_unless_busy(self, key: Key, build: Callable[[], Arrays]) -> Arrays | None:
        return self.arrays(key, build)

    def list_keys(self, *kinds: WorkKind) -> list[Key]:
        return []

    def borrow(self, key: Key, share: float) -> Arrays | None:
        return None

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        return {key.digest for key in keys}

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        return nullcontext(True)

    @contextmanager
    def account(self) -> Iterator[Costs]:
        yield {}

    def note_use(self, costs: Costs, dataset: str, fingerprint: str, run: str) -> None:
        """Note nothing."""

    def list_entries(self) -> list[Entry]:
        return []

    def find_damage(self, entry: Entry) -> str | None:
        return None

    def remove(self, entry: Entry, only_damaged: bool = False) -> None:
        """Remove nothing."""

    def tidy(self) -> None:
        """Leave everything."""


def test_a_store_without_a_folder_gives_the_same_result(tmp_path: Path) -> None:
    elsewhere = Bench(ElsewhereStore(tmp_path)).evaluate(experiment(BM25()))
    on_disk = Bench(DiskStore(tmp_path / "cache")).evaluate(experiment(BM25()))
    np.testing.assert_array_equal(elsewhere.scores, on_disk.scores)
    assert elsewhere.means == on_disk.means
