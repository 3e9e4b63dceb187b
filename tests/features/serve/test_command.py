"""`runner serve` as a command: how it starts, what it refuses, how it ends."""

from __future__ import annotations

import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from runner.__main__ import main
from tests.features.serve.process import PATIENCE_S, serving


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_ctrl_c_ends_it_once_what_is_under_way_is_answered(tmp_path: Path) -> None:
    with serving(["retriever=bm25"], tmp_path) as running:
        assert running.client.get("/health").is_success  # a connection that stays open does not hold it up
        host, _, port = running.url.removeprefix("http://").partition(":")
        body = b'{"query": "ferry"}'
        head = f"POST /search HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
            connection.sendall(f"{head}Expect: 100-continue\r\nConnection: close\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 "), "the request is under way"
            running.process.send_signal(signal.SIGINT)
            _wait_until_refused(host, int(port))
            connection.sendall(body)
            assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 200")
        assert running.process.wait(PATIENCE_S) == 0
        assert "Traceback" not in running.said.read_text()
        assert "error" not in running.said.read_text()


def _wait_until_refused(host: str, port: int) -> None:
    """Wait until a server that was told to stop accepts no more connections."""
    with suppress(ConnectionRefusedError):
        for _ in range(100 * PATIENCE_S):
            socket.create_connection((host, port), timeout=PATIENCE_S).close()
            time.sleep(0.01)


@pytest.mark.usefixtures("here")
def test_a_port_that_is_in_use_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "retriever=bm25", f"port={port}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: port={port}: already in use on 127.0.0.1;")
    assert said.count("\n") == 1


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["port=70000"], "error: port=70000: should be less than or equal to 65535"),
        (["threads=0"], "error: threads=0: should be greater than or equal to 1"),
        (["limits.top_k=0"], "error: limits.top_k=0: should be greater than or equal to 1"),
        (["limits.topk=5"], "error: limits.topk: no such setting; did you mean limits.top_k?"),
        (["host=no.such.host.invalid"], "error: host=no.such.host.invalid: cannot be resolved"),
        (["+retriever@search_types.bm25=dense"], "error: search_types.bm25: already the name of the main retriever"),
        (["+search_types.vector=dense"], "error: search_types.vector=dense: 'dense' is not a retriever"),
        (["dataset=golden_json"], "error: dataset.path: is required"),
        (["-m", "retriever.k1=1,2"], "error: -m: serve cannot run a sweep"),
        (["experiment=tour"], "error: serve cannot run a sweep"),
    ],
)
def test_a_mistake_is_said_in_one_line(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(["serve", "retriever=bm25", "port=0", *words]) == 2
    told = capsys.readouterr().err
    assert told.startswith(said)
    assert told.count("\n") == 1
