"""The cases about sweeps: the cost of one more combination, and the cost of repeating a sweep."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.cases import DATA, PEER_RUNS, RUNNER, folder_of_runs, peer_stack
from benchmarks.measure import Figure, medians, spend

FEW = 2
"""The size of a sweep whose time is subtracted from that of a larger one, to leave the cost of the difference."""

LOADED = 50
"""A number of combinations that take longer than MLflow takes to load, which it does during the first of them."""


def marginal_scifact() -> list[Figure]:
    """Add one more (k1, b) on scifact, its MLflow run included; the peers are that of the stack, and MLflow alone."""
    return _marginal("scifact", {"ours": (LOADED, 3 * LOADED), "theirs": (FEW, 12)}, 1 / 25)


def marginal_medquad() -> list[Figure]:
    """Add one more (k1, b) on medquad, its MLflow run included; the peers are that of the stack, and MLflow alone."""
    return _marginal("medquad", {"ours": (LOADED, 3 * LOADED), "theirs": (FEW, 5)}, 1 / 30)


def _marginal(collection: str, sizes: dict[str, tuple[int, int]], bar: float) -> list[Figure]:
    data = DATA / collection
    dataset = ("dataset=beir", f"dataset.path={data}")
    with folder_of_runs() as folder, peer_stack() as peer:

        def ours(axis: str) -> float:
            shutil.rmtree(folder / "mlruns" / "cache", ignore_errors=True)
            command = [*RUNNER, "-m", "retriever=bm25", f"retriever.k1={axis}", *dataset, "sweep.resume=false"]
            return spend(command, folder).seconds

        def theirs(axis: str) -> float:
            command = [sys.executable, str(peer / "hydra_bm25s.py"), "-m", f"data={data}", f"k1={axis}"]
            return spend(command, folder, PEER_OUT=str(folder)).seconds

        ours(_axis(FEW)), theirs(_axis(FEW))  # creates databases and compiles
        sides: dict[str, Callable[[], float]] = {"mlflow": lambda: _bare_mlflow(folder)}
        for side in (ours, theirs):
            for n in sizes[side.__name__]:
                sides[f"{side.__name__} {n}"] = lambda side=side, n=n: side(_axis(n))
        took = medians(sides, PEER_RUNS)
    more = {s: (took[f"{s} {many}"] - took[f"{s} {few}"]) / (many - few) for s, (few, many) in sizes.items()}
    return [
        Figure(f"one more BM25 combination, {collection}, to the peer's", "s", more["ours"], more["theirs"], bar),
        Figure(f"the same to MLflow's own calls, {collection}", "s", more["ours"], took["mlflow"], 1.5),
    ]


def _axis(n: int) -> str:
    return ",".join(f"{0.5 + i / 100:.2f}" for i in range(n))


def fusion() -> list[Figure]:
    """Fuse 500 times on scifact, embeddings present; the peer are MLflow's calls alone."""
    dataset = ("dataset=beir", f"dataset.path={DATA / 'scifact'}", "encoder=lsa")
    axes = ("retriever.alpha=range(0.004,1.004,0.008)", "retriever.normalization=minmax,zscore,max,rank")
    with folder_of_runs() as folder:
        command = [*RUNNER, "-m", "retriever=hybrid", *axes, *dataset, "sweep.resume=false"]
        spend([*RUNNER, "-m", "retriever=hybrid", "retriever.alpha=0.5,0.6", *dataset], folder)  # embeds
        ours = spend(command, folder).seconds
        bare = _bare_mlflow(folder) * 500
    return [Figure("500 fusion settings, scifact, to MLflow's own calls", "s", ours, bare, 1.5)]


def again() -> list[Figure]:
    """Run 200 combinations a second time, against five seconds."""
    axes = ("retriever.k1=range(0.1,2.1,0.1)", "retriever.b=range(0,1,0.1)")
    command = [*RUNNER, "-m", "retriever=bm25", *axes, "dataset=beir", f"dataset.path={DATA / 'scifact'}"]
    with folder_of_runs() as folder:
        spend(command, folder)
        took = medians({"again": lambda: spend(command, folder).seconds}, 3)
    return [Figure("the same 200 combinations again", "s", took["again"], 5.0, 1)]


def composition() -> list[Figure]:
    """Compose 1,000 combinations; Hydra's own composition is extrapolated from 20."""
    from hydra import compose, initialize_config_dir
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.utils import create_config_search_path

    from runner.config import CONF
    from runner.config.source import check_files
    from runner.sweep.compose import Composer
    from runner.sweep.grid import combinations
    from runner.sweep.settings import Space

    axes = ["retriever=bm25", "retriever.k1=range(0.1,4.1,0.1)", "retriever.b=range(0.01,1.01,0.04)"]

    def ours(loader: ConfigLoaderImpl) -> float:
        start = time.perf_counter()
        composer = Composer(loader, "evaluate", [])
        points = combinations(axes, {}, Space(), loader, composer.value)
        for point in points:
            composer.settle(point.overrides)
        if len(points) != 1000:
            raise RuntimeError(f"{len(points)} combinations instead of 1,000")
        return time.perf_counter() - start

    def theirs() -> float:
        start = time.perf_counter()
        with initialize_config_dir(str(CONF), version_base="1.3"):
            for i in range(20):
                compose("evaluate", ["retriever=bm25", f"retriever.k1={i / 10}", "retriever.b=0.5"])
        return (time.perf_counter() - start) * 50

    def checked() -> float:
        with check_files("evaluate", []):  # as in a command
            return ours(ConfigLoaderImpl(create_config_search_path(str(CONF))))

    took = medians({"ours": checked, "theirs": theirs}, 5)
    return [
        Figure("1,000 combinations composed, against 2 s", "s", took["ours"], 2.0, 1),
        Figure("the same to Hydra's own composition", "s", took["ours"], took["theirs"], 2 / 170),
    ]


def workers() -> list[Figure]:
    """Search by two workers, against one; start-up is left out by the difference of two sweeps."""
    sizes = {n: ",".join(f"{0.5 + i / 10:.1f}" for i in range(n)) for n in (FEW, 8)}
    dataset = ("dataset=beir", f"dataset.path={DATA / 'scifact'}", "retriever=rank_bm25")
    with folder_of_runs() as folder:

        def took(count: int, n: int) -> float:
            shutil.rmtree(folder / "mlruns" / "cache", ignore_errors=True)
            crew = ("sweep.backend=loky", f"sweep.workers={count}", "sweep.resume=false")
            return spend([*RUNNER, "-m", *dataset, f"retriever.k1={sizes[n]}", *crew], folder).seconds

        took(1, FEW)
        pairs = [(count, n) for count in (1, 2) for n in sizes]
        spent = medians({f"{count} {n}": (lambda count=count, n=n: took(count, n)) for count, n in pairs}, 3)
    one, two = (spent[f"{count} 8"] - spent[f"{count} {FEW}"] for count in (1, 2))
    return [Figure("search by two workers, to one", "s", two, one, 1 / 1.6)]


def _bare_mlflow(folder: Path) -> float:
    """Return the seconds in which MLflow's client creates, fills and closes a run like the last one, without files."""
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    from runner.tracking.settings import Tracking
    from runner.tracking.tracker import Tracker

    tracking = Tracking(f"sqlite:///{folder}/mlruns/mlflow.db", artifacts=f"{folder}/mlruns/artifacts")
    Tracker(tracking)  # turns on SQLite's write-ahead log, for both sides
    client = MlflowClient(tracking.uri)
    experiment = client.get_experiment_by_name(tracking.experiment)
    wanted = "tags.kind = 'evaluation' and attributes.status = 'FINISHED'"
    (run,) = client.search_runs([experiment.experiment_id], wanted, max_results=1)
    data = run.data
    elsewhere = client.get_experiment_by_name("bare")
    where = elsewhere.experiment_id if elsewhere else client.create_experiment("bare")
    took = []
    for _ in range(20):
        start = time.perf_counter()
        moment = int(time.time() * 1000)
        made = client.create_run(where, tags={k: v for k, v in data.tags.items() if k != "mlflow.runName"})
        metrics = [Metric(name, value, moment, 0) for name, value in data.metrics.items()]
        client.log_batch(made.info.run_id, metrics, [Param(*param) for param in data.params.items()])
        client.log_inputs(made.info.run_id, run.inputs.dataset_inputs)
        client.set_terminated(made.info.run_id)
        took.append(time.perf_counter() - start)
    return sorted(took)[len(took) // 2]


SWEEPS = (composition, marginal_scifact, marginal_medquad, fusion, again, workers)
