"""Sends requests over HTTP/1.1 with persistent connections, in one thread, without waiting for replies.

Requests are written before the test, and replies are read after it: meanwhile, only their ends are found. A general
client takes several times as much of the processor, which it would take from a service on the same machine.
"""

from __future__ import annotations

import re
import select
import selectors
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from retrievers.services.connection import resolve_port
from runner.features.load.generator import Failure, Reply

IDLE_S = 4.0
"""The seconds after which an unused connection is replaced; many servers close it after five."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[^\r]*close", re.IGNORECASE)
_WAIT = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ServerAddress:
    """A server: where it is, and the request of each query as it is sent there."""

    def __init__(self, url: httpx.URL, requests: Sequence[httpx.Request], certificates: ssl.SSLContext) -> None:
        self.host, self.context = url.host, certificates if url.scheme == "https" else None
        resolved = socket.getaddrinfo(url.host, resolve_port(url), type=socket.SOCK_STREAM)[0]
        self.family, self.place = resolved[0], resolved[4]
        self.requests = [write_request(request) for request in requests]
        self.idle: list[_Connection] = []

    def open_socket(self) -> socket.socket:
        """Return a socket that begins to connect."""
        opened = socket.socket(self.family, socket.SOCK_STREAM)
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context is not None:
            opened = self.context.wrap_socket(opened, server_hostname=self.host, do_handshake_on_connect=False)
        opened.connect_ex(self.place)
        return opened


def write_request(request: httpx.Request) -> bytes:
    """Return a request as it is sent."""
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    return b"\r\n".join([*lines, b"", request.content])


def read_response(content: bytes) -> httpx.Response:
    """Return a complete reply, decompressed."""
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = [(name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    if _CHUNKED.search(head):
        parts, at = [], 0
        while (chunk := _find_chunk(body, at)) and chunk.start < chunk.stop:
            parts.append(body[chunk])
            at = chunk.stop + 2
        body = b"".join(parts)
    return httpx.Response(int(first.split(b" ", 2)[1]), headers=headers, content=body)


def _find_chunk(content: bytes, at: int | None) -> slice | None:
    """Return where the data of the chunk are that begins at a position; None if it is not complete."""
    if (line := content.find(b"\r\n", at)) < 0:
        return None
    end = line + 2 + int(content[at:line].partition(b";")[0], 16)
    return slice(line + 2, end) if end + 2 <= len(content) else None


@dataclass(eq=False)
class _Connection:
    """A connection and the request that it carries; `number` is -1 for none."""

    address: ServerAddress
    socket: socket.socket
    number: int
    out: bytes
    is_ready: bool = False
    used: float = 0.0
    reply: bytes = b""
    body: int = 0
    end: int | None = 0
    is_chunked: bool = False

    def is_complete(self, is_closed: bool) -> bool:
        """Return whether the reply has been received, to its last byte."""
        while not self.body:
            if (at := self.reply.find(b"\r\n\r\n")) < 0:
                return False
            if self.reply[9:10] == b"1":  # 100 Continue and the like
                self.reply = self.reply[at + 4 :]
                continue
            self.body, head = at + 4, self.reply[: at + 2]
            self.is_chunked, length = bool(_CHUNKED.search(head)), _LENGTH.search(head)
            self.end = self.body + int(length[1]) if length else self.body
            if not (length or self.is_chunked or head[9:12] in (b"204", b"304")):
                self.end = None  # it ends with the connection
        while self.is_chunked:  # `end` is where the next chunk begins; the last one is empty
            if (chunk := _find_chunk(self.reply, self.end)) is None or chunk.start == chunk.stop:
                return chunk is not None and self.reply.find(b"\r\n\r\n", chunk.start - 2) >= 0
            self.end = chunk.stop + 2
        return is_closed if self.end is None else len(self.reply) >= self.end


class HttpService:
    """Servers that share the requests: request i goes to server i modulo their number.

    At most `connections` are open at a time. The first use of a connection includes opening it.
    """

    def __init__(self, addresses: Sequence[ServerAddress], connections: int) -> None:
        self._addresses, self._free = addresses, connections
        self._selector = selectors.DefaultSelector()
        self._open: dict[int, _Connection] = {}
        self._ended: list[tuple[int, Reply]] = []

    def now(self) -> float:
        """Return the monotonic time."""
        return time.monotonic()

    def send(self, number: int, query: int) -> bool:
        """Send the request of a query through an idle or a new connection; return False if there may be no more."""
        address, now = self._addresses[number % len(self._addresses)], time.monotonic()
        while address.idle:
            connection = address.idle.pop()
            if now - connection.used < IDLE_S:
                connection.number, connection.out = number, address.requests[query]
                break
            self._close(connection)
        else:
            if not self._free:
                return False
            opened = address.open_socket()
            connection = _Connection(address, opened, number, address.requests[query])
            self._selector.register(opened, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            self._free -= 1
        self._open[number] = connection
        if connection.is_ready:
            self._write(connection)
        return True

    def receive(self, until: float) -> list[tuple[int, Reply]]:
        """Wait for replies, and return those that are complete."""
        wait = until - time.monotonic()
        if wait > 0 and not self._ended:
            # epoll counts milliseconds; select counts microseconds, and can wait for epoll
            select.select([self._selector.fileno()], [], [], wait)
        for key, events in self._selector.select(0):
            connection: _Connection = key.data
            if events & selectors.EVENT_WRITE:
                self._write(connection)
            if events & selectors.EVENT_READ and connection.socket.fileno() >= 0:
                self._read(connection)
        ended, self._ended = self._ended, []
        return ended

    def abandon(self, number: int) -> None:
        """Close the connection of a request."""
        if (connection := self._open.pop(number, None)) is not None:
            self._close(connection)

    def close(self) -> None:
        """Close all connections."""
        for key in list(self._selector.get_map().values()):
            key.data.socket.close()
        self._selector.close()

    def _write(self, connection: _Connection) -> None:
        """Send what is left of a request; a new connection is first completed."""
        waits_for_reply = False
        try:
            if not connection.is_ready:
                self._complete(connection)
            connection.out = connection.out[connection.socket.send(connection.out) :]
        except ssl.SSLWantReadError:
            waits_for_reply = True
        except _WAIT:
            pass
        except OSError as error:
            self._fail(connection, error)
            return
        writes = bool(connection.out) and not waits_for_reply
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)
        if self._selector.get_key(connection.socket).events != events:
            self._selector.modify(connection.socket, events, connection)

    def _complete(self, connection: _Connection) -> None:
        """Finish opening a connection, with TLS if the address needs it; raises `OSError`."""
        if problem := connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(problem, "connection failed")
        if isinstance(connection.socket, ssl.SSLSocket):
            connection.socket.do_handshake()
        connection.is_ready = True

    def _read(self, connection: _Connection) -> None:
        """Receive what has arrived; end the request if its reply is complete."""
        if not connection.is_ready:
            self._write(connection)  # a step of the handshake
            return
        is_closed = False
        try:
            while data := connection.socket.recv(1 << 16):
                connection.reply += data
                if len(data) < 1 << 16 and connection.address.context is None:
                    break
            else:
                is_closed = True
        except _WAIT:
            pass
        except OSError as error:
            self._fail(connection, error)
            return
        try:
            if connection.number >= 0 and connection.is_complete(is_closed):
                self._end(connection, is_closed)
            elif is_closed:
                self._fail(connection, OSError(0, "the connection was closed before a complete reply"))
        except ValueError:
            self._fail(connection, OSError(0, "the reply is not valid HTTP"))

    def _end(self, connection: _Connection, is_closed: bool) -> None:
        number, reply, body, status = connection.number, connection.reply, connection.body, connection.reply[9:12]
        del self._open[number]
        failure = Failure(f"HTTP {status.decode(errors='replace')}")
        self._ended.append((number, reply if status.startswith(b"2") else failure))
        connection.number, connection.reply, connection.body = -1, b"", 0
        if is_closed or _CLOSE.search(reply, 0, body):
            self._close(connection)
        else:
            connection.used = time.monotonic()
            connection.address.idle.append(connection)

    def _fail(self, connection: _Connection, error: OSError) -> None:
        """End the request of a connection that broke, and close it."""
        if connection.number >= 0:
            del self._open[connection.number]
            self._ended.append((connection.number, Failure(_explain(error))))
        elif connection in connection.address.idle:
            connection.address.idle.remove(connection)
        self._close(connection)

    def _close(self, connection: _Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._free += 1


def _explain(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = f"the certificate is not trusted: {error.verify_message}"
        return f"{reason}; if it is right, set the environment variable SSL_CERT_FILE to a file with it"
    return error.strerror or str(error)
