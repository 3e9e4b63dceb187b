"""A small pool, and a desk on it that a server thread of the test serves."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn

from retrievers.base import Corpus
from runner.datasets.base import Judgments, Queries
from runner.datasets.dataset import Dataset
from runner.features.judge.desk.app import create_desk_app
from runner.features.judge.desk.desk import Desk, DeskSettings
from runner.features.judge.desk.journal import AssessorJournal
from runner.features.judge.desk.pairs import DeskPool
from runner.features.judge.judging import JudgedRankings, pool
from runner.web.guard import LoopbackAccess
from runner.web.server import bind_socket, format_address
from tests.features.judge.test_judging import judgments, rankings

WORDS = ("ferry", "museum", "market", "harbour", "island", "tower")
ADVERTISEMENT = "The ferry to the islands leaves at noon from the old harbour every day of the week but one"


def build_pool(
    texts: Sequence[str] | None = None,
    queries: Sequence[str] = ("ferry times", "old museum"),
    needs: Sequence[str] = ("Somebody wants to know when.", ""),
    judged: Judgments | None = None,
    documents: int = 12,
) -> DeskPool:
    """Return the pool of two results over two queries; the second and the third document are near-duplicates."""
    own = texts or [
        ADVERTISEMENT + (" day" if place == 2 else "") if place in (1, 2) else f"About the {WORDS[place % 6]} {place}"
        for place in range(documents)
    ]
    names = [f"d{place}" for place in range(len(own))]
    corpus = Corpus(names, own, [f"Title {place}" for place in range(len(own))])
    metadata = [{"narrative": need} for need in needs]
    asked_for = Queries(["q0", "q1"], list(queries), ["", ""], metadata)
    known = judgments((0, 0, 1), (1, 0, 3)) if judged is None else judged
    dataset = Dataset("small", "test", corpus, asked_for, known)
    half = len(own) // 2
    runs = [
        rankings([*range(half + 2)], [*range(half + 2)]),
        rankings([*range(half, len(own)), 1], [*range(2, half + 3)]),
    ]
    ranked = [JudgedRankings(dataset, run, known) for run in runs]
    return DeskPool.build(ranked, pool(ranked, 10, all_queries=True), 10)


def open_desk(folder: Path, pool: DeskPool | None = None, assessor: str = "anna", **settings: object) -> Desk:
    pool = pool or build_pool()
    chosen = DeskSettings(**{"order": "depth", **settings})  # type: ignore[arg-type]  # each test names its own
    return Desk(pool, AssessorJournal(folder / "journals", assessor, pool.greatest), chosen)


@dataclass(frozen=True)
class ServedDesk:
    """A desk with the address that its command prints, and a client that posts forms as a browser does."""

    desk: Desk
    access: LoopbackAccess
    client: httpx.Client

    @property
    def address(self) -> str:
        return self.access.address

    def post(self, path: str = "/judge", **fields: object) -> httpx.Response:
        return self.client.post(path, data=fields, headers={"origin": self.address})

    def decide(self, decision: object) -> httpx.Response:
        pair = self.desk.view().pair
        assert pair is not None
        return self.post(query_id=pair.ids[0], document_id=pair.ids[1], decision=decision)


@contextmanager
def serve_desk(desk: Desk, folder: Path, port: int = 0) -> Iterator[ServedDesk]:
    """Serve a desk from a thread until the block ends, then close its journal."""
    with bind_socket("127.0.0.1", port) as listener:
        listener.listen()  # a browser that is faster than the thread waits
        access = LoopbackAccess(format_address(listener))
        app = create_desk_app(desk, folder, access)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(base_url=access.address) as client:
                client.get(access.url)
                yield ServedDesk(desk, access, client)
        finally:
            server.should_exit = True
            thread.join()
            desk.journal.close()
