"""The cases of the benchmark, and the bar of each.

The peer is a stack that a practitioner writes by hand (Hydra's multirun, bm25s, ir_measures, MLflow). It is beside the
project or in BENCH_PEER, and the collections are beside the project or in RETRIEVAL_DATA.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Figure, measure_memory, medians, spend
from runner.metrics.delegated import parse_delegated

BESIDE = Path(__file__).parents[2] / "shared"
DATA = Path(os.environ.get("RETRIEVAL_DATA", BESIDE / "data")) / "collections"
PEER = Path(os.environ.get("BENCH_PEER", BESIDE / "benchmarks" / "peer_stack"))
PEER_RUNS = 3
RUNNER = (sys.executable, "-m", "runner")


def memory() -> list[Figure]:
    """Compare the peak of a whole BM25 run on medquad, MLflow included, with bm25s alone, which logs nothing."""
    data = DATA / "medquad"
    ours = [*RUNNER, "retriever=bm25", "dataset=beir", f"dataset.path={data}"]
    theirs = [sys.executable, str(Path(__file__).with_name("bm25s_alone.py")), str(data)]
    with folder_of_runs() as folder:

        def compare(name: str, measure: Callable[[list[str], Path], float]) -> Figure:
            def run(command: list[str]) -> float:
                shutil.rmtree(folder / "mlruns", ignore_errors=True)
                return measure(command, folder)

            took = medians({"ours": lambda: run(ours), "theirs": lambda: run(theirs)}, PEER_RUNS)
            return Figure(f"peak memory of a BM25 run, medquad, {name}", "MiB", took["ours"], took["theirs"], 1)

        return [
            compare("largest process", lambda command, folder: spend(command, folder).mebibytes),
            compare("all processes", measure_memory),
        ]


def help_time() -> list[Figure]:
    """`--help`, against a second."""
    with folder_of_runs() as folder:
        took = medians({"ours": lambda: spend([*RUNNER, "--help"], folder).seconds}, 5)
    return [Figure("--help", "s", took["ours"], 1.0, 1)]


def single_run() -> list[Figure]:
    """Compare a whole BM25 run on scifact, in a fresh folder and again, with an MLflow run that logs its figures."""
    command = [*RUNNER, "retriever=bm25", "dataset=beir", f"dataset.path={DATA / 'scifact'}"]
    with folder_of_runs() as folder:
        figures, database = folder / "figures.json", folder / "bare.db"
        alone = [sys.executable, str(Path(__file__).with_name("mlflow_alone.py")), str(database), str(figures)]
        spend(command, folder)  # compiles
        figures.write_text(json.dumps(_read_figures(folder)))

        def fresh() -> float:
            shutil.rmtree(folder / "mlruns")
            return spend(command, folder).seconds

        def fresh_mlflow() -> float:
            database.unlink(missing_ok=True)
            return spend(alone, folder).seconds

        sides = {"fresh": fresh, "fresh mlflow": fresh_mlflow}
        again = {"again": lambda: spend(command, folder).seconds, "mlflow": lambda: spend(alone, folder).seconds}
        took = medians({**sides, **again}, PEER_RUNS)
    return [
        Figure("a BM25 run, scifact, in a fresh folder, against 5 s", "s", took["fresh"], 5.0, 1),
        Figure("the same to MLflow alone, with a new database", "s", took["fresh"], took["fresh mlflow"], 1),
        Figure("a BM25 run, scifact, again, against 2.5 s", "s", took["again"], 2.5, 1),
        Figure("the same to MLflow alone", "s", took["again"], took["mlflow"], 1),
    ]


def _read_figures(folder: Path) -> dict[str, dict[str, object]]:
    """Return the tags, parameters and metrics of the only run in a folder."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/mlruns/mlflow.db")
    wanted = "tags.kind = 'evaluation'"
    (run,) = client.search_runs([e.experiment_id for e in client.search_experiments()], wanted, max_results=1)
    tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
    return {"tags": tags, "params": run.data.params, "metrics": run.data.metrics}


def scoring() -> list[Figure]:
    """25 measures of 300 queries to depth 100, against ir_measures."""
    import ir_measures
    import numpy as np

    from retrievers.base import Rankings
    from runner.datasets.base import Judgments
    from runner.metrics.measures import expand
    from runner.metrics.scores import Grader

    rng = np.random.default_rng(0)
    n, depth, size = 300, 100, 5183
    documents = np.stack([rng.choice(size, depth, replace=False) for _ in range(n)]).astype(np.int32)
    scores = np.sort(rng.random((n, depth), dtype=np.float32), axis=1)[:, ::-1]
    gold = np.stack([rng.choice(size, 3, replace=False) for _ in range(n)])
    gold[:, 0] = documents[:, 5]
    queries = np.repeat(np.arange(n, dtype=np.int32), 3)
    judgments = Judgments(queries, np.sort(gold, axis=1).ravel().astype(np.int32), np.ones(3 * n, dtype=np.int32))
    measures = expand(["nDCG", "P", "R", "RR", "Success"], [1, 3, 5, 10, 100])[:25]
    grader, rankings = Grader(judgments, n, size), Rankings(documents, scores)
    qrels = {str(q): {str(d): 1 for d in row} for q, row in enumerate(gold)}
    run = {str(q): {str(d): float(s) for d, s in zip(documents[q], scores[q], strict=True)} for q in range(n)}
    theirs = [parse_delegated(str(measure)) for measure in measures]

    def timed(call: object) -> float:
        start = time.perf_counter()
        call()  # type: ignore[operator]  # it is called
        return time.perf_counter() - start

    took = medians(
        {
            "ours": lambda: timed(lambda: grader.score(rankings, measures)),
            "theirs": lambda: timed(lambda: ir_measures.calc_aggregate(theirs, qrels, run)),
        },
        7,
    )
    return [Figure("scoring 25 measures of 300 queries", "s", took["ours"], took["theirs"], 1 / 20)]


CASES = (help_time, single_run, scoring, memory)


@contextmanager
def folder_of_runs() -> Iterator[Path]:
    """Yield a fresh working directory."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def peer_stack() -> Iterator[Path]:
    """Yield a copy of the peer, with YAML values quoted where a current parser requires it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "peer"
        shutil.copytree(PEER, copy)
        config = copy / "conf" / "config.yaml"
        config.chmod(0o644)
        config.write_text(
            config.read_text().replace("{dir: ${oc.env:PEER_OUT}/multirun}", '{dir: "${oc.env:PEER_OUT}/multirun"}')
        )
        yield copy
