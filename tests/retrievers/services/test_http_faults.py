"""Search APIs that are busy, slow or break off: retries, pauses and time limits."""

from __future__ import annotations

import ast
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import retrievers
from retrievers.services.http_api import Http
from retrievers.store import NoStore
from tests.retrievers.fake_api import CUT, Answer, Asked, fake_api, in_turn
from tests.retrievers.http_search import CORPUS, FORM, ONE, error_of, list_hits, search


@pytest.mark.parametrize("status", [429, 502, 503, 504, CUT])
def test_a_busy_service_or_a_broken_connection_is_retried(status: int) -> None:
    with fake_api(in_turn(Answer({}, status), Answer({}, status), ONE)) as api:
        rankings = search(api, retries=2)
        assert len(api.searches) == 3
    assert rankings.errors is None
    assert list_hits(rankings) == [("a", 1)]


def test_a_truncated_reply_is_retried() -> None:
    with fake_api(
        in_turn(Answer(b'{"results": [', headers={"Content-Length": "500", "Connection": "close"}), ONE)
    ) as api:
        assert list_hits(search(api)) == [("a", 1)]


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_a_refusal_is_the_error_of_its_query_and_the_rest_goes_on(status: int) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer({"detail": "not this one"}, status) if asked.body["query"] == "bad" else ONE

    with fake_api(answer) as api:
        rankings = search(api, "good", "bad", "good too")
        assert len(api.searches) == 3
    assert rankings.errors is not None
    assert list(rankings.errors) == [1]
    assert f"HTTP {status}" in rankings.errors[1]
    assert "not this one" in rankings.errors[1]
    assert list_hits(rankings, 0) == list_hits(rankings, 2) == [("a", 1)]
    assert rankings.seconds is not None
    assert np.isnan(rankings.seconds).tolist() == [False, True, False]
    assert (rankings.seconds[[0, 2]] > 0).all()


def test_a_service_that_stays_busy_is_given_up_on() -> None:
    with fake_api(in_turn(Answer({}, 503))) as api:
        assert "HTTP 503 {} (attempt 3)" in error_of(api, retries=2)
        assert len(api.searches) == 3


class Frozen(datetime):
    """A clock that stands still."""

    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return cls.moment


LATER = format_datetime(Frozen.moment + timedelta(seconds=7), usegmt=True)


@pytest.mark.parametrize("after", ["7", LATER, LATER.removesuffix(" GMT")])
def test_a_service_is_left_alone_for_as_long_as_it_says(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("retrievers.services.retry.datetime", Frozen)
    clock = SimpleNamespace(sleep=waits.append, perf_counter=time.perf_counter)
    monkeypatch.setattr("retrievers.services.connection.time", clock)
    with fake_api(in_turn(Answer({}, 429, {"Retry-After": after}), ONE)) as api:
        assert list_hits(search(api)) == [("a", 1)]
    assert max(waits) == 7


@pytest.mark.parametrize(
    "after", ["soon", "-5", "", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 99999999999 08:49:37 GMT"]
)
def test_a_rest_that_is_over_or_no_time_is_not_waited_for(after: str) -> None:
    with fake_api(in_turn(Answer({}, 429, {"Retry-After": after}), ONE)) as api:
        assert list_hits(search(api)) == [("a", 1)]


def test_a_service_with_a_long_retry_after_is_not_retried() -> None:
    with fake_api(in_turn(Answer({}, 429, {"Retry-After": "3600"}))) as api:
        assert "Retry-After asks for 3600 s, longer than 60 s" in error_of(api)
        assert len(api.searches) == 1


def test_an_answer_that_takes_too_long_is_an_error() -> None:
    given_up = threading.Event()

    def answer(asked: Asked) -> Answer:
        given_up.wait()
        return Answer({}, CUT)

    with fake_api(answer) as api:
        assert "ReadTimeout: timed out (attempt 2)" in error_of(api, timeout_s=0.2, retries=1, health_path=None)
        given_up.set()


@contextmanager
def dripping(quick: bytes, slow: bytes) -> Iterator[str]:
    """Yield the address of a server that sends the slow part of its reply byte by byte."""
    over = threading.Event()

    def reply(listening: socket.socket) -> None:
        with suppress(OSError):
            while not over.is_set():
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(quick)
                    for byte in slow:
                        if over.wait(0.02):
                            break
                        connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=reply, args=(listening,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


BODY = b'{"results": [{"item_id": "a", "score": 1}]}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\nX-Padding: " % len(BODY)
PADDING = b"x" * 60


@pytest.mark.parametrize(
    ("quick", "slow"),
    [(HEAD + PADDING + b"\r\n\r\n", BODY), (HEAD, PADDING + b"\r\n\r\n" + BODY)],
    ids=["body", "head"],
)
def test_a_reply_that_drips_in_ends_with_the_total_time(quick: bytes, slow: bytes) -> None:
    """Each byte comes within the time-out, and all of them in more than three times of it."""
    with dripping(quick, slow) as url:
        http = Http(url, **FORM | {"health_path": None}, timeout_s=0.25, retries=0)
        rankings = http.index(CORPUS, NoStore()).search(["q"], 3)
    assert rankings.errors is not None
    assert "ReadTimeout" in rankings.errors[0]


def test_a_late_reply_on_a_reused_connection_ends_at_the_time_limit() -> None:
    over = threading.Event()

    def answer(asked: Asked) -> Answer:
        if asked.body["query"] == "slow":
            over.wait()
            return Answer({}, CUT)
        return ONE

    with fake_api(answer) as api:
        searcher = Http(api.url, **FORM, timeout_s=0.25, retries=0).index(CORPUS, NoStore())
        assert searcher.search(["quick"], 3).errors is None
        errors = searcher.search(["slow"], 3).errors
        over.set()
    assert errors is not None
    assert "ReadTimeout" in errors[0]


def iter_foreign_privates(file: Path) -> Iterator[str]:
    """Yield the attributes with an underscore that a file uses of objects other than its own."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    private = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)]
    for node in private:
        if node.attr not in own and ast.unparse(node.value) not in ("self", "cls"):
            yield f"{file.name}: {ast.unparse(node)}"


def test_only_public_attributes_of_libraries_are_used() -> None:
    files = list(Path(retrievers.__path__[0]).rglob("*.py"))
    assert len(files) > 100
    assert [name for file in files for name in iter_foreign_privates(file)] == []
