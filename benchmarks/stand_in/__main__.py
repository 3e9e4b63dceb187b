"""Write the files of a trial, then serve generated documents: `python -m benchmarks.stand_in [NAME=VALUE ...]`.

folder=trial         where queries.jsonl, qrels.tsv and the folder model are written
documents=5000000    the number of documents
queries=200          the number of queries
port=9200            the port on this machine; 0 for a free one
latency_ms=0         how long each search waits in addition, as in a network
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.stand_in.documents import Documents
from benchmarks.stand_in.files import write_files
from benchmarks.stand_in.search import build_index
from benchmarks.stand_in.server import NAME, Api, create_server

DEFAULTS = {"folder": "trial", "documents": "5000000", "queries": "200", "port": "9200", "latency_ms": "0"}


def main(arguments: list[str]) -> int:
    """Serve until Ctrl-C; return 2 for arguments that are not understood."""
    given = dict(argument.partition("=")[::2] for argument in arguments)
    if not given.keys() <= DEFAULTS.keys():
        print(__doc__, file=sys.stderr)
        return 2
    values = DEFAULTS | given
    start, documents = time.perf_counter(), Documents(int(values["documents"]))
    write_files(documents, Path(values["folder"]), int(values["queries"]))
    index = build_index(documents)
    with create_server(Api(index, float(values["latency_ms"]) / 1000), port=int(values["port"])) as server:
        seconds = time.perf_counter() - start
        print(
            f"{documents.count:,} documents in the index {NAME} at http://127.0.0.1:{server.server_port} "
            f"after {seconds:.0f} s; Ctrl-C stops",
            flush=True,
        )
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
