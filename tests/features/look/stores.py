"""A store with a sweep of two combinations and an evaluation, and a server of `look` in a thread of the test."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import orjson
import uvicorn

from runner.comparison.compare import TableStatistics
from runner.config.consent import Consent
from runner.evaluation.bench import Bench
from runner.features.look.app import create_look_app, open_apps
from runner.features.look.pages import PageBuilder
from runner.features.look.results import StoredResults
from runner.features.look.shown import ShownRuns, select_shown
from runner.store.opening import open_store
from runner.store.settings import StoreSettings
from runner.tracking.fetching import Runs
from runner.tracking.settings import Tracking
from runner.web.guard import LoopbackAccess
from runner.web.server import bind_socket, format_address

NAME = "tuning <img src=x onerror=window.hit=1>"
LONG = "The ferry leaves. " + "Nothing of interest follows. " * 100 + "At the end, the island appears."
TEXTS = {
    "d0": LONG,
    "d1": "<script>window.hit = 1</script> The museum has models of a ferry and an island.",
    "d2": "A ferry goes to the island every hour, and from the island back.",
    "d3": "The market sells fish.",
    "d4": "Island music at the museum.",
}
QUERIES = {"q0": "ferry island", "q1": "museum models"}
DATA = ("dataset=beir", "dataset.path=data", "tracking.background=false", "statistics.permutations=100")


def write_dataset(folder: Path) -> None:
    """Write a dataset in BEIR's layout."""
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", TEXTS), ("queries", QUERIES)):
        rows = [orjson.dumps({"_id": id, "text": text}) + b"\n" for id, text in texts.items()]
        (folder / f"{name}.jsonl").write_bytes(b"".join(rows))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td2\t1\nq1\td1\t1\n")


@dataclass(frozen=True)
class ServedStore:
    """A server of the runs of a folder: its address, and a client that asks as a page of the server does."""

    tracking: Tracking
    shown: ShownRuns
    access: LoopbackAccess
    client: httpx.Client
    folder: Path

    @property
    def address(self) -> str:
        """Return the address of the server without its token."""
        return self.access.address

    @property
    def page(self) -> str:
        """Return the path of the first page."""
        return f"/show/{self.shown.key}"

    def read_runs(self) -> dict[str, str]:
        """Return the ids of the runs by name."""
        return dict(self._change("select name, run_uuid from runs where lifecycle_stage = 'active'"))

    def set_status(self, run: str, status: str) -> None:
        """Give a run a status, as if the sweep were there by now."""
        self._change("update runs set status = ? where run_uuid = ?", status, run)

    def _change(self, query: str, *values: str) -> list[tuple[str, str]]:
        file = self.tracking.sqlite_file()
        assert file is not None
        with closing(sqlite3.connect(file)) as database, database:
            return database.execute(query, values).fetchall()


@contextmanager
def serve_store(tracking: Tracking, folder: Path, *words: str, sweep: str | None = None) -> Iterator[ServedStore]:
    """Serve the runs that words name until the block ends."""
    runs = Runs(tracking)
    shown = select_shown(words, sweep, runs)
    results = StoredResults(runs, Bench(open_store(StoreSettings(str(folder / "cache")))), Consent())
    with bind_socket("127.0.0.1", 0) as listener:
        listener.listen()
        access = LoopbackAccess(format_address(listener))
        with open_apps({"depth": 10, "assessor": "anna"}, results, access) as apps:
            builder = PageBuilder(results, TableStatistics(permutations=100))
            app = create_look_app(builder, apps, shown, Path("baselines"), access)
            server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            try:
                headers = {"origin": access.address}
                with httpx.Client(base_url=access.address, headers=headers, timeout=60) as client:
                    client.get(access.url)
                    yield ServedStore(tracking, shown, access, client, folder)
            finally:
                server.should_exit = True
                thread.join()
