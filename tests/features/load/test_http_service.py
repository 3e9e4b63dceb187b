"""Requests over HTTP: every framing of a reply, errors, broken connections, and the limit of connections."""

from __future__ import annotations

import gzip
import math
import socket
import ssl
import time
from pathlib import Path

import httpx
import pytest

from runner.features.load.generator import Failure, Reply
from runner.features.load.http_service import HttpService, ServerAddress, read_response
from tests.features.load.certificates import write_certificate
from tests.features.load.scripted_server import Script, run_script

PATIENCE_S = 20.0


def open_service(url: str, connections: int = 8, trusted: Path | None = None) -> HttpService:
    requests = [httpx.Request("POST", f"{url}/find", json={"query": f"q{i}"}) for i in range(100)]
    certificates = ssl.create_default_context(cafile=trusted)
    return HttpService([ServerAddress(httpx.URL(url), requests, certificates)], connections)


def collect(service: HttpService, count: int) -> dict[int, Reply]:
    """Return the replies of the next requests."""
    replies: dict[int, Reply] = {}
    end = service.now() + PATIENCE_S
    while len(replies) < count and service.now() < end:
        replies |= dict(service.receive(end))
    return replies


@pytest.mark.parametrize("framing", ["length", "chunked", "closes"])
def test_replies_of_every_framing_are_read_to_their_end(framing: str) -> None:
    script = Script(lambda number, query: (200, [query, "x" * 100_000]), framing == "chunked", framing == "closes")
    with run_script(script):
        service = open_service(script.url)
        for number in range(3):
            assert service.send(number, number)
        replies = collect(service, 3)
        assert service.send(3, 3)  # a connection that is free again, or a new one
        replies |= collect(service, 1)
        service.close()
    for number in range(4):
        reply = replies[number]
        assert isinstance(reply, bytes)
        assert read_response(reply).json()["hits"][0]["id"] == f"q{number}"
    assert sorted(body["query"] for body in script.bodies) == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize("chunked", [False, True])
def test_requests_are_sent_over_tls(tmp_path: Path, chunked: bool) -> None:
    script = Script(lambda number, query: (200, [query, "x" * 100_000]), chunked)
    script.tls = write_certificate(tmp_path / "own.pem")
    with run_script(script):
        service = open_service(script.url, trusted=tmp_path / "own.pem")
        for number in range(3):
            assert service.send(number, number)
        replies = collect(service, 3)
        assert service.send(3, 3)  # a connection that is free again
        replies |= collect(service, 1)
        service.close()
    hits = [read_response(reply).json()["hits"] for _, reply in sorted(replies.items()) if isinstance(reply, bytes)]
    assert [own[0]["id"] for own in hits] == ["q0", "q1", "q2", "q3"]


def test_a_certificate_that_is_not_trusted_is_a_failure_that_says_so(tmp_path: Path) -> None:
    script = Script(lambda number, query: (200, []), tls=write_certificate(tmp_path / "own.pem"))
    with run_script(script):
        service = open_service(script.url)
        service.send(0, 0)
        (reply,) = collect(service, 1).values()
        assert service.send(1, 1)
        service.close()
    assert isinstance(reply, Failure)
    assert reply.reason.startswith("the certificate is not trusted: self-signed certificate; ")
    assert "SSL_CERT_FILE" in reply.reason
    assert not script.bodies


def test_a_server_without_tls_is_a_failure_of_an_https_address() -> None:
    with run_script(Script(lambda number, query: (200, []))) as script:
        service = open_service(script.url.replace("http:", "https:"))
        service.send(0, 0)
        (reply,) = collect(service, 1).values()
        service.close()
    assert isinstance(reply, Failure)
    assert "SSL" in reply.reason


def test_a_compressed_reply_is_decompressed_after_the_test() -> None:
    body = gzip.compress(b'{"hits": []}')
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert read_response(head + body).json() == {"hits": []}


def test_an_error_status_is_a_failure() -> None:
    with run_script(Script(lambda number, query: (503 if number == 1 else 200, []))) as script:
        service = open_service(script.url)
        service.send(0, 0)
        assert collect(service, 1) == {0: Failure("HTTP 503")}
        service.close()


def test_no_server_is_a_failure_of_each_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    service = open_service(url)
    service.send(0, 0)
    (reply,) = collect(service, 1).values()
    assert isinstance(reply, Failure)
    assert service.send(1, 1)  # the broken connection is not counted any more
    service.close()


def test_no_more_connections_are_open_than_allowed() -> None:
    with run_script(Script(lambda number, query: (200, []), delay_s=0.05)) as script:
        service = open_service(script.url, connections=2)
        assert [service.send(number, number) for number in range(4)] == [True, True, False, False]
        collect(service, 2)
        assert service.send(2, 2)
        service.abandon(2)
        assert service.send(3, 3)
        service.close()


def test_servers_share_the_requests() -> None:
    scripts = [Script(lambda number, query: (200, [])) for _ in range(2)]
    with run_script(scripts[0]), run_script(scripts[1]):
        requests = [[httpx.Request("POST", f"{script.url}/find", json={"query": "q"})] for script in scripts]
        addresses = [
            ServerAddress(httpx.URL(script.url), own, ssl.create_default_context())
            for script, own in zip(scripts, requests, strict=True)
        ]
        service = HttpService(addresses, 8)
        for number in range(6):
            service.send(number, 0)
        collect(service, 6)
        service.close()
    assert [len(script.bodies) for script in scripts] == [3, 3]


def test_waiting_without_replies_ends_in_time() -> None:
    service = HttpService([], 1)
    start = time.monotonic()
    assert service.receive(start + 0.01) == []
    assert time.monotonic() >= start + 0.01
    assert service.receive(-math.inf) == []
    service.close()
