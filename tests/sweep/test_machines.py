"""A sweep on a Dask worker that has no folder in common with the main process, but an object store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.object_stores import serve_bucket

DATA = {
    "corpus.jsonl": '{"_id": "a", "title": "", "text": "red"}\n{"_id": "b", "title": "", "text": "blue"}\n',
    "queries.jsonl": '{"_id": "q", "text": "red"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\ta\t1\n",
}


@pytest.fixture
def bucket() -> Iterator[str]:
    yield from serve_bucket()


@pytest.fixture
def cluster(bucket: str, tmp_path: Path) -> Iterator[str]:
    """Yield the address of a cluster whose only worker has a home and a working directory of its own."""
    distributed = pytest.importorskip(
        "distributed", reason="dask is not installed: pip install 'retrieval-runner[dask]'"
    )
    assert bucket
    home = tmp_path / "machine"
    home.mkdir()
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        words = ["-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--nthreads", "1", "--no-dashboard"]
        environment = os.environ | {"XDG_CACHE_HOME": str(home / "cache"), "HOME": str(home)}
        worker = subprocess.Popen([sys.executable, *words], cwd=home, env=environment, stderr=subprocess.DEVNULL)
        try:
            with distributed.Client(cluster, set_as_default=False) as client:
                client.wait_for_workers(1)
            yield cluster.scheduler_address
        finally:
            worker.terminate()
            worker.wait()


def test_workers_without_a_shared_folder_share_an_object_store(
    bucket: str,
    cluster: str,
    tracking: Tracking,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import s3fs

    for name, content in DATA.items():
        s3fs.S3FileSystem().pipe_file(f"{bucket}/data/{name}", content.encode())
    here = tmp_path / "here"
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.chdir(tmp_path)
    assert tracking
    command = ["-m", "retriever=bm25", "retriever.k1=0.6,0.9", "dataset=beir", f"dataset.path={bucket}/data",
               "dataset.split=test", f"store.path={bucket}/cache", "sweep.backend=dask", f"sweep.address={cluster}",
               "sweep.name=apart", "tracking.background=false"]  # fmt: skip
    assert main(command) == 0
    there = tmp_path / "machine" / "cache" / "retrieval-runner"
    assert (there / "data").is_dir()
    assert not list((tmp_path / "machine").glob("mlruns"))
    assert "k1=0.9" in capsys.readouterr().out
