"""What damage to a large store does: `python -m benchmarks.corruption [--trials 50] [--megabytes 170] [--seed 0]`.

A store gets invented postings of that size. In each trial its files are damaged at random (flipped bits; zeroed,
overwritten and swapped pages; truncation; growth); half of the trials restore the modification time. Then another
process searches for 1,000 queries. Its rankings have to equal those of the intact postings, whatever was damaged. The
script prints one line per trial, then a summary, and returns 1 if a ranking was wrong or a process crashed.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import pickle
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.lexical import postings
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.postings import _count
from retrievers.store import MemoryStore
from runner.store import disk

DOCUMENTS, QUERIES, TERMS_A_QUERY, DEPTH = 200_000, 1_000, 5, 100
PAGE = 4096
LARGEST = "documents.npy"
SETTLED_S = 2.5
"""The age at which the files of an entry can be sealed, plus a margin."""


@dataclass(frozen=True)
class Search:
    """The report of a process: how many rankings were wrong, whether postings were counted again, and why.

    `first_s` and `again_s` are the seconds that a new store takes to open the intact postings: the first verifies them,
    and the second finds them verified.
    """

    wrong: int
    rebuilt: bool
    lines: str
    first_s: float
    again_s: float


def write_columns(folder: Path, entries: int, seed: int) -> None:
    """Write postings with about `entries` entries; the frequency of a term falls with the root of its rank."""
    rng = np.random.default_rng(seed)
    frequencies = np.minimum((0.5 * DOCUMENTS / np.arange(1, 500_000) ** 0.5).astype(np.int64) + 1, DOCUMENTS // 2)
    frequencies = frequencies[: max(int(np.searchsorted(np.cumsum(frequencies), entries)), 100)]
    offsets = np.concatenate([[0], np.cumsum(frequencies)])
    stride = np.repeat(DOCUMENTS // frequencies, frequencies)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], frequencies)
    documents = (within * stride + (rng.random(offsets[-1]) * stride).astype(np.int64)).astype(np.int32)
    counts = rng.integers(1, 6, offsets[-1]).astype(np.uint8)
    words = "\n".join(f"w{term}" for term in range(len(frequencies)))
    columns = {
        "vocabulary": np.frombuffer(words.encode(), dtype=np.uint8),
        "offsets": offsets.astype(np.int64),
        "documents": documents,
        "counts": counts,
        "lengths": np.bincount(documents, counts, DOCUMENTS).astype(np.int32),
    }
    folder.mkdir(parents=True)
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column)


class World:
    """A corpus without texts, whose postings are invented, and the processes that search it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        self.corpus = Corpus([f"d{n}" for n in range(DOCUMENTS)], [""] * DOCUMENTS)
        n_terms = len(np.load(folder / "intact" / "offsets.npy")) - 1
        terms = (n_terms ** np.random.default_rng(1).random((QUERIES, TERMS_A_QUERY))).astype(int) - 1
        self.queries = [" ".join(f"w{term}" for term in row) for row in terms.tolist()]
        self.rebuilt = False
        BM25().index(Corpus(["id"], ["w1"]), MemoryStore()).search(["w1"], DEPTH)  # compiles
        _, _ = self.corpus.key_parts, self.corpus.tie_order
        postings._count = self._count
        disk.WORTH_KEEPING_S = 0

    def _count(self, corpus: Corpus, analyzer: Analyzer) -> Mapping[str, NDArray[Any]]:
        """Return the invented columns in place of counting the corpus's terms."""
        if corpus is not self.corpus:
            return _count(corpus, analyzer)
        self.rebuilt = True
        columns = {file.stem: np.load(file) for file in (self.folder / "intact").glob("*.npy")}
        for column in columns.values():
            column.flags.writeable = False
        return columns

    def entry(self) -> Path:
        """Return the folder of the postings in the store."""
        (file,) = (self.cache / "postings").glob(f"*/{LARGEST}")
        return file.parent

    def run(self) -> Search | int:
        """Search in another process; return its exit code if it crashed."""
        report = self.folder / "report.pickle"
        if process := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            return pickle.loads(report.read_bytes()) if code == 0 else code
        try:
            report.write_bytes(pickle.dumps(self._search()))
        except Exception:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def _search(self) -> Search:
        lines = io.StringIO()
        logging.basicConfig(stream=lines, format="%(message)s")
        searcher = BM25().index(self.corpus, disk.DiskStore(self.cache))
        found = searcher.search(self.queries, DEPTH)
        if not (expected := self.folder / "expected.npz").exists():
            np.savez(expected, documents=found.documents, scores=found.scores)
        with np.load(expected) as right:
            same = (found.documents == right["documents"]) & (found.scores == right["scores"])
        wrong, rebuilt = int((~same.all(axis=1)).sum()), self.rebuilt
        time.sleep(max(SETTLED_S - (time.time() - (self.entry() / LARGEST).stat().st_ctime), 0))
        first_s, again_s = self._open(), self._open()
        return Search(wrong, rebuilt, lines.getvalue().strip(), first_s, again_s)

    def _open(self) -> float:
        """Return the seconds that a new store takes to open the postings."""
        start = time.perf_counter()
        postings.load_postings(self.corpus, BM25().analyzer, disk.DiskStore(self.cache))
        return time.perf_counter() - start


def flip_bits(content: NDArray[np.uint8], rng: np.random.Generator) -> None:
    """Flip up to a million bits anywhere, but no more than there are bytes."""
    places = rng.integers(0, len(content), int(10 ** rng.uniform(0, min(6, np.log10(len(content))))))
    np.bitwise_xor.at(content, places, (1 << rng.integers(0, 8, len(places))).astype(np.uint8))


def flip_low_bits(content: NDArray[np.uint8], rng: np.random.Generator) -> None:
    """Flip the lowest bit of 400,000 32-bit numbers, or of all if there are fewer."""
    n_numbers = max((len(content) - 128) // 4, 1)
    np.bitwise_xor.at(content, 128 + 4 * rng.integers(0, n_numbers, min(400_000, n_numbers)), np.uint8(1))


def zero_pages(content: NDArray[np.uint8], rng: np.random.Generator) -> None:
    """Zero some pages, as after a loss of power."""
    for _ in range(int(10 ** rng.uniform(0, 3))):
        begin = int(rng.integers(0, len(content))) // PAGE * PAGE
        content[begin : begin + PAGE] = 0


def overwrite_pages(content: NDArray[np.uint8], rng: np.random.Generator) -> None:
    """Fill some pages with random bytes."""
    for _ in range(int(10 ** rng.uniform(0, 3))):
        page = content[int(rng.integers(0, len(content))) // PAGE * PAGE :][:PAGE]
        page[:] = rng.integers(0, 256, len(page))


def swap_pages(content: NDArray[np.uint8], rng: np.random.Generator) -> None:
    """Reverse the halves of a span."""
    length = int(rng.integers(1, max(len(content) // 2, 2)))
    begin = int(rng.integers(0, len(content) - length + 1))
    content[begin : begin + length] = np.roll(content[begin : begin + length], length // 2)


WAYS: tuple[Callable[[NDArray[np.uint8], np.random.Generator], None], ...] = (
    flip_bits,
    flip_low_bits,
    zero_pages,
    overwrite_pages,
    swap_pages,
)


def damage(entry: Path, rng: np.random.Generator) -> str:
    """Damage a file of an entry in place, the largest in two of three trials; return a description of the damage."""
    names = sorted(file.name for file in entry.iterdir())
    file = entry / (LARGEST if rng.random() < 2 / 3 else names[rng.integers(len(names))])
    before = file.stat()
    way = rng.integers(len(WAYS) + 2)
    if way < len(WAYS):
        content = np.fromfile(file, dtype=np.uint8)
        WAYS[way](content, rng)
        with file.open("r+b") as opened:
            opened.write(content.tobytes())
        done = WAYS[way].__name__.replace("_", " ")
    else:
        size = before.st_size - int(rng.integers(1, before.st_size)) if way == len(WAYS) else before.st_size + PAGE
        os.truncate(file, size)
        done = f"{'truncate' if size < before.st_size else 'grow'} to {size:,} bytes"
    if restored := rng.random() < 0.5:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"{file.name}: {done}{', modification time restored' if restored else ''}"


def trials(folder: Path, n: int, megabytes: float, seed: int) -> int:
    """Damage a store n times; return 1 if a ranking was wrong or a process crashed."""
    write_columns(folder / "intact", int(megabytes * 1e6 / 4), seed)
    world, rng = World(folder), np.random.default_rng(seed)
    last, crashes, wrong, discarded, warm = world.run(), 0, 0, 0, []
    for trial in range(n):
        if isinstance(last, int) or last.wrong or not last.rebuilt:  # the store may still be damaged
            shutil.rmtree(world.cache)
            last = world.run()
        if isinstance(last, Search):
            warm.append((last.first_s, last.again_s))
        done = damage(world.entry(), rng)
        last = world.run()
        if isinstance(last, int):
            crashes, outcome = crashes + 1, f"exit code {last}"
        else:
            wrong, discarded = wrong + last.wrong, discarded + last.rebuilt
            rebuilt = f"rebuilt ({last.lines.rpartition(': ')[2]})" if last.rebuilt else "not rebuilt"
            outcome = f"{last.wrong} rankings of {QUERIES} wrong, {rebuilt}"
        print(f"{trial + 1:3}  {done}: {outcome}", flush=True)
    print(f"{n} trials: {crashes} crashes, {wrong} wrong rankings, {discarded} entries discarded and rebuilt")
    first_s, again_s = (median(column) for column in zip(*warm, strict=True))
    print(f"opening the postings, median: {first_s:.3f} s when they are verified, {again_s:.3f} s afterwards")
    return 1 if crashes or wrong else 0


def main() -> int:
    """Run the trials."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--megabytes", type=float, default=170)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return trials(Path(folder), arguments.trials, arguments.megabytes, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
