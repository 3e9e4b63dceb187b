"""The UI is started where it can listen, and nowhere else."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking


@pytest.mark.parametrize("port", ["abc", "0", "65536"])
def test_a_port_that_is_none_is_one_line_and_exit_code_2(
    port: str, tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["ui", f"port={port}"]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"error: port={port}: ") and told.err.count("\n") == 1
    assert not told.out


def test_a_port_in_use_is_refused_before_mlflow_is_started(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["ui", f"port={port}"]) == 2
    assert f"port={port}: already in use on 127.0.0.1" in capsys.readouterr().err


def test_mlflow_gets_the_address_and_the_store(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def become(_: str, arguments: list[str]) -> NoReturn:
        told.extend(arguments)
        raise SystemExit(0)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execv", become)
    for name in ("MLFLOW_BACKEND_STORE_URI", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION"):
        monkeypatch.setenv(name, "")  # put back at the end
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert main(["ui", f"port={port}"]) == 0
    assert told[told.index("--port") + 1] == str(port)
    assert os.environ["MLFLOW_BACKEND_STORE_URI"].endswith("mlruns/mlflow.db")
    assert f"http://127.0.0.1:{port}/" in capsys.readouterr().out
