"""What is tested: a search API, an engine, or another retriever, which is served meanwhile."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from retrievers.access import find_access
from retrievers.base import NOTHING, Retriever
from retrievers.capabilities import check_filters, check_texts
from retrievers.search import open_searcher
from retrievers.services.connection import load_certificates
from retrievers.services.http_api import Http, HttpSearcher
from retrievers.services.replies import SearchReply
from retrievers.unknown import resolve_id
from runner.config.objects import ConfigError
from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import leave_room
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.features.load.generator import Reply, Service
from runner.features.load.http_service import HttpService, ServerAddress, read_response
from runner.features.load.serving import serve_processes
from runner.features.load.settings import LoadSettings
from runner.features.load.thread_service import ThreadService
from runner.pages.numbers import format_count

MOST_THREADS = 32
"""The most connections to an engine: each needs a thread, and many servers accept only a hundred."""

RUNNER_API: dict[str, Any] = {
    "search_path": "/search",
    "request": {"query": "{query}", "top_k": "{top_k}"},
    "results": "results",
    "item_id": "item_id",
    "score": "score",
}
"""The settings of `retriever=http/runner`, which reads the API that retrievers of this process are served with."""


@dataclass(frozen=True)
class LoadTarget:
    """A service under test: what it is in words, and how its reply to a query is read."""

    title: str
    service: Service
    read: Callable[[int, Reply], SearchReply]


@contextmanager
def open_target(experiment: Experiment, bench: Bench, own: LoadSettings) -> Iterator[LoadTarget]:
    """Connect to the service of a retriever, or start one; raises `ConfigError` without consent to its host."""
    dataset, retriever = bench.dataset(experiment), experiment.retriever
    queries = dataset.queries.inputs
    check_filters(retriever, queries)
    check_texts(retriever, queries)
    retriever, depth = leave_room(retriever, dataset, own.top_k)
    if isinstance(retriever, Http):
        searcher = retriever.index(dataset.corpus, bench.store)
        check_consent(httpx.URL(searcher.connection.base_url).host, own.consent)
        title = f"{experiment.retriever_name} at {searcher.connection.base_url}"
        with _open_http(title, [searcher], dataset, depth, bench, own) as target:
            yield target
    elif is_engine(retriever):
        check_consent(find_engine_host(retriever), own.consent)
        with _open_engine(experiment.retriever_name, retriever, dataset, depth, bench, own) as target:
            yield target
    else:
        if any(dataset.queries.filters):
            raise ConfigError(
                f"load: the API that {experiment.retriever_name} is served with has no filters, but queries of "
                f"{dataset.name} have; load-test a search API or an engine, or set dataset.filter_field=null"
            )
        with serve_processes(experiment, bench, own.processes, own.threads) as urls:
            searchers = [Http(base_url=url, **RUNNER_API).index(dataset.corpus, bench.store) for url in urls]
            title = f"{experiment.retriever_name}, {describe_processes(own)}"
            with _open_http(title, searchers, dataset, depth, bench, own) as target:
                yield target


def describe_processes(own: LoadSettings) -> str:
    """Return how a retriever is served."""
    processes = format_count(own.processes, "process", "processes")
    suffix = " each" if own.processes > 1 else ""
    return f"served by {processes} with {format_count(own.threads, 'thread', 'threads')}{suffix}"


def is_engine(retriever: Retriever) -> bool:
    """Return whether a retriever sends its searches to a server, such as PostgreSQL."""
    access = find_access(type(retriever))
    return access is not None and access.needs == "services"


def find_engine_host(retriever: Retriever) -> str:
    """Return the host of an engine's server, "" for a socket of this machine."""
    from psycopg.conninfo import conninfo_to_dict

    options = conninfo_to_dict(getattr(retriever, "dsn", None) or "")
    host = str(options.get("hostaddr") or options.get("host") or os.environ.get("PGHOST") or "")
    return "" if host.startswith("/") else host


def check_consent(host: str, consent: str | None) -> None:
    """Raise `ConfigError` for a host that is not this machine, unless the user has named it."""
    if host != consent and not is_this_machine(host):
        raise ConfigError(
            f"load: {host} is not this machine; a load test may disturb a service and those who use it. If you may "
            f"test it, add load.consent={host}"
        )


def is_this_machine(host: str) -> bool:
    """Return whether a host is a loopback address, or a name of nothing but loopback addresses."""
    if not host:
        return True
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host.strip("[]"), None)}
    except socket.gaierror:
        return False
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


@contextmanager
def _open_http(
    title: str, searchers: Sequence[HttpSearcher], dataset: Dataset, depth: int, bench: Bench, own: LoadSettings
) -> Iterator[LoadTarget]:
    addresses = [
        ServerAddress(
            httpx.URL(searcher.connection.base_url),
            searcher.build_requests(dataset.queries.inputs, depth, bench.store),
            load_certificates(),
        )
        for searcher in searchers
    ]

    def read(_: int, reply: Reply) -> SearchReply:
        assert isinstance(reply, bytes)  # noqa: S101 (of HttpService)
        try:
            content = read_response(reply).content
        except (httpx.DecodingError, ValueError) as error:
            return SearchReply(error=f"the reply cannot be decoded ({error})")
        return searchers[0].read_response(content, depth)

    with closing(HttpService(addresses, own.connections)) as service:
        yield LoadTarget(title, service, read)


@contextmanager
def _open_engine(
    name: str, retriever: Retriever, dataset: Dataset, depth: int, bench: Bench, own: LoadSettings
) -> Iterator[LoadTarget]:
    searcher, queries = open_searcher(retriever, dataset.corpus, bench.store), dataset.queries.inputs

    def search(query: int) -> Reply:
        rankings = searcher.search([queries[query]], depth)
        if rankings.errors:
            raise RuntimeError(rankings.errors[0])
        return [
            resolve_id(dataset.corpus, rankings.unknown_ids, place)
            for place in rankings.documents[0].tolist()
            if place != NOTHING
        ]

    def read(_: int, reply: Reply) -> SearchReply:
        assert isinstance(reply, list)  # noqa: S101 (of `search`)
        return SearchReply(reply)

    threads = min(own.connections, MOST_THREADS)
    with closing(ThreadService(search, threads)) as service:
        yield LoadTarget(f"{name}, {threads} connections", service, read)
