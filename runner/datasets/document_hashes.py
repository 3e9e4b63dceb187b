"""Count the documents that changed between two corpora from a hash of each, so that their texts need not be kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus

DocumentHashes = NDArray[np.uint64]
"""A number for each document, ascending: the hash of its id in the upper 32 bits, that of its texts in the lower."""

MOST_DOCUMENTS = 100_000
"""The largest corpus whose hashes a result records, 8 bytes each: those of a larger one could outweigh its rankings."""

_ID_BITS = np.uint64(32)


@dataclass(frozen=True)
class DocumentChanges:
    """How many documents have other texts under the same id, are new, or are gone."""

    changed: int
    new: int
    gone: int


def hash_documents(documents: Corpus) -> DocumentHashes | None:
    """Return the hashes of documents; None for no documents, or more than `MOST_DOCUMENTS`.

    Texts are the title, the text and the fields to search beside them, as in the fingerprint of the corpus. CRC-32 is
    enough to count changes: two texts share a hash with a probability of 2^-32.
    """
    if not 0 < len(documents) <= MOST_DOCUMENTS:
        return None
    others = [documents.read_field(name) for name in documents.search_fields]
    texts = zip(*((documents.titles,) if documents.titles else ()), documents.texts, *others, strict=True)
    rows = [
        crc32(identifier.encode("utf-8", "surrogatepass")) << 32
        | crc32("\0".join(row).encode("utf-8", "surrogatepass"))
        for identifier, row in zip(documents.ids, texts, strict=True)
    ]
    return np.sort(np.array(rows, dtype=np.uint64))


def check_document_hashes(hashes: NDArray[Any], documents: int) -> None:
    """Raise `ValueError` for hashes, from a file, that cannot be those of this number of documents."""
    if hashes.dtype != np.uint64 or hashes.shape != (documents,) or (hashes[1:] < hashes[:-1]).any():
        raise ValueError(f"expected the hashes of {documents:,} documents in order")


def count_changes(before: DocumentHashes, now: DocumentHashes) -> DocumentChanges:
    """Count the documents that differ; documents whose ids share a hash are told apart by their texts."""
    old, new = (np.setdiff1d(a, b) >> _ID_BITS for a, b in ((before, now), (now, before)))
    changed = len(np.intersect1d(old, new))
    return DocumentChanges(changed, len(new) - changed, len(old) - changed)
