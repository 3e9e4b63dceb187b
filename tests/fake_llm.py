"""A server of models that misbehaves as real ones do: OpenAI's chat completions, Anthropic's messages, or any other.

Each request gets one behaviour of `FAULTS`, or is served: first those of `script`, in the order of arrival, then by
`rates`, drawn with `seed` from the request's number, so that the same run has the same faults. It counts what it did.
In a process of its own: `python -m tests.fake_llm --rates '{"server": 0.05}'` prints its address as the first line and
answers `GET /counts`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import socketserver
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

FAULTS = {
    "rate_limited": "429, with Retry-After in seconds",
    "rate_limited_date": "429, with Retry-After as a date",
    "server": "500",
    "overloaded": "529",
    "conflict": "409",
    "timeout": "holds the line for `hang_s`, then closes it",
    "cut": "closes the connection in the middle of the answer",
    "dropped": "closes the connection without an answer",
    "html": "200, with a page of a proxy in place of JSON",
    "repeated_key": "200, with an object that has a key twice",
    "hollow": "200, with JSON that holds no answer",
    "bad_request": "400",
    "unauthorized": "401, with the key repeated in the message",
    "forbidden": "403",
    "not_found": "404",
    "refusal": "a refusal that is marked as one",
    "empty": "an empty answer",
    "prose": "a sentence in place of JSON",
    "wrong_number": "JSON with a grade that is off the scale",
    "no_number": "JSON with a grade that is no number",
    "fenced": "JSON within a code fence",
}

TEXTS = {
    "prose": "Well, it depends on what one is after; on the whole these would help a little.",
    "wrong_number": '{"grade": 57, "reasoning": "Very good."}',
    "no_number": '{"grade": "good", "reasoning": "Very good."}',
}

STATUS = {
    "rate_limited": 429, "rate_limited_date": 429, "server": 500, "overloaded": 529, "conflict": 409,
    "bad_request": 400, "unauthorized": 401, "forbidden": 403, "not_found": 404,
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One request: what it asked, of which model, with which body and headers, and what became of it."""

    question: str
    system: str
    model: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    path: str
    behaviour: str


def grade_of(question: str, system: str = "") -> str:
    """Return a grade as JSON, always the same for the same question."""
    grade = int(hashlib.sha256(f"{system}\0{question}".encode()).hexdigest(), 16) % 10 + 1
    return json.dumps({"grade": grade, "reasoning": "So it is."})


@dataclass(eq=False)
class FakeLLM:
    """A fake server within a `with` block, on a port of its own; `url` is what `base_url` is to be.

    `answer` is given question and system. `script` and `rates` are as the module says, "ok" being no fault.
    `retry_after_s` is what a 429 asks for, `hang_s` how long a time-out lasts, `delay_s` how long each answer takes.
    Tokens are words: of system and question, and of the answer. `respond` makes it another service: it is given path
    and body of a request, and returns the JSON of the reply; what it raises closes the connection.
    """

    answer: Callable[[str, str], str] = grade_of
    script: Sequence[str] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    retry_after_s: float = 0.0
    hang_s: float = 1.0
    delay_s: float = 0.0
    port: int = 0
    respond: Callable[[str, Any], Any] | None = None

    def __post_init__(self) -> None:
        if unknown := ({*self.script, *self.rates} - {"ok", *FAULTS}):
            raise ValueError(f"no such faults: {', '.join(sorted(unknown))}")
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self._at_once = 0
        self._waiting = list(self.script)[::-1]
        self._arrived = 0
        self._lock = threading.Lock()

    @property
    def counts(self) -> Counter[str]:
        """Return how many requests got each behaviour."""
        return Counter(each.behaviour for each in self.asked)

    @property
    def address(self) -> str:
        """Return where it is, as Anthropic's and Azure's SDKs want it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """Return where it is, as OpenAI's SDK wants it."""
        return f"{self.address}/v1"

    def __enter__(self) -> FakeLLM:
        self._server = _Server(("127.0.0.1", self.port), _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def arrive(self) -> str:
        """Return how the next request is treated."""
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            if self._waiting:
                return self._waiting.pop()
            drawn = random.Random(f"{self.seed} {self._arrived}").random()
            self._arrived += 1
        for behaviour, rate in self.rates.items():
            if drawn < rate:
                return behaviour
            drawn -= rate
        return "ok"

    def note(self, asked: Asked) -> None:
        """Keep what was asked; it is told before it is answered."""
        with self._lock:
            self.asked.append(asked)

    def leave(self) -> None:
        """Note that a request is done with."""
        with self._lock:
            self._at_once -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    fake: FakeLLM

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's looks its own name up
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self._reply(200, dict(self.server.fake.counts))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        behaviour = self.server.fake.arrive()
        try:
            self._serve(body, behaviour)
        finally:
            self.server.fake.leave()

    def _serve(self, body: dict[str, Any], behaviour: str) -> None:
        fake = self.server.fake
        roles = {message["role"]: str(message["content"]) for message in body.get("messages", ())}
        system, question = str(body.get("system") or roles.get("system", "")), roles.get("user", "")
        headers = {name.lower(): value for name, value in self.headers.items()}
        fake.note(Asked(question, system, str(body.get("model")), body, headers, self.path, behaviour))
        time.sleep(fake.delay_s)
        if behaviour in STATUS:
            self._fail(STATUS[behaviour], behaviour)
        elif behaviour == "html":
            self._write(200, b"<html><body>Bad gateway</body></html>", {"Content-Type": "text/html"})
        elif behaviour == "repeated_key":
            self._write(200, b'{"id": "one", "id": "other"}', {"Content-Type": "application/json"})
        elif behaviour == "hollow":
            self._reply(200, {"object": "nothing"})
        elif behaviour in ("timeout", "dropped"):
            time.sleep(fake.hang_s if behaviour == "timeout" else 0)
            self.close_connection = True
        elif fake.respond is not None:
            self._reply(200, fake.respond(self.path, body), cut=behaviour == "cut")
        else:
            text = TEXTS.get(behaviour) or fake.answer(question, system)
            text = f"```json\n{text}\n```" if behaviour == "fenced" else text
            anthropic = self.path.endswith("/messages")
            answered = (_message if anthropic else _completion)(text, behaviour)
            words = len(system.split()) + len(question.split()), len(text.split())
            names = ("input_tokens", "output_tokens") if anthropic else ("prompt_tokens", "completion_tokens")
            answered["usage"] = {**dict(zip(names, words, strict=True)), "total_tokens": sum(words)}
            self._reply(200, {**answered, "model": body.get("model")}, cut=behaviour == "cut")

    def _fail(self, status: int, behaviour: str) -> None:
        key = self.headers.get("Authorization") or self.headers.get("api-key") or self.headers.get("x-api-key") or ""
        wait = self.server.fake.retry_after_s
        after = {
            "rate_limited": {"Retry-After": f"{wait:g}"},
            "rate_limited_date": {"Retry-After": formatdate(time.time() + wait, usegmt=True)},
        }
        said = {"type": behaviour, "message": f"The request is {behaviour}. {key.removeprefix('Bearer ')}"}
        self._reply(status, {"type": "error", "error": said}, after.get(behaviour, {}))

    def _reply(self, status: int, body: Any, headers: Mapping[str, str] | None = None, cut: bool = False) -> None:
        self._write(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}, cut)

    def _write(self, status: int, body: bytes, headers: Mapping[str, str], cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut


def _completion(text: str, behaviour: str) -> dict[str, Any]:
    refused = behaviour == "refusal"
    message = {"role": "assistant", "content": None if refused else text, "refusal": text if refused else None}
    if behaviour == "empty":
        message["content"] = ""
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "choices": [choice]}


def _message(text: str, behaviour: str) -> dict[str, Any]:
    content = [] if behaviour in ("empty", "refusal") else [{"type": "text", "text": text}]
    reason = "refusal" if behaviour == "refusal" else "end_turn"
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": reason}


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rates", type=json.loads, default={})
    for name in ("seed", "port"):
        parser.add_argument(f"--{name}", type=int, default=0)
    for name, default in (("retry-after-s", 0.0), ("hang-s", 1.0), ("delay-s", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    with FakeLLM(**vars(parser.parse_args())) as fake:
        sys.stdout.write(f"{fake.address}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
