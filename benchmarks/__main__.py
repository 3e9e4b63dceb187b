"""Measure every case, or those named, print a table, and write `results.json`: `python -m benchmarks [CASE ...]`.

Each case is written when it ends; earlier results of other cases stay in the file, with their dates.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.agreement import AGREEMENT
from benchmarks.cases import CASES, DATA, PEER
from benchmarks.first_gate import FIRST_GATE
from benchmarks.learned_sparse import LEARNED_SPARSE
from benchmarks.measure import Figure
from benchmarks.million_vectors import MILLION_VECTORS
from benchmarks.reading import READING
from benchmarks.scale import SCALE
from benchmarks.serving import SERVING
from benchmarks.sweeps import SWEEPS
from benchmarks.ten_million import TEN_MILLION

RESULTS = Path(__file__).with_name("results.json")


def main() -> int:
    """Return 1 if a bar is not met."""
    for folder in (DATA, PEER):
        if not folder.is_dir():
            print(
                f"error: {folder} is not there: RETRIEVAL_DATA and BENCH_PEER say where else to look", file=sys.stderr
            )
            return 2
    every = (
        *CASES,
        *SWEEPS,
        *SCALE,
        *SERVING,
        *READING,
        *AGREEMENT,
        *MILLION_VECTORS,
        *LEARNED_SPARSE,
        *FIRST_GATE,
        *TEN_MILLION,
    )
    chosen = [case for case in every if not sys.argv[1:] or case.__name__ in sys.argv[1:]]
    figures: list[Figure] = []
    for case in chosen:
        print(f"{case.__name__}: {(case.__doc__ or '').strip().partition(chr(10))[0]}", flush=True)
        measured = case()
        figures += measured
        _keep(measured)
    table = Table("what", "ours", "peer", "ratio", "bar", "met")
    for f in figures:
        values = (f"{f.ours:.4g} {f.unit}", f"{f.peer:.4g} {f.unit}", f"{f.ratio:.3f}", f"{f.bar:.3f}")
        table.add_row(f.name, *values, "yes" if f.met else "NO")
    Console().print(table)
    return 0 if all(figure.met for figure in figures) else 1


def _keep(figures: Sequence[Figure]) -> None:
    kept = {figure["name"]: figure for figure in json.loads(RESULTS.read_text())} if RESULTS.is_file() else {}
    kept |= {figure.name: {**figure.to_dict(), "on": date.today().isoformat()} for figure in figures}
    RESULTS.write_text(json.dumps(list(kept.values()), indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
