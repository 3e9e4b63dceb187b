from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from retrievers.base import Corpus
from retrievers.store import Store
from runner.comparison.leaderboard import FailedCombination
from runner.config.objects import ConfigError
from runner.datasets.golden_json import GoldenJson
from runner.evaluation.bench import Bench, MeasuredExperiment
from runner.evaluation.experiment import Experiment
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore
from runner.sweep.identity import combination_id
from runner.sweep.settings import SweepSettings
from runner.sweep.workers import WorkerLimits, answers, crew_of, work
from tests.unruly import Service, Unruly, UnrulySearcher

SPARE_MB = 400
"""What a worker takes before it does anything is less than this."""


@pytest.fixture(scope="module")
def source() -> Any:
    from hydra import compose, initialize_config_dir

    from runner.config import CONF
    from runner.datasets.settings import build_dataset

    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("evaluate")
    from omegaconf import OmegaConf

    return build_dataset(OmegaConf.to_container(cfg.dataset, resolve=True))[0]


def _answers(
    tmp_path: Path,
    source: GoldenJson,
    retrievers: dict[str, Unruly],
    **settings: Any,
) -> dict[str, MeasuredExperiment | FailedCombination]:
    bench = Bench(DiskStore(tmp_path / "cache"))
    made = [Experiment(name, "bm25", r, source, MetricSettings(), {}, {}) for name, r in retrievers.items()]
    experiments = {combination_id(experiment, bench.dataset(experiment)): experiment for experiment in made}
    chosen = SweepSettings(**{"backend": "loky", "workers": 2, **settings})
    with crew_of(chosen, bench) as crew:
        found = answers(experiments, crew, chosen.retries)
        return {experiments[combination].name: answer for combination, answer in found}


@dataclass(frozen=True)
class Reader(Service):
    """Notes when it is read ahead and when it is indexed."""

    events: list[str] = field(default_factory=list, repr=False)

    def start_reading(self) -> None:
        """Note it."""
        self.events.append(f"read {self.number}")

    def index(self, corpus: Corpus, store: Store) -> UnrulySearcher:
        """Note it, and return a searcher."""
        self.events.append(f"index {self.number}")
        return super().index(corpus, store)


def test_a_sequential_sweep_reads_each_file_while_the_one_before_is_evaluated(
    tmp_path: Path, source: GoldenJson
) -> None:
    bench, events = Bench(DiskStore(tmp_path / "cache")), list[str]()
    kinds = [(1, 100), (1, 200), (2, 100), (3, 100), (2, 200)]
    experiments = {
        f"{number} {depth}": Experiment("x", "run", Reader(number, events=events), source, metrics, {}, {})
        for number, depth in kinds
        for metrics in [MetricSettings(depth=depth)]
    }
    with crew_of(SweepSettings(backend="sequential"), bench) as crew:
        assert all(isinstance(answer, MeasuredExperiment) for _, answer in answers(experiments, crew, 0))
    assert events == ["index 1", "read 2", "read 3", "index 2", "index 3"]


@pytest.fixture
def deaths(tmp_path: Path) -> str:
    """Return the folder that counts deaths."""
    (tmp_path / "deaths").mkdir()
    return str(tmp_path / "deaths")


@pytest.mark.usefixtures("warm_workers")
def test_a_worker_that_dies_costs_its_combination_one_retry(tmp_path: Path, source: GoldenJson, deaths: str) -> None:
    wanted = {f"fine {i}": Unruly(i) for i in range(4)} | {"dies once": Unruly(9, "die", 1, deaths)}
    found = _answers(tmp_path, source, wanted)
    assert {name: type(answer) for name, answer in found.items()} == dict.fromkeys(wanted, MeasuredExperiment)
    assert len(os.listdir(deaths)) == 1  # noqa: PTH208 (a count)


@pytest.mark.usefixtures("warm_workers")
def test_a_combination_that_kills_its_workers_fails_alone(tmp_path: Path, source: GoldenJson, deaths: str) -> None:
    wanted = {"dies": Unruly(9, "die", 99, deaths), **{f"fine {i}": Unruly(i) for i in range(4)}}
    found = _answers(tmp_path, source, wanted, retries=2)
    assert [name for name, answer in found.items() if isinstance(answer, FailedCombination)] == ["dies"]
    assert "the worker died on all 3 attempts" in found["dies"].error  # type: ignore[union-attr]  # a FailedCombination, as said above
    assert len(os.listdir(deaths)) == 3  # noqa: PTH208 (a count)


@pytest.mark.usefixtures("warm_workers")
def test_what_takes_too_long_is_ended_and_not_tried_again(tmp_path: Path, source: GoldenJson) -> None:
    wanted = {"late": Unruly(1, "late"), "fine": Unruly(2), "raises": Unruly(3, "raise"), "also fine": Unruly(4)}
    found = _answers(tmp_path, source, wanted, timeout_s=3600, workers=1)
    failures = {name: answer.error for name, answer in found.items() if isinstance(answer, FailedCombination)}
    assert failures == {"late": "late took more than sweep.timeout_s=3600", "raises": "RuntimeError: no luck"}


def test_what_takes_too_much_memory_is_ended(tmp_path: Path, source: GoldenJson) -> None:
    found = _answers(tmp_path, source, {"eats": Unruly(1, "eat"), "fine": Unruly(2)}, memory_mb=SPARE_MB, workers=1)
    assert isinstance(found["fine"], MeasuredExperiment)
    assert "more than sweep.memory_mb=400" in found["eats"].error  # type: ignore[union-attr]  # a FailedCombination


def test_a_worker_with_other_code_refuses(tmp_path: Path, source: GoldenJson) -> None:
    bench = Bench(DiskStore(tmp_path / "cache"))
    experiment = Experiment("fine", "bm25", Unruly(1), source, MetricSettings(), {}, {})
    answer = work("what another would be", experiment, bench.store, WorkerLimits(), 1)
    assert isinstance(answer, FailedCombination)
    assert "other code, data or libraries" in answer.error


def test_a_worker_that_dies_while_it_waits_is_replaced(tmp_path: Path, source: GoldenJson) -> None:
    bench = Bench(DiskStore(tmp_path / "cache"))
    experiment = Experiment("fine", "bm25", Unruly(1), source, MetricSettings(), {}, {})
    combination = combination_id(experiment, bench.dataset(experiment))
    with crew_of(SweepSettings(backend="loky", workers=1), bench) as crew:
        for _ in range(2):
            assert isinstance(dict(answers({combination: experiment}, crew, 1))[combination], MeasuredExperiment)
            for process in psutil.Process().children():
                if "popen_loky" in " ".join(process.cmdline()):
                    process.kill()
            time.sleep(0.5)  # for its end to be noticed, or not


@pytest.mark.usefixtures("warm_workers")
@pytest.mark.parametrize("backend", ["sequential", "loky"])
def test_workers_find_what_one_process_finds(tmp_path: Path, source: GoldenJson, backend: str) -> None:
    wanted = {f"fine {i}": Unruly(i) for i in range(5)}
    expected = _answers(tmp_path / "alone", source, wanted, backend="sequential", workers=None)
    settings = {"backend": backend, "workers": None if backend == "sequential" else 2}
    found = _answers(tmp_path / "crew", source, wanted, **settings)
    means, same = (
        {name: dict(answer.measurements.means) for name, answer in answers.items()}  # type: ignore[union-attr]  # none failed
        for answers in (found, expected)
    )
    assert means == same


@pytest.fixture
def dask_cluster() -> Iterator[str]:
    """Yield the address of a running Dask cluster of two workers."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install '.[dask]'")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


def test_a_running_dask_cluster_is_joined_and_outlives_a_worker(
    tmp_path: Path, source: GoldenJson, deaths: str, dask_cluster: str
) -> None:
    wanted = {f"fine {i}": Unruly(i) for i in range(4)} | {"dies once": Unruly(9, "die", 1, deaths)}
    found = _answers(tmp_path, source, wanted, backend="dask", workers=None, address=dask_cluster)
    assert {name: type(answer) for name, answer in found.items()} == dict.fromkeys(wanted, MeasuredExperiment)


def test_ray_workers_outlive_one_another(tmp_path: Path, source: GoldenJson, deaths: str) -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")
    wanted = {"fine": Unruly(1), "dies once": Unruly(9, "die", 1, deaths)}
    found = _answers(tmp_path, source, wanted, backend="ray")
    assert {name: type(answer) for name, answer in found.items()} == dict.fromkeys(wanted, MeasuredExperiment)


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path, source: GoldenJson) -> None:
    pytest.importorskip("distributed", reason="dask is not installed: pip install '.[dask]'")
    import dask

    patience = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with patience, pytest.raises(ConfigError, match=r"sweep\.address=tcp://127\.0\.0\.1:1: "):
        _answers(tmp_path, source, {}, backend="dask", workers=None, address="tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"workers": 2}, "workers needs worker processes; add sweep.backend=loky"),
        ({"timeout_s": 2.0}, "timeout_s needs worker processes"),
        ({"backend": "loky", "address": "tcp://x"}, "address names a cluster"),
        ({"backend": "loky", "workers": 0}, "greater than or equal to 1"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SweepSettings(**settings)
