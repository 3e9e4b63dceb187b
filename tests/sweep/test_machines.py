"""A sweep on Dask and Ray workers that have no folder in common with the main process, but an object store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.system.object_stores import Objects
from tests.object_stores import serve_bucket

DATA = {
    "corpus.jsonl": '{"_id": "a", "title": "", "text": "red"}\n{"_id": "b", "title": "", "text": "blue"}\n',
    "queries.jsonl": '{"_id": "q", "text": "red"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\ta\t1\n",
}


@pytest.fixture
def bucket() -> Iterator[str]:
    yield from serve_bucket()


@contextmanager
def start_dask(home: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the address of a cluster with one worker, which works in a folder."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install '.[dask]'")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        words = ["-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--nthreads", "1", "--no-dashboard"]
        worker = subprocess.Popen([sys.executable, *words], cwd=home, env=environment, stderr=subprocess.DEVNULL)
        try:
            with distributed.Client(cluster, set_as_default=False) as client:
                client.wait_for_workers(1)
            yield cluster.scheduler_address
        finally:
            worker.terminate()
            worker.wait()


@contextmanager
def start_ray(home: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the address of a cluster with one processor, whose workers work in a folder."""
    pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")
    words = ["-m", "ray.scripts.scripts", "start", "--head", "--port=0", "--num-cpus=1", "--include-dashboard=false",
             "--disable-usage-stats", "--block"]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as files:  # names of sockets have at most 107 characters
        command = [sys.executable, *words, f"--temp-dir={files}"]
        head = subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert head.stdout is not None
            address = next((found[1] for line in head.stdout if (found := re.search(r"--address='(\S+)'", line))), "")
            assert address
            yield address
        finally:
            head.terminate()
            head.communicate()


@pytest.fixture
def environment(bucket: str) -> dict[str, str]:
    """Return the environment of this process, in which the bucket is found, but without what Ray adds to it."""
    assert bucket
    return {name: value for name, value in os.environ.items() if "RAY_" not in name} | {"RAY_AUTH_MODE": "disabled"}


@pytest.fixture(params=["dask", "ray"])
def backend(request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path) -> Iterator[list[str]]:
    """Yield the settings of a cluster on this machine that has a home and a working directory of its own."""
    home = tmp_path / "machine"
    home.mkdir()
    start = {"dask": start_dask, "ray": start_ray}[request.param]
    with start(home, environment | {"XDG_CACHE_HOME": str(home / "cache"), "HOME": str(home)}) as address:
        yield [f"sweep.backend={request.param}", f"sweep.address={address}"]


def test_workers_without_a_shared_folder_share_an_object_store(
    bucket: str, backend: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    for name, content in DATA.items():
        Objects(f"{bucket}/data").write(name, content.encode())
    words = ["-m", "retriever=bm25", "retriever.k1=0.6,0.9", "dataset=beir", f"dataset.path={bucket}/data",
             "dataset.split=test", f"store.path={bucket}/cache", *backend, "sweep.name=apart"]  # fmt: skip
    here = tmp_path / "here"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "runner", *words],
        cwd=here,
        env=environment | {"XDG_CACHE_HOME": str(here / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "machine" / "cache" / "retrieval-runner" / "data").is_dir()
    assert not list((tmp_path / "machine").glob("mlruns"))
    assert "k1=0.9" in done.stdout
