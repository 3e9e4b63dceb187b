"""The preset for Chroma against a running server of its own: `pip install chromadb` anywhere on the path."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hydra.core.config_loader import ConfigLoader
from omegaconf import OmegaConf

from retrievers.base import NOTHING, Corpus, QueryText
from retrievers.filters import parse_filter
from retrievers.search import search_cached
from retrievers.services.http_api import Http
from retrievers.store import NoStore
from retrievers.vectors.dense import Dense
from runner.sweep.compose import Composer
from tests.config.test_http_presets import loader  # noqa: F401 (a fixture)
from tests.retrievers.vectors.test_dense import Numbers, texts_of

DATABASE = "/api/v2/tenants/default_tenant/databases/default_database"
VECTORS = np.random.default_rng(0).standard_normal((200, 2)).astype(np.float32).round(3)
QUERIES = np.random.default_rng(1).standard_normal((20, 2)).astype(np.float32).round(3)
METADATA = [{"n": i % 7, "kind": "ab"[i % 2], "fresh": i % 3 == 0} for i in range(200)]
PATIENCE_S = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server, or skip."""
    program = shutil.which("chroma")
    if program is None:
        pytest.skip("no program `chroma` on the path: pip install chromadb, which needs 400 MB")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("chroma")
    command = [program, "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE_S
        while not is_ready(url):
            assert process.poll() is None, Path(log.name).read_text()
            assert time.monotonic() < end, Path(log.name).read_text()
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v2/heartbeat").is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def collection(server: str) -> str:
    """Return the id of a collection with the vectors, whose distance is that of cosines."""
    configuration = {"hnsw": {"space": "cosine"}}
    body = {"name": "articles", "configuration": configuration}
    made = httpx.post(f"{server}{DATABASE}/collections", json=body).raise_for_status().json()
    rows = {"ids": [f"d{i}" for i in range(len(VECTORS))], "embeddings": VECTORS.tolist(), "metadatas": METADATA}
    httpx.post(f"{server}{DATABASE}/collections/{made['id']}/add", json=rows).raise_for_status()
    return str(made["id"])


def preset(loader: ConfigLoader, url: str, collection: str) -> Http:  # noqa: F811 (a fixture)
    words = ["retriever=http/chroma", f"retriever.base_url={url}", f"retriever.parameters.collection={collection}"]
    values: Any = OmegaConf.to_container(Composer(loader, "evaluate", []).compose(words).retriever, resolve=False)
    values.pop("_target_")
    return Http(**{**values, "encoder": Numbers(), "expected_items": len(VECTORS)})


def test_a_running_server_returns_the_nearest_vectors(
    loader: ConfigLoader,  # noqa: F811 (a fixture)
    server: str,
    collection: str,
) -> None:
    http, corpus = preset(loader, server, collection), Corpus([], [])
    rankings = http.index(corpus, NoStore()).search(texts_of(QUERIES), 10)
    assert not rankings.errors
    unit, units = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (QUERIES, VECTORS))
    cosines = unit @ units.T
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :10]
    shares = []
    for row, expected in enumerate(nearest.tolist()):
        ids = [rankings.unknown_ids[place] for place in rankings.documents[row].tolist()]
        shares.append(len({int(name[1:]) for name in ids} & set(expected)) / 10)
        own = [1 - cosines[row, int(name[1:])] for name in ids]
        np.testing.assert_allclose(-rankings.scores[row], own, atol=1e-5)
    assert np.mean(shares) > 0.95  # an approximate index


@pytest.mark.parametrize("conditions", [{"kind": "a"}, {"n": {"from": 2, "to": 3}, "fresh": True}, {"n": [1, 5]}])
def test_a_running_server_applies_filters(
    loader: ConfigLoader,  # noqa: F811 (a fixture)
    server: str,
    collection: str,
    conditions: dict[str, Any],
) -> None:
    ids = [f"d{i}" for i in range(len(VECTORS))]
    corpus = Corpus(ids, texts_of(VECTORS), metadata=METADATA, filter_fields=("fresh", "kind", "n"))
    queries = [QueryText(text, text, own=parse_filter(conditions)) for text in texts_of(QUERIES)]
    rankings = search_cached(preset(loader, server, collection), corpus, queries, 10, NoStore())
    exact = search_cached(Dense(Numbers()), corpus, queries, 10, NoStore()).documents
    assert not rankings.errors
    assert ((rankings.documents == NOTHING) == (exact == NOTHING)).all()
    assert np.mean([np.isin(*rows).mean() for rows in zip(rankings.documents, exact, strict=True)]) > 0.95


def test_a_running_server_describes_its_index(
    loader: ConfigLoader,  # noqa: F811 (a fixture)
    server: str,
    collection: str,
) -> None:
    facts = preset(loader, server, collection).describe_index()
    assert facts["documents"] == str(len(VECTORS))
    assert facts["version"][0].isdigit()


def test_a_collection_that_is_missing_is_an_error_of_each_query(
    loader: ConfigLoader,  # noqa: F811 (a fixture)
    server: str,
) -> None:
    missing = "00000000-0000-0000-0000-000000000000"
    http = preset(loader, server, missing)
    object.__setattr__(http, "expected_items", None)
    rankings = http.index(Corpus([], []), NoStore()).search(texts_of(QUERIES[:1]), 10)
    assert rankings.errors
    assert "404" in rankings.errors[0]
