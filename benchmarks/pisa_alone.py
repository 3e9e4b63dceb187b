"""PISA alone, in an environment of its own (`pip install pyterrier-pisa`).

usage: python pisa_alone.py FOLDER K1 B. It indexes the lines of terms in FOLDER/documents.txt. Then, for each line of
standard input, an algorithm and a depth, it searches for the lines of FOLDER/queries.txt on one thread, and writes the
seconds and, for each query, the first ten documents. The engine is called without data frames; making the ids of
the hits is part of its time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np


def main(folder: Path, k1: float, b: float) -> None:
    """Index, and answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # PISA prints
    from pyterrier_pisa import PisaIndex, _pisathon

    index = PisaIndex(str(folder / "pisa"), stemmer="none", stops="none")
    with (folder / "documents.txt").open() as lines:
        documents = ({"docno": str(n), "toks": Counter(line.split())} for n, line in enumerate(lines))
        index.toks_indexer(scale=1).index(documents)
    search = index.bm25(k1=k1, b=b)
    lines = (folder / "queries.txt").read_text().splitlines()
    queries = [
        (n, {term: float(count) for term, count in Counter(line.split()).items()}) for n, line in enumerate(lines)
    ]
    print(0, file=answers, flush=True)
    for line in sys.stdin:
        algorithm, depth = line.split()
        size = len(queries) * int(depth)
        hits = {"result_qidxs": np.empty(size, dtype=np.int32), "result_docnos": np.empty(size, dtype=object)}
        hits |= {"result_ranks": np.empty(size, dtype=np.int32), "result_scores": np.empty(size, dtype=np.float32)}
        settings = {"k": int(depth), "threads": 1, "query_weighted": 1, "pretokenised": True}
        start = time.perf_counter()
        n = _pisathon.retrieve(search._ctxt, algorithm, queries, **settings, **hits)
        seconds = time.perf_counter() - start
        found: list[list[int]] = [[] for _ in queries]
        for query, document in zip(hits["result_qidxs"][:n].tolist(), hits["result_docnos"][:n].tolist(), strict=True):
            if len(found[query]) < 10:
                found[query].append(int(document))
        print(json.dumps({"seconds": seconds, "documents": found}), file=answers, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
