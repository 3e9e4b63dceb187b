"""The cases about many documents: the time and memory of counting and searching them.

The peers are bm25s, with the same English stemming and stop words as here, and tantivy, with stemming only. Each
measurement runs in a process of its own (`python -m benchmarks.scale index|search ...`), which reads the documents and
compiles its code before the clock starts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from benchmarks.cases import DATA, PEER_RUNS, folder_of_runs
from benchmarks.corpora import Synthetic, write
from benchmarks.measure import Figure, medians, spend

DEPTH, RUNS, SEARCH_RUNS = 100, 7, 25


def indexing() -> list[Figure]:
    """Analyse and count medquad in English; the peers are bm25s, and tantivy, which stems."""
    with folder_of_runs() as folder:
        took, _ = _index("medquad", DATA / "medquad", folder, tuple(_INDEX), RUNS)
    return [Figure(f"indexing medquad, to {p}", "s", took["ours"], took[p], 1) for p in ("bm25s", "tantivy")]


def searching() -> list[Figure]:
    """Search scifact and medquad to depth 100, from the queries' text, on one thread and on all; the peer is bm25s."""
    with folder_of_runs() as folder:
        return [figure for name in ("scifact", "medquad") for figure in _search(name, DATA / name, folder)]


def million() -> list[Figure]:
    """Index and search a million invented documents of 60 words; the peer is bm25s."""
    name = "a million documents"
    with folder_of_runs() as folder:
        write(Synthetic(1_000_000), folder / "million")
        took, peaks = _index(name, folder / "million", folder, ("ours", "bm25s"), PEER_RUNS)
        return [
            Figure(f"indexing {name}", "s", took["ours"], took["bm25s"], 1 / 2),
            Figure("peak memory of that", "MiB", peaks["ours"], peaks["bm25s"], 1 / 2),
            *_search(name, folder / "million", folder),
        ]


SCALE = (indexing, searching, million)


def _index(
    name: str, data: Path, folder: Path, sides: Sequence[str], runs: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median seconds of each side, and its peak memory in MiB."""
    peaks = dict.fromkeys(sides, 0.0)

    def index(side: str) -> float:
        spent = spend([*_HERE, "index", side, str(data)], folder)
        peaks[side] = max(peaks[side], spent.mebibytes)
        return float(orjson.loads((folder / "said.txt").read_bytes()))

    return medians({side: partial(index, side) for side in sides}, runs), peaks


def _search(name: str, data: Path, folder: Path) -> list[Figure]:
    spend([*_HERE, "search", str(data)], folder)
    took = orjson.loads((folder / "said.txt").read_bytes())
    return [
        Figure(f"searching {name}, threads: {threads}", "s a query", of["ours"], of["bm25s"], 1)
        for threads, of in took.items()
    ]


_HERE = (sys.executable, "-m", "benchmarks.scale")


def _ours(ids: Sequence[str], texts: Sequence[str]) -> Any:  # noqa: ANN401 (one of three libraries' indexes)
    from retrievers.base import Corpus
    from retrievers.lexical.bm25 import BM25
    from retrievers.store import MemoryStore

    return BM25().index(Corpus(ids, texts), MemoryStore())


def _bm25s(ids: Sequence[str], texts: Sequence[str]) -> Any:  # noqa: ANN401 (see above)
    import bm25s
    import Stemmer

    tokens = bm25s.tokenize(texts, stemmer=Stemmer.Stemmer("english"), stopwords="en", show_progress=False)
    index = bm25s.BM25(k1=0.9, b=0.4, backend="numba")
    index.index(tokens, show_progress=False)
    return index


def _tantivy(ids: Sequence[str], texts: Sequence[str]) -> Any:  # noqa: ANN401 (see above)
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem", index_option="freq").build()
    index = tantivy.Index(schema)
    writer = index.writer()
    for text in texts:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    return index


_INDEX: dict[str, Callable[[Sequence[str], Sequence[str]], Any]] = {
    "ours": _ours,
    "bm25s": _bm25s,
    "tantivy": _tantivy,
}


def _seconds_to_index(side: str, data: Path) -> float:
    _INDEX[side](["a", "b"], ["a word", "another"])  # compiles
    ids, texts = _documents(data)
    return _seconds(lambda: _INDEX[side](ids, texts))


def _seconds_to_search(data: Path) -> dict[int, dict[str, float]]:
    """Return the seconds per query of each side, by number of threads; both search in turn."""
    import bm25s
    import Stemmer
    from numba import config

    ids, texts = _documents(data)
    queries = [orjson.loads(line)["text"] for line in (data / "queries.jsonl").read_bytes().splitlines()]
    ours, theirs, stemmer = _ours(ids, texts), _bm25s(ids, texts), Stemmer.Stemmer("english")

    def peer() -> None:
        tokens = bm25s.tokenize(queries, stemmer=stemmer, stopwords="en", return_ids=False, show_progress=False)
        theirs.retrieve(tokens, k=DEPTH, show_progress=False, n_threads=config.NUMBA_NUM_THREADS)

    sides = {"ours": lambda: ours.search(queries, DEPTH), "bm25s": peer}
    took = {}
    for threads in sorted({1, config.NUMBA_NUM_THREADS}):
        config.NUMBA_NUM_THREADS = threads
        for side in sides.values():
            side()  # compiles
        seconds = medians({name: partial(_seconds, side) for name, side in sides.items()}, SEARCH_RUNS)
        took[threads] = {name: value / len(queries) for name, value in seconds.items()}
    return took


def _documents(data: Path) -> tuple[list[str], list[str]]:
    ids, texts = [], []
    with (data / "corpus.jsonl").open("rb") as lines:
        for row in map(orjson.loads, lines):
            ids.append(row["_id"])
            texts.append(f"{row['title']} {row['text']}".strip())
    return ids, texts


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    task, *side, folder = sys.argv[1:]
    measured = _seconds_to_index(side[0], Path(folder)) if task == "index" else _seconds_to_search(Path(folder))
    sys.stdout.buffer.write(orjson.dumps(measured, option=orjson.OPT_NON_STR_KEYS))
