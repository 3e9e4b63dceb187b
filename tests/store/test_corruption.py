"""A small version of `python -m benchmarks.corruption`, on files that count as large."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.corruption import WAYS, damage
from retrievers.base import Corpus
from retrievers.lexical.bm25 import BM25
from runner.store import disk, seals
from runner.store.disk import DiskStore

TRIALS = 20
WORDS = [f"w{n}" for n in range(50)]


def search_all(corpus: Corpus, cache: Path) -> tuple[list[list[int]], list[list[float]]]:
    found = BM25().index(corpus, DiskStore(cache)).search(WORDS, 10)
    return found.documents.tolist(), found.scores.tolist()


def wait_for_another_time(probe: Path, changed_ns: int) -> None:
    """Wait until a change to a file shows in its times."""
    probe.touch()
    while probe.stat().st_ctime_ns <= changed_ns:
        probe.touch()


def test_no_corruption_of_a_large_entry_changes_a_ranking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "MAPPED_BYTES", 256)
    monkeypatch.setattr(seals, "SEALED_BYTES", 512)
    monkeypatch.setattr(seals, "SETTLED_S", -60.0)
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0)
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.zipf(1.3, 60) % 500) for _ in range(100)]
    corpus, cache = Corpus([f"d{n}" for n in range(len(texts))], texts), tmp_path / "cache"
    right = search_all(corpus, cache)
    damaged = []
    for _ in range(TRIALS):
        assert search_all(corpus, cache) == right  # which seals the files
        (entry,) = (file.parent for file in cache.glob("postings/*/documents.npy"))
        assert (entry / seals.SEALS).exists()
        wait_for_another_time(tmp_path / "probe", max(file.stat().st_ctime_ns for file in entry.iterdir()))
        damaged.append(damage(entry, rng))
        assert search_all(corpus, cache) == right, damaged[-1]
    assert {way.__name__.replace("_", " ") in "\n".join(damaged) for way in WAYS} == {True}
