"""Clients that connect and do not ask do not stay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from runner.web.timeouts import TimeoutProtocol

PATIENCE_S = 120
"""How long a test waits for what should happen at once."""

WAITING: list[object] = []


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    WAITING[:] = [connection.timer for connection in STATE.connections]  # type: ignore[union-attr]  # of this protocol
    await Response("whole")(scope, receive, send)


STATE = ServerState()


def run(client: Callable[[int], Coroutine[Any, Any, bytes]], **limits: Any) -> bytes:
    """Return what a client, called with the port, makes of a server with these limits."""

    async def serving() -> bytes:
        global STATE
        STATE = ServerState()
        config = uvicorn.Config(app, lifespan="off", log_config=None)
        config.load()
        protocol = partial(TimeoutProtocol, config=config, server_state=STATE, app_state={}, **limits)
        async with await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0) as server:
            return await asyncio.wait_for(client(server.sockets[0].getsockname()[1]), PATIENCE_S)

    return asyncio.run(serving())


async def sends(what: bytes, port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(what)
    reply = await reader.read()
    writer.close()
    return reply


@pytest.mark.parametrize(
    "part", [b"", b"POST /search HTTP/1.1\r\nHost: a\r\nX", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_request_that_does_not_end_is_ended(part: bytes) -> None:
    assert run(partial(sends, part), request_s=0.1, connections=9).startswith(b"HTTP/1.1 408 ")


def test_a_request_that_is_there_is_waited_for_no_more() -> None:
    whole = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    assert run(partial(sends, whole), request_s=PATIENCE_S, connections=9).endswith(b"whole")
    assert WAITING == [None]


def test_more_connections_than_the_limit_are_closed() -> None:
    async def client(port: int) -> bytes:
        _, first = await asyncio.open_connection("127.0.0.1", port)
        reader, second = await asyncio.open_connection("127.0.0.1", port)
        try:
            reply = await reader.read()
        except ConnectionResetError:
            reply = b""
        for writer in (first, second):
            writer.close()
        return b"closed" + reply

    assert run(client, request_s=PATIENCE_S, connections=1) == b"closed"
