"""Searches in threads: replies, errors, the limit of threads, and the host of an engine."""

from __future__ import annotations

import threading

import pytest

from retrievers.engines.postgres import Postgres
from runner.config.objects import ConfigError
from runner.features.load.generator import Failure, Reply
from runner.features.load.targets import check_consent, find_engine_host, is_engine
from runner.features.load.thread_service import ThreadService

PATIENCE_S = 20.0


def collect(service: ThreadService, count: int) -> dict[int, Reply]:
    replies: dict[int, Reply] = {}
    end = service.now() + PATIENCE_S
    while len(replies) < count and service.now() < end:
        replies |= dict(service.receive(end))
    return replies


def test_each_query_is_searched_and_errors_are_failures() -> None:
    def search(query: int) -> Reply:
        if query == 7:
            raise RuntimeError("no such table")
        return [f"d{query}"]

    service = ThreadService(search, 4)
    for number, query in enumerate((5, 7, 2)):
        assert service.send(number, query)
    assert collect(service, 3) == {0: ["d5"], 1: Failure("RuntimeError: no such table"), 2: ["d2"]}
    service.close()


def test_a_thread_is_busy_until_its_search_ends_even_if_it_was_given_up() -> None:
    gate = threading.Event()

    def search(query: int) -> Reply:
        gate.wait(PATIENCE_S)
        return []

    service = ThreadService(search, 1)
    assert service.send(0, 0)
    service.abandon(0)
    assert not service.send(1, 1)
    gate.set()
    collect(service, 1)
    assert service.send(1, 1)
    collect(service, 1)
    service.close()


@pytest.mark.parametrize(
    ("dsn", "host"),
    [
        ("postgresql://me@db.example.org:5432/search", "db.example.org"),
        ("host=10.0.0.7 dbname=search", "10.0.0.7"),
        ("host=/run/postgresql dbname=search", ""),
        ("dbname=search", ""),
    ],
)
def test_the_host_of_an_engine_is_that_of_its_address(dsn: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    retriever = Postgres(dsn=dsn)
    assert is_engine(retriever)
    assert find_engine_host(retriever) == host


def test_the_host_of_an_engine_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "192.0.2.9")
    assert find_engine_host(Postgres()) == "192.0.2.9"
    with pytest.raises(ConfigError, match=r"load\.consent=192\.0\.2\.9"):
        check_consent("192.0.2.9", None)
    check_consent("192.0.2.9", "192.0.2.9")
