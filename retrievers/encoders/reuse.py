"""Vectors that a store has already: of texts in shards of another corpus or chunk size, and of duplicates.

Beside each shard, the store keeps the hashes of its texts. When a shard is missing, those of all shards by the same
encoder are looked up once, and only new texts are encoded.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from retrievers.store import Arrays, Key, SharedStore, check_rows
from retrievers.work import SHARD_TEXTS

RESULTS_VERSION = "reuse 1"

_HASH = np.dtype("V16")


class StoredVectors:
    """The places of the vectors of texts in a store: for each text, a shard, its number of texts, and a row.

    `key` returns the key of a shard; that of no texts stands for the encoder.
    """

    def __init__(self, parts: Sequence[Sequence[str]], key: Callable[[Sequence[str]], Key], store: SharedStore) -> None:
        self._key, self._store, self._encoder = key, store, key(()).digest
        self._stored = self._find_stored(parts)
        self._places = self._find_duplicates(parts) | self._stored

    def list_new(self, texts: Iterable[str]) -> list[str]:
        """Return the texts without a vector in the store, each once."""
        return [text for text in dict.fromkeys(texts) if _hash(text) not in self._stored]

    def complete(self, part: Sequence[str], encode: Callable[[Sequence[str]], Arrays]) -> Arrays:
        """Return the vectors of a missing shard: copies where the store has them, and the rest encoded."""
        hashes = [_hash(text) for text in part]
        key = self._key(part)
        self._store.arrays(
            Key.of(SHARD_TEXTS, __name__, encoder=self._encoder, shard=key.digest),
            lambda: {"hashes": np.frombuffer(b"".join(hashes), dtype=_HASH)},
        )
        copied = self._copy(hashes, key)
        if not copied:
            return encode(part)
        if new := [row for row in range(len(part)) if row not in copied]:
            copied |= dict(zip(new, encode([part[row] for row in new])["vectors"], strict=True))
        return {"vectors": np.stack([copied[row] for row in range(len(part))])}

    def _copy(self, hashes: Sequence[bytes], shard: Key) -> dict[int, NDArray[np.float32]]:
        """Return the vectors of other shards, by row of this one."""
        wanted: dict[tuple[Key, int], list[tuple[int, int]]] = defaultdict(list)
        for row, name in enumerate(hashes):
            if (place := self._places.get(name)) and place[0].digest != shard.digest:
                wanted[place[:2]].append((row, place[2]))
        copied: dict[int, NDArray[np.float32]] = {}
        for (key, size), rows in wanted.items():
            arrays = self._store.borrow(key.with_check(check_rows, size, ("vectors",)), len(rows) / size)
            if arrays is not None:
                copied |= {row: arrays["vectors"][there] for row, there in rows}
        return copied

    def _find_duplicates(self, parts: Sequence[Sequence[str]]) -> dict[bytes, tuple[Key, int, int]]:
        """Return the first place of each text that occurs several times."""
        seen: set[str] = set()
        repeated = {text for part in parts for text in part if text in seen or seen.add(text)}  # type: ignore[func-returns-value]
        places: dict[bytes, tuple[Key, int, int]] = {}
        for part in parts:
            if not repeated.isdisjoint(part):
                key = self._key(part)
                for row, text in enumerate(part):
                    if text in repeated:
                        places.setdefault(_hash(text), (key, len(part), row))
        return places

    def _find_stored(self, parts: Sequence[Sequence[str]]) -> dict[bytes, tuple[Key, int, int]]:
        """Return the places of texts in the store."""
        kind = self._key(()).kind
        keys = self._store.list_keys(kind, SHARD_TEXTS)
        shards = {key.digest: key for key in keys if key.kind == kind}
        wanted: set[bytes] = set()
        places: dict[bytes, tuple[Key, int, int]] = {}
        for key in keys:
            about = dict(key.parts)
            shard = shards.get(about.get("shard", "")) if about.get("encoder") == self._encoder else None
            if shard is None:
                continue
            wanted = wanted or {_hash(text) for part in parts for text in part}
            if (arrays := self._store.borrow(key.with_check(_check_hashes), 0)) is not None:
                hashes = arrays["hashes"].tolist()
                for row, name in enumerate(hashes):
                    if name in wanted:
                        places[name] = shard, len(hashes), row
        return places


def _check_hashes(arrays: Arrays) -> None:
    if arrays["hashes"].dtype != _HASH or arrays["hashes"].ndim != 1:
        raise ValueError(f"hashes are {arrays['hashes'].dtype} of shape {arrays['hashes'].shape}")


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH.itemsize).digest()
