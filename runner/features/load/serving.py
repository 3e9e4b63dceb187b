"""Serves a retriever of this program for a load test, in processes of its own, with the API of the command `serve`."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection

from retrievers.base import RetrieverError
from retrievers.search import open_searcher
from runner.config.objects import ConfigError
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.store.base import WorkStore
from runner.system.processes import belong_to, main_module_not_imported_again
from runner.web.search_api import RequestLimits, SearchService, create_app
from runner.web.server import bind_socket, format_address, serve

_SPAWN = multiprocessing.get_context("spawn")


@contextmanager
def serve_processes(experiment: Experiment, bench: Bench, processes: int, threads: int) -> Iterator[list[str]]:
    """Serve a retriever on free ports of this machine, one for each process, and yield the addresses.

    Raises `RetrieverError` if a process cannot start.
    """
    open_searcher(experiment.retriever, bench.dataset(experiment).corpus, bench.store)  # processes read the index
    with ExitStack() as stack:
        urls, started = [], []
        for _ in range(processes):
            listener = stack.enter_context(bind_socket("127.0.0.1", 0))
            here, there = _SPAWN.Pipe(duplex=False)
            arguments = (experiment, bench.store, listener, threads, there, os.getpid())
            process = _SPAWN.Process(target=_serve, args=arguments, daemon=True)
            with main_module_not_imported_again():
                process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
            there.close()
            urls.append(format_address(listener))
            started.append(here)
        for ready in started:
            problem = "its process ended"
            with suppress(EOFError):
                problem = ready.recv()
            if problem:
                raise RetrieverError(f"{experiment.retriever_name} cannot be served: {problem}")
        yield urls


def _serve(
    experiment: Experiment, store: WorkStore, listener: socket.socket, threads: int, ready: Connection, parent: int
) -> None:
    """Serve until the process is ended; send "" when requests are accepted, or why that is not possible."""
    belong_to(parent)
    try:
        dataset = Bench(store).dataset(experiment)
        searcher = open_searcher(experiment.retriever, dataset.corpus, store)
        searcher.search(["word"], 1)  # warm up, so that the first request is as fast as later ones
        limits = RequestLimits(connections=65_536)
        app = create_app(SearchService(dataset.corpus, {experiment.retriever_name: searcher}, limits, threads))
    except (ConfigError, RetrieverError, OSError, ValueError) as error:
        ready.send(f"{type(error).__name__}: {error}")
        return
    with open(os.devnull, "w") as nothing:  # noqa: PTH123 (the log of requests)
        os.dup2(nothing.fileno(), 2)
    listener.listen(1024)
    serve(app, listener, lambda: ready.send(""), limits.request_s, limits.connections)
