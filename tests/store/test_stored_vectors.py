"""A text is embedded once: not again in a changed corpus, in chunks of another size, or as a duplicate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from retrievers.encoders import shards
from retrievers.encoders.base import Vectors
from retrievers.encoders.shards import embed_in_shards, split_shards
from retrievers.store import Key, fingerprint
from retrievers.work import DOCUMENT_VECTORS, SHARD_TEXTS
from runner.store import disk
from runner.store.disk import DiskStore
from tests.hashing import hash_texts
from tests.store.building import Clock

TEXTS = [f"document number {n}" for n in range(1000)]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskStore:
    """Return a store with the vectors of `TEXTS`, which stores quick work, too."""
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    monkeypatch.setattr(shards, "LONG", 10_000)  # encodes no sample to estimate the time
    embed(TEXTS, DiskStore(tmp_path))
    return DiskStore(tmp_path)


def build_key(part: Sequence[str], model: str = "hashing") -> Key:
    return Key.of(DOCUMENT_VECTORS, "tests.hashing", texts=fingerprint(*part), model=model)


def embed(texts: Sequence[str], store: DiskStore, model: str = "hashing") -> list[str]:
    """Embed texts and check their vectors; return the texts that were encoded."""
    encoded: list[str] = []

    def encode(part: Sequence[str]) -> Vectors:
        encoded.extend(part)
        return hash_texts(part)

    vectors = embed_in_shards(texts, encode, partial(build_key, model=model), store)
    assert np.array_equal(np.concatenate(vectors), hash_texts(texts))
    return encoded


@pytest.mark.parametrize("place", [0, 500, 1000])
def test_of_a_changed_corpus_only_new_texts_are_embedded(store: DiskStore, place: int) -> None:
    assert embed([*TEXTS[:place], "new", *TEXTS[place:]], store) == ["new"]
    assert embed([*TEXTS[: place - 1], *TEXTS[place:]], store) == []


def test_texts_in_other_shards_are_not_embedded_again(store: DiskStore) -> None:
    mixed = [text for pair in zip(TEXTS[::-1], (f"chunk {n}" for n in range(1000)), strict=True) for text in pair]
    assert embed(mixed, store) == mixed[1::2]


def test_duplicates_in_several_shards_are_embedded_once(store: DiskStore) -> None:
    texts = [f"chunk {n}" for n in range(1000)]
    assert embed([*texts, "chunk 3", "chunk 5", "the last"], store) == [*texts, "the last"]


def test_vectors_of_another_encoder_are_not_used(store: DiskStore) -> None:
    assert embed(TEXTS, store, "another") == TEXTS


def test_removed_entries_are_embedded_again(store: DiskStore) -> None:
    for entry in store.list_entries():
        if entry.kind == "document vectors":
            store.remove(entry)
    assert embed([*TEXTS, "new"], store) == [*TEXTS, "new"]


def test_other_content_of_entries_with_hashes_is_ignored(store: DiskStore) -> None:
    shard = build_key(next(iter(split_shards(TEXTS)))).digest
    for wrong in (np.ones(300), np.zeros((3, 4), dtype="V16")):
        parts = {"encoder": build_key(()).digest, "shard": shard, "shape": wrong.shape}
        store.arrays(Key.of(SHARD_TEXTS, "tests.hashing", **parts), lambda wrong=wrong: {"hashes": wrong})  # type: ignore[misc]  # a default
    store.arrays(Key.of(SHARD_TEXTS, "tests.hashing"), lambda: {"hashes": np.ones(1)})
    assert embed([*TEXTS, "new"], store) == ["new"]


def test_the_time_of_copied_vectors_is_that_of_their_encoding(tmp_path: Path, clock: Clock) -> None:
    def encode(part: Sequence[str]) -> Vectors:
        clock.now += len(part)
        return hash_texts(part)

    store = DiskStore(tmp_path / "timed")
    for texts in (TEXTS, TEXTS[::2], [*TEXTS[::3], "new"]):
        with store.account() as costs:
            embed_in_shards(texts, encode, build_key, store)
        assert sum(cost.seconds for cost in costs.values()) == pytest.approx(len(texts))
