"""BM25 over ten million generated documents of 60 words, as a command; and a million of them next to tantivy and PISA.

BENCH_SCALE=0.05 runs every case at a twentieth of the size and scales the limits of time and memory. Both sides of a
comparison search on one thread, for the same terms, with the same k1 and b; our side receives all queries at once and
analyses them. The searches run in a process of their own: `python -m benchmarks.ten_million FOLDER PEER`. PISA needs an
environment of its own, with pyterrier-pisa; BENCH_PISA is its Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from benchmarks.cases import RUNNER, folder_of_runs
from benchmarks.corpora import Synthetic, write
from benchmarks.measure import Figure, medians, spend

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
SECONDS, MEBIBYTES = 8 * 60, 24 * 1024
RUNS = 5
K1, B = 1.2, 0.75  # those of tantivy, which are fixed
PISA = os.environ.get("BENCH_PISA", "")
ALGORITHMS = ("block_max_wand", "block_max_maxscore", "maxscore")
"""The algorithms of PISA, of which the fastest counts."""

CHECKED, AGREEMENT = 10, 0.95
"""The first hits that are compared with those of PISA, and the least share of them that both have: ties differ."""


def ten_million() -> list[Figure]:
    """Run BM25 over ten million generated documents: read, index, search and record; at most 8 minutes and 24 GiB."""
    documents = round(10_000_000 * SCALE)
    with folder_of_runs() as folder:
        _write(documents, folder)
        _report("running BM25")
        command = [*RUNNER, "retriever=bm25", "dataset=beir", f"dataset.path={folder / 'documents'}"]
        spent = spend(command, folder)
    _report(f"the run took {spent.seconds:.0f} s and {spent.mebibytes:,.0f} MiB")
    name = f"a BM25 run, {documents:,} documents"
    return [
        Figure(name, "s", spent.seconds, SECONDS * SCALE, 1),
        Figure(f"peak memory of {name}", "MiB", spent.mebibytes, MEBIBYTES * SCALE, 1),
    ]


def million_tantivy() -> list[Figure]:
    """Search a million generated documents on one thread to depths 10 and 100; the peer is tantivy."""
    return _compare("tantivy", 1 / 3)


def million_pisa() -> list[Figure]:
    """Search a million generated documents on one thread to depths 10 and 1,000; the peer is PISA."""
    if not PISA:
        raise RuntimeError("needs PISA: BENCH_PISA=PYTHON names the Python of an environment with pyterrier-pisa")
    return _compare("PISA", 1)


TEN_MILLION = (ten_million, million_tantivy, million_pisa)


def _compare(peer: str, bar: float) -> list[Figure]:
    documents = round(1_000_000 * SCALE)
    with folder_of_runs() as folder:
        _write(documents, folder)
        _report("indexing and searching on both sides")
        spend([sys.executable, "-m", "benchmarks.ten_million", str(folder / "documents"), peer], folder)
        took = orjson.loads((folder / "said.txt").read_bytes().splitlines()[-1])
    for depth, of in took.items():
        sides = ", ".join(f"{name} {seconds * 1e6:.0f}" for name, seconds in of.items())
        _report(f"us a query to depth {depth}: {sides}")
    return [
        Figure(
            f"searching {documents:,} documents to depth {depth}, compared with {peer}",
            "s a query",
            of.pop("ours"),
            min(of.values()),
            bar,
        )
        for depth, of in took.items()
    ]


def _write(documents: int, folder: Path) -> None:
    _report(f"writing {documents:,} documents")
    write(Synthetic(documents), folder / "documents")


def _report(step: str) -> None:
    """Print what happens now, with the time: at full size, a step takes minutes."""
    print(f"{time.strftime('%H:%M:%S')} {step}", flush=True)


def compare_searches(data: Path, peer: str) -> dict[int, dict[str, float]]:
    """Return the seconds per query of each side, by depth; the sides search in turn."""
    from numba import config

    from retrievers.base import Corpus
    from retrievers.lexical.analyzer import Analyzer
    from retrievers.lexical.bm25 import BM25
    from retrievers.store import MemoryStore

    config.NUMBA_NUM_THREADS = 1
    rows = [orjson.loads(line) for line in (data / "corpus.jsonl").read_bytes().splitlines()]
    queries = [orjson.loads(line)["text"] for line in (data / "queries.jsonl").read_bytes().splitlines()]
    analyzer, texts = Analyzer(), [row["text"] for row in rows]
    ours = BM25(analyzer, k1=K1, b=B).index(Corpus([row["_id"] for row in rows], texts), MemoryStore())
    terms, searched = (analyzer.tokens(text) for text in texts), [analyzer.tokens(query) for query in queries]
    theirs = Tantivy(terms, searched) if peer == "tantivy" else Pisa(terms, searched, data)
    if isinstance(theirs, Pisa):
        theirs.check(ours.search(queries, CHECKED).documents.tolist())
    took = {}
    for depth in theirs.depths:
        sides: dict[str, Callable[[], float]] = {
            "ours": lambda depth=depth: measure_seconds(lambda: ours.search(queries, depth)),
            **{name: partial(theirs.search, name, depth) for name in theirs.names},
        }
        for side in sides.values():
            side()  # compiles, and reads data that is read only once
        took[depth] = {name: value / len(queries) for name, value in medians(sides, RUNS).items()}
    return took


class Tantivy:
    """An index of terms in one segment, searched by one thread. Queries are parsed before the clock starts."""

    names, depths = ("tantivy",), (10, 100)

    def __init__(self, documents: Iterable[list[str]], queries: list[list[str]]) -> None:
        import tantivy

        self._tantivy: Any = tantivy
        analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._schema = (
            tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="terms", index_option="freq").build()
        )
        index = tantivy.Index(self._schema)
        index.register_tokenizer("terms", analyzer)
        writer = index.writer(heap_size=2_000_000_000, num_threads=1)
        for terms in documents:
            writer.add_document(tantivy.Document(text=" ".join(terms)))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher = index.searcher()
        self._queries = [self._parse(terms) for terms in queries]

    def _parse(self, terms: list[str]) -> Any:  # noqa: ANN401 (tantivy has no types)
        """Return a query for any of the terms; a repeated term counts twice, as in BM25."""
        query, occur = self._tantivy.Query, self._tantivy.Occur.Should
        return query.boolean_query([(occur, query.term_query(self._schema, "text", t, "freq")) for t in terms])

    def search(self, name: str, depth: int) -> float:
        """Return the seconds of a search for each query, without counting the matches."""
        start = time.perf_counter()
        for query in self._queries:
            self._searcher.search(query, depth, count=False)
        return time.perf_counter() - start


class Pisa:
    """PISA in a process of its own, `benchmarks/pisa_alone.py`, which answers line by line."""

    names, depths = ALGORITHMS, (10, 1000)

    def __init__(self, documents: Iterable[list[str]], queries: list[list[str]], folder: Path) -> None:
        for name, rows in (("documents", documents), ("queries", queries)):
            with (folder / f"{name}.txt").open("w", encoding="utf-8") as file:
                file.writelines(" ".join(row) + "\n" for row in rows)
        command = [PISA, str(Path(__file__).with_name("pisa_alone.py")), str(folder), str(K1), str(B)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._read()

    def search(self, name: str, depth: int) -> float:
        """Return the seconds of a search for each query by an algorithm."""
        return float(self._ask(name, depth)["seconds"])

    def check(self, documents: list[list[int]]) -> None:
        """Raise `RuntimeError` if too few of our first hits are among theirs: the sides would not do the same."""
        rows = zip(documents, self._ask(ALGORITHMS[0], CHECKED)["documents"], strict=True)
        shared = sum(len({*ours} & {*theirs}) for ours, theirs in rows) / sum(map(len, documents))
        if shared < AGREEMENT:
            raise RuntimeError(f"only {shared:.0%} of our first {CHECKED} hits are PISA's")

    def _ask(self, name: str, depth: int) -> Any:  # noqa: ANN401 (an answer)
        assert self._process.stdin is not None
        print(name, depth, file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> Any:  # noqa: ANN401 (an answer)
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("PISA ended")
        return orjson.loads(line)


def measure_seconds(work: Any) -> float:  # noqa: ANN401 (a callable)
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.stdout.buffer.write(
        orjson.dumps(compare_searches(Path(sys.argv[1]), sys.argv[2]), option=orjson.OPT_NON_STR_KEYS)
    )
