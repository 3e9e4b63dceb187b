"""An object store that cannot be used is one line that names it, after seconds, whatever its server does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runner.config.objects import ConfigError
from runner.store.opening import open_store
from runner.store.settings import StoreSettings
from runner.system import object_stores as objects
from runner.system.object_stores import Objects, _open_system

pytest.importorskip("s3fs")

Start = Callable[[str], str]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts a server of a kind, lets S3 clients use it, and returns its address."""
    servers, ended = [], threading.Event()
    monkeypatch.setattr(objects, "ANSWER_S", 2.0)
    monkeypatch.setattr(objects, "ANNOUNCED_S", 0.5)
    monkeypatch.setattr(objects, "_DOWN_UNTIL", {})
    monkeypatch.setattr(objects, "_ANSWERED", set())

    def serve(kind: str) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if kind == "silent":
                    ended.wait(30)
                    return
                self.send_response(503 if kind == "busy" else 200)
                self.end_headers()
                self.wfile.write(b"<!doctype html><html><body>Sign in</body></html>")

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        address = f"127.0.0.1:{server.server_port}"
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{address}", "AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        _forget_client()
        return address

    yield serve
    ended.set()
    _forget_client()
    for server in servers:
        server.shutdown()
        server.server_close()


def _forget_client() -> None:
    import s3fs

    _open_system.cache_clear()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize("kind", ["silent", "busy", "page"])
def test_a_store_on_an_unusable_server_is_one_line_that_names_it(
    kind: str, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    address, began = start(kind), time.monotonic()
    with pytest.raises(
        ConfigError, match=rf"^store\.path=s3://bucket/x at http://{address}: cannot be listed \(.*\); ch"
    ) as raised:
        open_store(StoreSettings("s3://bucket/x"))
    assert time.monotonic() - began < 20
    assert "\n" not in str(raised.value)
    waits = [record.getMessage() for record in caplog.records if record.name == "runner.store"]
    assert all(f"s3://bucket/x at http://{address}: no answer yet; trying for " in wait for wait in waits)
    if kind == "silent":
        assert "no usable answer in 2 s" in str(raised.value)
        assert len(waits) == 1


def test_a_request_to_a_silent_server_fails_and_the_next_ones_at_once(start: Start) -> None:
    start("silent")
    with pytest.raises(OSError, match="no usable answer in 2 s"):
        Objects("s3://bucket/x").read("a")
    began = time.monotonic()
    with pytest.raises(OSError, match="bucket did not answer"):
        Objects("s3://bucket/x").read("a")
    assert time.monotonic() - began < 1


def test_the_address_of_a_server_is_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://me:p@ss@minio.example")
    assert Objects("s3://bucket/x").place == "s3://bucket/x at minio.example"
