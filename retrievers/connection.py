"""Questions to a service over HTTP: asked again while it is overloaded, and without its secrets in what is told of it.

It knows nothing of what is asked, or of what an answer means.
"""

from __future__ import annotations

import json
import os
import ssl
import time
import weakref
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpx

from retrievers.base import RetrieverError
from retrievers.deadline import limit_total_time, within

PRESENT_S = 5.0
"""How long a place is given to say that there is a service."""

LONGEST_WAIT_S = 60.0
"""How long is waited between attempts at most; a service that wants more of a rest is not asked again."""

BUSY = frozenset({429, 502, 503, 504})
"""What an overloaded service answers, or one that is being restarted (RFC 9110, RFC 6585)."""

SHOWN = 200
"""How many characters of an unusable answer are part of a message."""


class ConnectionFailed(RuntimeError):
    """A question got no answer, or one that cannot be read."""


class Connection:
    """A client of a service at one place, which threads may share, closed when nothing refers to it any more.

    `secrets` are headers too, whose values are in no message. A question is asked again, `retries` times, where there
    is no connection, no whole answer within `timeout_s`, or a busy one: after `backoff_s`, twice that, and so on, or
    when the service says. An answer has at most `response_bytes`, unpacked.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        secrets: Mapping[str, str],
        timeout_s: float,
        retries: int,
        backoff_s: float,
        response_bytes: int,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._client = httpx.Client(timeout=timeout_s, headers={**headers, **secrets}, verify=_trusted())
        limit_total_time(self._client)
        self._timeout_s, self._retries, self._backoff_s = timeout_s, retries, backoff_s
        self._response_bytes = response_bytes
        words = {word for secret in secrets.values() for word in (secret, *secret.split())}
        self._secrets = sorted(words, key=len, reverse=True)
        weakref.finalize(self, self._client.close)

    def trouble(self, path: str) -> str:
        """Return what is wrong with the answer to a question that is asked once, "" where it is a good one."""
        try:
            request = self._client.build_request("GET", self.base_url + path)
            response, content = self._sent(request, min(PRESENT_S, self._timeout_s))
        except httpx.RequestError as error:
            return self._told(error)
        except ConnectionFailed as error:
            return str(error)
        return "" if response.is_success else self._refused(response, content)

    def ask(self, method: str, path: str, asked: Mapping[str, Any] | None = None) -> tuple[object, float]:
        """Return the JSON of an answer, and the seconds that its attempt took; raises `ConnectionFailed`.

        `asked` is sent as JSON, or in the address where the method is GET.
        """
        request = self._request(method, path, asked)
        said, wait = "", 0.0
        for attempt in range(self._retries + 1):
            time.sleep(wait)
            start, rest = time.perf_counter(), 0.0
            try:
                response, content = self._sent(request, self._timeout_s)
            except httpx.RequestError as error:
                said = self._told(error)
            else:
                seconds = time.perf_counter() - start
                if response.is_success:
                    return _json_of(content), seconds
                said, rest = self._refused(response, content), _retry_after(response)
                if response.status_code not in BUSY:
                    break
            if rest > LONGEST_WAIT_S:
                said += f", to be asked again in {rest:.0f} s"
                break
            wait = max(rest, min(self._backoff_s * 2**attempt, LONGEST_WAIT_S))
        raise ConnectionFailed(f"{method} {self.base_url}{path}: {said} (attempt {attempt + 1})")

    def _sent(self, request: httpx.Request, timeout_s: float) -> tuple[httpx.Response, bytes]:
        """Return a response and its content, both within a total time; raises `ConnectionFailed` if it is too large."""
        content = bytearray()
        with within(timeout_s), closing(self._client.send(request, stream=True)) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > self._response_bytes:
                    raise ConnectionFailed(
                        f"the reply has more than {self._response_bytes:,} bytes; raise response_bytes, or request less"
                    )
        return response, bytes(content)

    def _request(self, method: str, path: str, asked: Mapping[str, Any] | None) -> httpx.Request:
        if asked is None or method == "GET":
            url = httpx.URL(self.base_url + path)  # whose own parameters stay
            return self._client.build_request(method, url.copy_merge_params(asked) if asked else url)
        headers = {"Content-Type": "application/json"}
        return self._client.build_request(method, self.base_url + path, content=json.dumps(asked), headers=headers)

    def _told(self, error: httpx.RequestError) -> str:
        return self._without_secrets(f"{type(error).__name__}: {error}")

    def _refused(self, response: httpx.Response, content: bytes) -> str:
        shown = self._without_secrets(" ".join(content.decode("utf-8", "replace").split()))[:SHOWN]
        return f"HTTP {response.status_code} {shown}".rstrip()

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates that are trusted, whose reading takes longer than most requests."""
    return httpx.create_ssl_context()


def from_environment(name: str, place: str) -> str:
    """Return the header that an environment variable has; `place` is the setting, for messages, without its value."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise RetrieverError(f"{place}: the environment variable {name} is not set")
    if not (value.isascii() and value.isprintable()):
        raise RetrieverError(f"{place}: the environment variable {name} has characters that no header has")
    return value


def port_of(url: httpx.URL) -> int:
    """Return the port of an address, which may be its scheme's."""
    return url.port or {"http": 80, "https": 443}[url.scheme]


def _retry_after(response: httpx.Response) -> float:
    """Return how many seconds a service wants to be left alone, 0 where it does not say (RFC 9110, 10.2.3)."""
    said = response.headers.get("Retry-After", "").strip()
    if said.isdecimal():
        return float(said)
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, OverflowError):  # no date, or one with a number that no date has
        return 0.0
    until = until.replace(tzinfo=until.tzinfo or UTC)  # a date of HTTP is in GMT, said or not (5.6.7)
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)


def _json_of(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConnectionFailed(f"the reply is no JSON ({type(error).__name__})") from error
