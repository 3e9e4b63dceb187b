"""Encode documents in shards, each stored under the key of its texts, and report the progress."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING
from zlib import crc32

from retrievers.encoders.reuse import StoredVectors
from retrievers.progress import REPORT_INTERVAL_S
from retrievers.store import Arrays, Key, SharedStore, Store, check_rows

if TYPE_CHECKING:
    from retrievers.encoders.base import Encode, Vectors

SHARD = 256
"""How many documents are embedded and stored together, on average: at least three quarters, at most twice as many."""

_STRIDE = (5**0.5 - 1) / 2
"""The share of the remaining shards to skip after a busy one: the golden ratio spreads any number of processes."""

TRIAL, LONG = 8, 128
"""How many documents are encoded to estimate the duration, and the fewest documents for which it is estimated."""

logger = logging.getLogger("retrievers")


def split_shards(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield texts in the shards in which they are embedded and stored.

    A shard ends where a checksum of the last characters of a text says so (content-defined chunking, as by rsync). So a
    text that is added, changed or removed changes its own shard, and rarely the next; with shards of a fixed size, all
    later ones would be embedded again.
    """
    documents, start = list(texts), 0
    while start < len(documents):
        last = min(start + 2 * SHARD, len(documents))
        end = next((n for n in range(start + SHARD * 3 // 4, last) if _ends_shard(documents[n - 1])), last)
        yield documents[start:end]
        start = end


def _ends_shard(text: str) -> bool:
    return crc32(text[-64:].encode("utf-8", "surrogatepass")) % (SHARD // 4) == 0


def embed_in_shards(
    texts: Iterable[str], encode: Encode, key: Callable[[Sequence[str]], Key], store: Store
) -> list[Vectors]:
    """Return the vectors of documents in shards, each stored under the key of its texts (`encode_in_shards`).

    Texts whose vectors a shared store has in other shards are not encoded (`retrievers.encoders.reuse`).
    """
    documents = list(texts)
    stored = None
    if isinstance(store, SharedStore):  # read for the first missing shard
        stored = cache(lambda: StoredVectors(list(split_shards(documents)), key, store))
    shards = encode_in_shards(documents, lambda part: {"vectors": encode(part)}, key, store, stored)
    return [shard["vectors"] for shard in shards]


def check_encoded(n: int, arrays: Arrays) -> None:
    """Raise `ValueError` or `LookupError` unless arrays encode n texts, as `vectors` or as rows between `offsets`."""
    if "offsets" in arrays:
        check_rows(n + 1, ("offsets",), arrays)
    check_rows(n, [name for name in ("seconds",) if name in arrays] + ["vectors"] * ("offsets" not in arrays), arrays)


def encode_in_shards(
    texts: Iterable[str],
    encode: Callable[[Sequence[str]], Arrays],
    key: Callable[[Sequence[str]], Key],
    store: Store,
    stored: Callable[[], StoredVectors] | None = None,
) -> list[Arrays]:
    """Return the arrays of an encoder for documents, in shards, each stored under the key of its texts.

    With `stored`, only texts without a vector in the store are encoded. A killed run resumes at its last shard, equal
    shards are embedded once, and processes that embed the same documents at the same time share the shards. The logger
    "retrievers" announces long work with an estimate before the first shard, then reports progress.
    """
    documents, done, fresh = list(texts), 0, 0
    began = reported = time.monotonic()

    def build(part: Sequence[str]) -> Arrays:
        nonlocal began, fresh
        if not fresh:
            new = documents[done:] if stored is None else stored().list_new(documents[done:])
            if len(new) > LONG:
                _announce(new, encode)
            began = time.monotonic()
        fresh += len(part)
        return encode(part) if stored is None else stored().complete(part, encode)

    parts = list(split_shards(documents))
    shards: dict[int, Arrays] = {}
    for position, arrays in _share_parts(parts, key, build, store):
        shards[position] = arrays
        now, done = time.monotonic(), done + len(parts[position])
        if fresh and done < len(documents) and now - reported >= REPORT_INTERVAL_S:
            reported, left = now, _format_duration((now - began) / fresh * (len(documents) - done))
            logger.info("embedded %s of %s documents, about %s left", f"{done:,}", f"{len(documents):,}", left)
    return [shards[position] for position in range(len(parts))]


def _share_parts(
    parts: Sequence[Sequence[str]],
    key: Callable[[Sequence[str]], Key],
    build: Callable[[Sequence[str]], Arrays],
    store: Store,
) -> Iterator[tuple[int, Arrays]]:
    """Yield the position and the arrays of each part; processes that encode the same parts at a time share the work.

    A part that another process is encoding is left for later, and the next part to try is far from it.
    """
    later: list[int] = []
    if isinstance(store, SharedStore):
        waiting = deque(range(len(parts)))
        while waiting:
            position = waiting.popleft()
            part = parts[position]
            arrays = store.arrays_unless_busy(key(part).with_check(check_encoded, len(part)), partial(build, part))
            if arrays is not None:
                yield position, arrays
            else:
                later.append(position)
                waiting.rotate(-round(len(waiting) * _STRIDE))
    else:
        later.extend(range(len(parts)))
    for position in later:
        part = parts[position]
        yield position, store.arrays(key(part).with_check(check_encoded, len(part)), partial(build, part))


def _announce(documents: Sequence[str], encode: Callable[[Sequence[str]], Arrays]) -> None:
    """Log how many documents will be embedded and how long that may take, estimated from a few of them."""
    logger.info("embedding %s documents", f"{len(documents):,}")
    encode(documents[:1])  # opens the model, which is not timed
    start = time.monotonic()
    trial = documents[:: len(documents) // TRIAL][:TRIAL]
    encode(trial)
    total = _format_duration((time.monotonic() - start) / len(trial) * len(documents))
    logger.info("embedding %s documents, about %s", f"{len(documents):,}", total)


def _format_duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
