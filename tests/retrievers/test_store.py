"""Keys name all that a thing depends on."""

from __future__ import annotations

from retrievers.store import Key, fingerprint
from retrievers.work import WorkKind

K = WorkKind("k", "index")
L = WorkKind("l", "index")


def test_fingerprints_keep_texts_apart() -> None:
    assert fingerprint("a", "bc") != fingerprint("ab", "c") != fingerprint("abc")


def test_a_key_names_every_part_and_the_code() -> None:
    keys = {
        Key.of(K, "retrievers.search", a=1).digest,
        Key.of(K, "retrievers.search", a=2).digest,
        Key.of(K, "retrievers.search", b=1).digest,
        Key.of(K, "retrievers.lexical.bm25", a=1).digest,
        Key.of(L, "retrievers.search", a=1).digest,
    }
    assert len(keys) == 5
