"""Make one HTTP request to a model: JSON in, JSON out, and faults for errors."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx

from retrievers.services.connection import Connection, ServiceError
from retrievers.strict_values import parse_reply
from runner.llm.faults import Fault, fault_of_form, fault_of_status

RESPONSE_BYTES = 256 << 20
"""The largest reply that is read."""

_OPENING = threading.Lock()


def post_json(address: str, path: str, payload: Mapping[str, Any], header: str, key: str, timeout_s: float) -> object:
    """Return the JSON of the reply to one request with the key in a header; raises `Fault`."""
    with _OPENING:
        connection = _open(address, header, key, timeout_s, os.getpid())
    try:
        response, content = connection.send_once("POST", path, payload)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise Fault("unreachable", f"no connection ({_describe(error)})", again=True) from error
    except httpx.TimeoutException as error:
        raise Fault("timeout", "no answer within the time limit", again=True, tokens=None) from error
    except httpx.RequestError as error:
        raise Fault("connection", f"connection lost ({_describe(error)})", again=True, tokens=None) from error
    except ServiceError as error:
        raise Fault("malformed", str(error), tokens=None) from error
    text = content.decode("utf-8", "replace")
    try:
        reply: object = parse_reply(text)
    except ValueError as error:
        if response.is_success:
            raise fault_of_form(f"{error}: {text}") from error
        reply = None
    if not response.is_success:
        raise fault_of_status(response.status_code, reply, response.headers, text)
    return reply


def _describe(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__


@cache
def _open(address: str, header: str, key: str, timeout_s: float, _process: int) -> Connection:
    """Return the connection to an address, opened once per process."""
    value = f"Bearer {key}" if header.lower() == "authorization" else key
    return Connection(address, {}, {header: value} if key else {}, timeout_s, 0, 0.0, RESPONSE_BYTES)
