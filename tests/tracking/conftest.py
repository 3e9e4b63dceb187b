"""An MLflow server and a PostgreSQL server, which the tests of a process share."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "s3cr@t"
PATIENCE = 600


@pytest.fixture(scope="session")
def starting(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Start an MLflow server, which takes a while; return a function that waits for it and returns its address."""
    folder, port = tmp_path_factory.mktemp("server"), _free_port()
    shutil.copy(migrated, folder / "mlflow.db")
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/kept"]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | quiet, cwd=folder, start_new_session=True
        )

    def ready() -> str:
        _wait_for(process, port, folder / "log")
        return f"http://127.0.0.1:{port}"

    try:
        yield ready
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # and the processes that it started
        process.wait(PATIENCE)


@pytest.fixture(scope="session")
def server(starting: Callable[[], str]) -> str:
    """Return the address of an MLflow server, which keeps artifacts itself."""
    return starting()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    pytest.fail(f"the MLflow server did not start: {log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """Return the address of a PostgreSQL server with a new cluster, or skip."""
    places = [*map(str, Path("/usr/lib/postgresql").glob("*/bin")), os.environ["PATH"]]
    initdb, pg_ctl = (shutil.which(program, path=os.pathsep.join(places)) for program in ("initdb", "pg_ctl"))
    if initdb is None or pg_ctl is None:
        pytest.skip("no initdb and pg_ctl on this machine: install the package postgresql")
    root = os.geteuid() == 0
    if root and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser to run it as another user")
    with tempfile.TemporaryDirectory(prefix="postgresql-") as name:  # not pytest's, which only its owner may enter
        folder, port = Path(name), _free_port()
        (folder / "password").write_text(PASSWORD)
        if root:
            for place in (folder, folder / "password"):
                shutil.chown(place, "postgres")

        def run(program: str, *arguments: str) -> None:
            command = [program, "--pgdata", f"{folder}/data", *arguments]
            command = ["runuser", "-u", "postgres", "--", *command] if root else command
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=PATIENCE)

        login = ("--username=mlflow", f"--pwfile={folder}/password", "--auth=scram-sha-256")
        run(initdb, *login, "--no-locale", "--encoding=UTF8", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' -c fsync=off"
        run(pg_ctl, "start", "--wait", f"--log={folder}/log", f"--options={options}")
        try:
            yield f"postgresql://mlflow:{quote(PASSWORD)}@127.0.0.1:{port}/postgres"
        finally:
            run(pg_ctl, "stop", "--wait", "--mode=fast")
