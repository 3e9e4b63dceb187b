"""Kill two sweeps that embed through an API at random moments, and count the texts that are paid for more than once.

    python -m benchmarks.embedding_kills --kills 20 [--documents 20000] [--seed 0]

The API is a stand-in on this machine, which bills a text once its reply is sent. Two sweeps over the same documents run
at a time; after each kill the same command starts again. A kill may hit between a reply and its record: such calls are
`lost` in the ledger, and only their texts may be billed again. The script exits with 1 if other texts were billed
again, if the ledger has fewer calls than the API, or if a text has no vector at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BATCH, CONCURRENCY, DIMENSIONS = 8, 4, 16
QUERIES = 50


class StandIn(ThreadingHTTPServer):
    """OpenAI's `/embeddings`. `billed` counts the texts whose reply was sent, `requests` all requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.billed: Counter[str] = Counter()
        self.requests = 0
        self.lock = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors from killed clients."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        with self.server.lock:
            self.server.requests += 1
        time.sleep(0.1)
        vectors = [random.Random(text) for text in texts]
        data = [
            {"index": i, "embedding": [chance.random() for _ in range(DIMENSIONS)]} for i, chance in enumerate(vectors)
        ]
        body = json.dumps({"data": data, "usage": {"prompt_tokens": sum(len(text.split()) for text in texts)}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        with self.server.lock:
            self.server.billed.update(texts)


def main() -> int:
    """Run the sweeps and the kills, and print the findings."""
    parser = argparse.ArgumentParser()
    for name, default in (("kills", 20), ("documents", 20_000), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name, StandIn() as server:
        folder = Path(name)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        write_dataset(folder, given.documents)
        commands = [build_command(server, metric) for metric in ("cosine", "l2")]
        killed = 0
        running = [start(command, folder) for command in commands]
        while killed < given.kills and any(process.poll() is None for process in running):
            time.sleep(chance.uniform(1.0, 6.0))
            victim = chance.randrange(2)
            if running[victim].poll() is None:
                running[victim].send_signal(signal.SIGKILL)
                running[victim].wait()
                killed += 1
                running[victim] = start(commands[victim], folder)
        codes = [process.wait() for process in running]
        with closing(sqlite3.connect(folder / "mlruns" / "llm.db")) as database:
            outcomes = dict(database.execute("SELECT coalesce(outcome, 'lost'), count(*) FROM calls GROUP BY 1"))
            ((vectors,),) = database.execute("SELECT count(*) FROM vectors")
    again = sum(n - 1 for n in server.billed.values())
    print(f"{killed} kills; {len(server.billed):,} texts billed, {again} of them again; calls: {outcomes}")
    wrong = [
        (any(codes), f"exit codes {codes}"),
        (again > outcomes.get("lost", 0) * BATCH, "more texts were billed again than lost calls had"),
        (sum(outcomes.values()) < server.requests, f"{server.requests} requests, but fewer calls in the ledger"),
        (vectors != given.documents + QUERIES, f"{vectors:,} vectors"),
    ]
    print(
        "; ".join(message for failed, message in wrong if failed)
        or "no text was billed again outside a call that a kill cut short"
    )
    return int(any(failed for failed, _ in wrong))


def write_dataset(folder: Path, documents: int) -> None:
    """Write documents and queries, all different."""
    rows = [json.dumps({"id": f"d{i}", "text": f"the text of document {i}"}) for i in range(documents)]
    (folder / "documents.jsonl").write_text("\n".join(rows))
    rows = [json.dumps({"id": f"q{i}", "text": f"query {i}", "gold": f"d{i}"}) for i in range(QUERIES)]
    (folder / "queries.jsonl").write_text("\n".join(rows))


def build_command(server: StandIn, metric: str) -> list[str]:
    """Return the command of a sweep of one combination."""
    encoder = {
        "model": "m", "base_url": f"http://127.0.0.1:{server.server_port}", "batch_size": BATCH,
        "concurrency": CONCURRENCY,
    }  # fmt: skip
    settings = [f"encoder.{name}={value}" for name, value in encoder.items()]
    dataset = ["dataset=jsonl", "dataset.documents=documents.jsonl", "dataset.queries=queries.jsonl"]
    sweep = ["-m", "retriever=dense", f"retriever.metric={metric}", "encoder=api", "tracking=none"]
    return [sys.executable, "-m", "runner", *sweep, *dataset, *settings]


def start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a sweep in a folder, without output."""
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
