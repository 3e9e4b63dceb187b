"""The interface of stores: caches of expensive work, under hashes of the content, settings and code it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from numpy.typing import NDArray

from retrievers.code import code_of
from retrievers.work import WorkKind

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]

ENGINE_BYTES = "engine_bytes"
"""The array, in an entry for work kept in a server, with the bytes that the server needs for it."""


@dataclass(frozen=True)
class Key:
    """The key of an entry: its kind, a digest of everything it depends on, and these parts in plain text.

    `check` raises an error, such as `ValueError`, for stored arrays that cannot be those of the key, such as vectors of
    another number of texts; a store builds these again.
    """

    kind: WorkKind
    digest: str
    parts: tuple[tuple[str, str], ...]
    check: Callable[[Arrays], object] | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def of(kind: WorkKind, made_by: object, **parts: object) -> Key:
        """Make a key from the parts that an entry depends on, and from the code that does the work.

        `made_by` is the name of the module that does it (`__name__`), or settings, or a tuple of these
        (`retrievers.code.code_of`). Raises `ValueError` if there is no code, such as a module of this program without
        `RESULTS_VERSION`.
        """
        named = tuple(sorted((name, str(value)) for name, value in parts.items()))
        code = code_of(*made_by) if isinstance(made_by, tuple) else code_of(made_by)
        if not code:
            raise ValueError(f"made_by={made_by!r}: names no code; pass settings, or a module with `RESULTS_VERSION`")
        digest = fingerprint(kind.name, fingerprint(*sorted(code.values())), *(f"{n}\0{v}" for n, v in named))
        return Key(kind, digest, named)

    def with_check(self, check: Callable[..., object], *expected: object) -> Key:
        """Return the key with a check of its arrays, which is called as `check(*expected, arrays)`."""
        return replace(self, check=partial(check, *expected))


def check_rows(n: int, names: Sequence[str], arrays: Arrays) -> None:
    """Raise `ValueError` unless each of these arrays has n rows, `LookupError` if one is missing."""
    for name in names:
        if arrays[name].shape[:1] != (n,):
            raise ValueError(f"{name} has the shape {arrays[name].shape} instead of {n:,} rows")


def fingerprint(*texts: str) -> str:
    """Return a hash of texts in their order, as 32 hexadecimal digits."""
    return fingerprint_texts(texts)


def fingerprint_texts(texts: Iterable[str]) -> str:
    """Return the hash of `fingerprint` for an iterable of texts."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def may_keep(value: object) -> bool:
    """Return whether a store may keep a value; its attribute `may_keep` is False if the work should be done again."""
    return bool(getattr(value, "may_keep", True))


class Store(Protocol):
    """A cache of expensive work. It returns a value that it may not keep (`may_keep`), and forgets it."""

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Return the named arrays stored under a key, building them if necessary. They may outlive the process."""
        ...

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Return the live object stored under a key, making it if necessary. It lives as long as the store."""
        ...


@runtime_checkable
class SharedStore(Store, Protocol):
    """A store that several processes share."""

    def arrays_unless_busy(self, key: Key, build: Callable[[], Arrays]) -> Arrays | None:
        """Return the arrays stored under a key, building them if necessary; None if another process is doing so."""
        ...

    def list_keys(self, *kinds: WorkKind) -> list[Key]:
        """Return the keys of the entries of some kinds; none if the store cannot be read."""
        ...

    def borrow(self, key: Key, share: float) -> Arrays | None:
        """Return the arrays of an entry for the work in progress, None without the entry.

        A share of the seconds that they took counts as time of this work, so that its cost does not depend on what was
        stored before.
        """
        ...


class MemoryStore:
    """A store that keeps everything in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Return the arrays stored under a key, built once."""
        return self.share(key, build)

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Return the object stored under a key, made once."""
        if key.digest in self._kept:
            kept: T = self._kept[key.digest]
            return kept
        value = make()
        if may_keep(value):
            self._kept[key.digest] = value
        return value


class NoStore:
    """A store that keeps nothing: every call does its work again."""

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Build the arrays."""
        return build()

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Make the object."""
        return make()
