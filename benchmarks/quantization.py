"""The recall of the ten nearest neighbours and the nDCG@10 that quantized vectors keep, next to Qdrant's engine.

    python -m benchmarks.quantization [COLLECTION ...]

The vectors are those of LSA with 128 dimensions. Every vector is compared, so that any loss is due to the codes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.cases import DATA
from retrievers.base import Retriever
from retrievers.encoders.lsa import LSAEncoder
from retrievers.engines.qdrant import Qdrant
from retrievers.lexical.analyzer import Analyzer
from retrievers.vectors.dense import Dense
from runner.datasets.beir import Beir
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore

TOP_TEN = MetricSettings(measures=("nDCG@10",), depth=10, k_values=(10,))
SEARCHES: tuple[dict[str, Any], ...] = ({}, {"rescore": True}, {"rescore": True, "oversampling": 3.0})


def list_retrievers() -> Iterator[tuple[str, Retriever]]:
    """Yield the name and the settings of each search."""
    encoder = LSAEncoder(Analyzer(), dimensions=128)
    yield "dense, exact", Dense(encoder)
    for quantization in ("int8", "binary"):
        for search in SEARCHES:
            name = ", ".join([quantization, *(f"{key}={value}" for key, value in search.items())])
            yield f"dense, {name}", Dense(encoder, quantization=quantization, **search)
            own = {"rescore": False, **search}
            yield f"qdrant, {name}", Qdrant(encoder, index_type="flat", quantization=quantization, **own)


def main() -> None:
    """Print a table for each collection."""
    with tempfile.TemporaryDirectory(prefix="quantization-") as folder:
        bench = Bench(DiskStore(Path(folder)))
        for collection in sys.argv[1:] or ("cranfield", "scifact"):
            source = Beir(path=str(DATA / collection))
            table = Table(collection, "recall@10", "nDCG@10")
            for name, retriever in list_retrievers():
                result = bench.evaluate(Experiment(name, name, retriever, source, TOP_TEN, {"choices": {}}, {}))
                recall = result.diagnostics.get("index_recall_at_10", 1.0)
                table.add_row(name, f"{recall:.3f}", f"{result.means['nDCG@10']:.4f}")
            Console().print(table)


if __name__ == "__main__":
    main()
