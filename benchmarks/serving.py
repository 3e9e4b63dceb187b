"""Measure `serve` under load: the 99th percentile of the time of a request, and the elapsed time per request.

Clients are coroutines of this process, each with a persistent connection, that send the dataset's queries without a
pause. They share the machine with the server, so the figures include the work of both.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.cases import DATA, RUNNER, folder_of_runs
from benchmarks.measure import Figure

CLIENTS = (1, 8, 32)
LOAD_S, WARM_S = 5.0, 1.0

AT_ONCE_MS = 100.0
"""The time that feels immediate (Nielsen 1993, Usability Engineering): the bar of the 99th percentile."""

EACH_MS = 10.0
"""The bar of the elapsed time per request under load: a hundred requests per second."""


def serving_golden() -> list[Figure]:
    """BM25 on the real golden dataset's 55 items, under 1, 8 and 32 clients."""
    folder = DATA.parent / "golden"
    queries = json.loads((folder / "retrieval_evaluation_dataset.json").read_text())["queries"]
    items = f"dataset.items={folder / 'golden_analyses.json'}"
    dataset = ["dataset=golden_json", f"dataset.path={folder / 'retrieval_evaluation_dataset.json'}", items]
    return _loaded("golden", dataset, [query["query_text"] for query in queries])


def serving_scifact() -> list[Figure]:
    """BM25 on scifact's 5,183 abstracts, under 1, 8 and 32 clients."""
    folder = DATA / "scifact"
    lines = (folder / "queries.jsonl").read_text().splitlines()
    return _loaded("scifact", ["dataset=beir", f"dataset.path={folder}"], [json.loads(line)["text"] for line in lines])


def _loaded(name: str, dataset: Sequence[str], queries: Sequence[str]) -> list[Figure]:
    figures = []
    with _server(dataset) as url:
        _load(url, queries, 1, WARM_S)
        for clients in CLIENTS:
            seconds = _load(url, queries, clients, LOAD_S)
            who = f"serve bm25, {name}, {clients} client{'s' if clients > 1 else ''}"
            slowest = float(np.percentile(seconds, 99)) * 1000
            figures.append(Figure(f"{who}: p99", "ms", slowest, AT_ONCE_MS, 1))
            figures.append(Figure(f"{who}: time over requests", "ms", LOAD_S * 1000 / len(seconds), EACH_MS, 1))
    return figures


@contextmanager
def _server(dataset: Sequence[str]) -> Iterator[str]:
    with folder_of_runs() as folder, (folder / "log").open("w") as log:
        command = [*RUNNER, "serve", "retriever=bm25", *dataset, "port=0"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if "http://" not in said:
                raise RuntimeError(f"{' '.join(command)} failed:\n{Path(log.name).read_text()[-2000:]}")
            yield next(word for word in said.split() if word.startswith("http://"))
        finally:
            process.terminate()
            process.communicate()


def _load(url: str, queries: Sequence[str], clients: int, load_s: float) -> list[float]:
    """Return the seconds of each request that the clients made within `load_s` seconds."""
    address = urlsplit(url)
    end = time.perf_counter() + load_s

    async def client(number: int) -> list[float]:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        taken, at = [], number * len(queries) // clients
        while (start := time.perf_counter()) < end:
            body = json.dumps({"query": queries[at % len(queries)], "top_k": 10}).encode()
            head = f"POST /search HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            said = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(said.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
            if b" 200 " not in said.partition(b"\r\n")[0]:
                raise RuntimeError(f"{url}: {said.decode()}")
            taken.append(time.perf_counter() - start)
            at += 1
        writer.close()
        return taken

    async def all_clients() -> list[list[float]]:
        return await asyncio.gather(*map(client, range(clients)))

    return [second for part in asyncio.run(all_clients()) for second in part]


SERVING = (serving_golden, serving_scifact)
