"""BM25 over ten million generated documents of 60 words, as a command; and a million of them next to tantivy.

BENCH_SCALE=0.05 runs both at a twentieth of the size and scales the limits of time and memory. Both sides of the second
case search on one thread, for the same terms, with the same k1 and b; our side receives all queries at once and
analyses them. The searches run in a process of their own: `python -m benchmarks.ten_million FOLDER`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from benchmarks.cases import RUNNER, folder_of_runs
from benchmarks.corpora import Synthetic, write
from benchmarks.measure import Figure, medians, spend

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
SECONDS, MEBIBYTES = 8 * 60, 24 * 1024
DEPTHS, RUNS = (10, 100), 5
K1, B = 1.2, 0.75  # those of tantivy, which are fixed
SHARE = 1 / 3


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
    documents = round(1_000_000 * SCALE)
    with folder_of_runs() as folder:
        _write(documents, folder)
        _report("indexing and searching on both sides")
        spend([sys.executable, "-m", "benchmarks.ten_million", str(folder / "documents")], folder)
        took = orjson.loads((folder / "said.txt").read_bytes())
    _report(
        ", ".join(f"depth {depth}: {of['ours'] / of['tantivy']:.2f} of tantivy's time" for depth, of in took.items())
    )
    return [
        Figure(f"searching {documents:,} documents to depth {depth}", "s a query", of["ours"], of["tantivy"], SHARE)
        for depth, of in took.items()
    ]


TEN_MILLION = (ten_million, million_tantivy)


def _write(documents: int, folder: Path) -> None:
    _report(f"writing {documents:,} documents")
    write(Synthetic(documents), folder / "documents")


def _report(step: str) -> None:
    """Print what happens now, with the time: at full size, a step takes minutes."""
    print(f"{time.strftime('%H:%M:%S')} {step}", flush=True)


def compare_searches(data: Path) -> dict[int, dict[str, float]]:
    """Return the seconds per query of each side, by depth; both search in turn."""
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
    theirs = Tantivy(analyzer.tokens(text) for text in texts)
    parsed = [theirs.parse(analyzer.tokens(query)) for query in queries]
    took = {}
    for depth in DEPTHS:
        sides = {
            "ours": lambda depth=depth: ours.search(queries, depth),
            "tantivy": lambda depth=depth: theirs.search(parsed, depth),
        }
        for side in sides.values():
            side()  # compiles, and reads data that is read only once
        seconds = medians({name: partial(measure_seconds, side) for name, side in sides.items()}, RUNS)
        took[depth] = {name: value / len(queries) for name, value in seconds.items()}
    return took


class Tantivy:
    """An index of terms in one segment, searched by one thread. Queries are parsed before the clock starts."""

    def __init__(self, documents: Iterable[list[str]]) -> None:
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

    def parse(self, terms: list[str]) -> Any:  # noqa: ANN401 (tantivy has no types)
        """Return a query for any of the terms; a repeated term counts twice, as in BM25."""
        query, occur = self._tantivy.Query, self._tantivy.Occur.Should
        return query.boolean_query([(occur, query.term_query(self._schema, "text", t, "freq")) for t in terms])

    def search(self, queries: list[Any], depth: int) -> None:
        """Search for each query, without counting the matches."""
        for query in queries:
            self._searcher.search(query, depth, count=False)


def measure_seconds(work: Any) -> float:  # noqa: ANN401 (a callable)
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(compare_searches(Path(sys.argv[1])), option=orjson.OPT_NON_STR_KEYS))
