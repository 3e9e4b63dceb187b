"""An HTTP server that answers as a script says, and counts the requests that it receives."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Script:
    """`answer` returns the status and the ids for a query; `chunked` sends the reply in chunks."""

    answer: Callable[[int, str], tuple[int, list[str]]]
    chunked: bool = False
    closes: bool = False
    delay_s: float = 0.0
    url: str = ""
    tls: ssl.SSLContext | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def run_script(script: Script) -> Iterator[Script]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.bodies.append(body)
            time.sleep(script.delay_s)
            status, ids = script.answer(len(script.bodies), body["query"])
            content = json.dumps({"hits": [{"id": name, "score": 1 / i} for i, name in enumerate(ids, 1)]}).encode()
            self.send_response(status)
            if script.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                parts = [content[at : at + 7] for at in range(0, len(content), 7)]
                content = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
            elif script.closes:
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        script.url = f"http{'s' if script.tls else ''}://127.0.0.1:{server.server_port}"
        if script.tls:
            server.socket = script.tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()
