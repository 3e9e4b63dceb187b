"""Compare a dataset with known benchmarks by hashes of their queries and gold documents, which contain no text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
import orjson

from retrievers.store import fingerprint
from runner.datasets.base import DatasetError
from runner.datasets.dataset import Dataset
from runner.features.inspect.finding import DOUBTFUL, Finding
from runner.features.inspect.texts import LEAST_WORDS, plain

VERSION = 1
"""The version of the file of hashes."""

_DIGITS = 16


@dataclass(frozen=True)
class BenchmarkHashes:
    """The hashes of a benchmark's queries and gold documents; texts of fewer than four words have none."""

    name: str
    queries: frozenset[str]
    documents: frozenset[str]

    def to_json(self) -> bytes:
        """Return the hashes in order, as JSON."""
        content = {"queries": sorted(self.queries), "documents": sorted(self.documents)}
        return orjson.dumps({"version": VERSION, "name": self.name, **content}, option=orjson.OPT_INDENT_2) + b"\n"


def hash_words(text: str) -> str:
    """Return a hash of the words of a text, whatever their case and punctuation; "" for fewer than four words."""
    words = plain(text)
    return fingerprint(words)[:_DIGITS] if words.count(" ") + 1 >= LEAST_WORDS else ""


def hash_dataset(dataset: Dataset) -> BenchmarkHashes:
    """Return the hashes of a dataset's queries and of its gold documents."""
    name = f"{dataset.name} ({dataset.split})" if dataset.split else dataset.name
    documents = frozenset(filter(None, _hash_gold(dataset)))
    return BenchmarkHashes(name, frozenset(filter(None, map(hash_words, dataset.queries.texts))), documents)


def load_hashes(path: Path) -> BenchmarkHashes:
    """Return the hashes in a file that `inspect` wrote; raises `DatasetError`."""
    try:
        content = orjson.loads(path.read_bytes())
        if content["version"] != VERSION:
            raise DatasetError(
                f"{path}: has version {content['version']}, but this program reads version {VERSION}; write it again "
                "with python -m runner inspect"
            )
        return BenchmarkHashes(str(content["name"]), frozenset(content["queries"]), frozenset(content["documents"]))
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, LookupError, TypeError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(
            f"{path}: expected the hashes of a benchmark ({error}); write them with python -m runner inspect"
        ) from None


def find_overlaps(dataset: Dataset, benchmarks: Sequence[BenchmarkHashes], examples: int) -> Iterator[Finding]:
    """Yield a finding for each benchmark that has some of the dataset's queries or gold documents."""
    hashes, gold = [hash_words(text) for text in dataset.queries.texts], _hash_gold(dataset)
    for benchmark in benchmarks:
        queries = [i for i, text in enumerate(hashes) if text in benchmark.queries]
        documents = sum(text in benchmark.documents for text in gold)
        if queries or documents:
            yield Finding(
                name=f"overlap with {benchmark.name}",
                gravity=DOUBTFUL,
                count=len(queries) or documents,
                of=len(hashes if queries else gold),
                text=f"{len(queries):,} of {len(hashes):,} queries and {documents:,} of {len(gold):,} gold documents "
                f"have the same words as some in {benchmark.name}.",
                remedy="A model that was trained or tuned on that benchmark has seen them; compare such models on the "
                "other queries.",
                examples=[
                    {"query": dataset.queries.ids[i], "text": dataset.queries.texts[i]} for i in queries[:examples]
                ],
            )


def _hash_gold(dataset: Dataset) -> list[str]:
    """Return the hash of each gold document that is in the corpus, "" for a short one."""
    gold = np.unique(dataset.judgments.documents[dataset.judgments.grades > 0])
    is_gold = np.zeros(len(dataset.documents), dtype=np.bool_)
    is_gold[gold[gold < len(dataset.documents)]] = True
    return [hash_words(text) for text in compress(dataset.documents.contents(), is_gold.tolist())]
