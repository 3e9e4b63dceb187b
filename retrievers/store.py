"""Where what is costly to rebuild is kept, under a key that names only what it depends on: content, settings, code.

How a store keeps things, and what they are, is not known here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from retrievers.code import hash_code

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Key:
    """The name of a thing in a store: a kind for people, a digest of what the thing depends on, and those parts."""

    kind: str
    digest: str
    parts: tuple[tuple[str, str], ...]

    @staticmethod
    def of(kind: str, made_by: Iterable[str], **parts: object) -> Key:
        """Make a key from what the thing depends on; `made_by` are the modules whose source is part of it."""
        named = tuple(sorted((name, str(value)) for name, value in parts.items()))
        sources = (hash_code(module) for module in sorted(made_by))
        return Key(kind, fingerprint(kind, *sources, *(f"{n}\0{v}" for n, v in named)), named)


def fingerprint(*texts: str) -> str:
    """Return a hash of texts in their order, as 32 hexadecimal digits."""
    return fingerprint_texts(texts)


def fingerprint_texts(texts: Iterable[str]) -> str:
    """Return the same hash of texts that need not be there all at once."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


class Store(Protocol):
    """Where a retriever keeps what is costly to rebuild."""

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Return the named arrays kept under a key, building them if need be. They may outlive the process."""
        ...

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Return the live object kept under a key, making it if need be. It lives as long as the store."""
        ...


class MemoryStore:
    """A store that keeps everything in memory and never forgets."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Return the arrays kept under a key, building them once."""
        return self.share(key, build)

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Return the object kept under a key, making it once."""
        if key.digest not in self._kept:
            self._kept[key.digest] = make()
        kept: T = self._kept[key.digest]
        return kept


class NoStore:
    """A store that keeps nothing: every call does its work again, as a first-time query would."""

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Build the arrays."""
        return build()

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Make the object."""
        return make()
