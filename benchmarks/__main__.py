"""Measure every case, or those named, print a table, and write `results.json`: `python -m benchmarks [CASE ...]`.

Each case is written when it ends; earlier results of other cases stay in the file, with their commits and dates. The
table shows the change of each ratio against `reference.json` (`benchmarks.reference`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.agreement import AGREEMENT
from benchmarks.cases import CASES, DATA, PEER
from benchmarks.first_gate import FIRST_GATE
from benchmarks.learned_sparse import LEARNED_SPARSE
from benchmarks.load import LOAD
from benchmarks.measure import Figure
from benchmarks.million_vectors import MILLION_VECTORS
from benchmarks.precision import PRECISION
from benchmarks.reading import READING
from benchmarks.reference import REFERENCE, RESULTS, describe_changes, find_changes, keep_figures, read_figures
from benchmarks.scale import SCALE
from benchmarks.serving import SERVING
from benchmarks.sweeps import SWEEPS
from benchmarks.ten_million import TEN_MILLION
from benchmarks.traffic import TRAFFIC
from benchmarks.vector_files import VECTOR_FILES

EVERY = (
    *CASES,
    *SWEEPS,
    *SCALE,
    *SERVING,
    *LOAD,
    *READING,
    *AGREEMENT,
    *MILLION_VECTORS,
    *LEARNED_SPARSE,
    *PRECISION,
    *FIRST_GATE,
    *TEN_MILLION,
    *TRAFFIC,
    *VECTOR_FILES,
)


def choose_cases(names: Sequence[str]) -> list[Callable[[], list[Figure]]]:
    """Return the cases of these names, every case without names; raises `ValueError` for an unknown one."""
    known = [case.__name__ for case in EVERY]
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown case: {', '.join(unknown)}; the cases are {', '.join(known)}")
    return [case for case in EVERY if not names or case.__name__ in names]


def main(names: Sequence[str]) -> int:
    """Return 1 if a bar is not met, 2 if nothing can be measured."""
    try:
        chosen = choose_cases(names)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for folder in (DATA, PEER):
        if not folder.is_dir():
            print(
                f"error: {folder} is not there: RETRIEVAL_DATA and BENCH_PEER say where else to look", file=sys.stderr
            )
            return 2
    figures: list[Figure] = []
    for case in chosen:
        print(f"{case.__name__}: {(case.__doc__ or '').strip().partition(chr(10))[0]}", flush=True)
        measured = case()
        figures += measured
        keep_figures(measured, RESULTS)
    reference = read_figures(REFERENCE)
    changes = find_changes(figures, reference)
    table = Table("what", "ours", "peer", "ratio", "bar", "met", "change")
    for f in figures:
        values = (f"{f.ours:.4g} {f.unit}", f"{f.peer:.4g} {f.unit}", f"{f.ratio:.3f}", f"{f.bar:.3f}")
        change = f"{changes[f.name] - 1:+.1%}" if f.name in changes else "new"
        table.add_row(f.name, *values, "yes" if f.met else "NO", change)
    console = Console()
    console.print(table)
    console.print(describe_changes(changes, reference))
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
