"""Send requests to a service over HTTP: a total time limit, retries while it is busy, no secrets in messages."""

from __future__ import annotations

import json
import os
import ssl
import time
import weakref
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import Any

import httpx

from retrievers.base import RetrieverError
from retrievers.excerpts import shorten_text
from retrievers.services.retry import backoff, parse_retry_after
from retrievers.services.transport import LimitedTransport, limit_total_time
from retrievers.spellings import HIDDEN, spell_secret
from retrievers.strict_values import parse_reply

HEALTH_TIMEOUT_S = 5.0
"""The longest time limit of a health check."""

LONGEST_WAIT_S = 60.0
"""The longest wait that a service may ask for. If it asks for more, the request is not retried."""

BUSY = frozenset({429, 502, 503, 504})
"""Status codes of a service that is overloaded or being restarted (RFC 9110, RFC 6585)."""

SHOWN = 200
"""How many characters of an unusable reply a message shows."""


class ServiceError(RuntimeError):
    """A request failed, or its reply cannot be read."""


class Connection:
    """A client of the service at one address. Threads may share it; it is closed when nothing refers to it any more.

    `secrets` are also sent as headers; messages show *** in place of their values. A request is retried up to `retries`
    times if there is no connection or no complete reply within `timeout_s`, or if the service is busy. The wait is
    `backoff_s`, doubled after each attempt, or what the service asks for. A reply may have at most `response_bytes`,
    decompressed.
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
        transport = LimitedTransport(httpx.URL(base_url), load_certificates())
        self._client = httpx.Client(timeout=timeout_s, headers={**headers, **secrets}, transport=transport)
        self._timeout_s, self._retries, self._backoff_s = timeout_s, retries, backoff_s
        self._response_bytes = response_bytes
        words = {word for secret in secrets.values() for word in (secret, *secret.split())}
        self._secrets = sorted({text for word in words for text in spell_secret(word)}, key=len, reverse=True)
        weakref.finalize(self, self._client.close)

    def check_health(self, path: str) -> str:
        """Send a GET request without retries; return why it failed, "" if it succeeded."""
        try:
            request = self._client.build_request("GET", self.base_url + path)
            response, content = self._send(request, min(HEALTH_TIMEOUT_S, self._timeout_s))
        except httpx.RequestError as error:
            return self._describe_error(error)
        except ServiceError as error:
            return str(error)
        return "" if response.is_success else self._describe_refusal(response, content)

    def fetch(self, method: str, path: str, payload: Mapping[str, Any] | None = None) -> tuple[object, float]:
        """Return the parsed JSON of a reply and the seconds of the last attempt; raises `ServiceError`.

        `payload` is sent as JSON, or as parameters if the method is GET.
        """
        request = self.build_request(method, path, payload)
        reason, wait = "", 0.0
        for attempt in range(self._retries + 1):
            time.sleep(wait)
            start, requested_wait = time.perf_counter(), 0.0
            try:
                response, content = self._send(request, self._timeout_s)
            except httpx.RequestError as error:
                reason = self._describe_error(error)
            else:
                seconds = time.perf_counter() - start
                if response.is_success:
                    try:
                        return parse_reply(content), seconds
                    except ValueError as error:
                        raise ServiceError(
                            f"{method} {self.base_url}{path}: the reply is not JSON that can be read ({error})"
                        ) from error
                reason = self._describe_refusal(response, content)
                requested_wait = parse_retry_after(response.headers) or 0.0
                if response.status_code not in BUSY:
                    break
            if requested_wait > LONGEST_WAIT_S:
                reason += f", and Retry-After asks for {requested_wait:.0f} s, longer than {LONGEST_WAIT_S:.0f} s"
                break
            wait = max(requested_wait, backoff(self._backoff_s, attempt))
        raise ServiceError(f"{method} {self.base_url}{path}: {reason} (attempt {attempt + 1})")

    def send_once(self, method: str, path: str, payload: Mapping[str, Any]) -> tuple[httpx.Response, bytes]:
        """Return the response to one request, whatever its status, and its content.

        Raises `httpx.RequestError` without a response, and `ServiceError` if it is too large.
        """
        return self._send(self.build_request(method, path, payload), self._timeout_s)

    def _send(self, request: httpx.Request, timeout_s: float) -> tuple[httpx.Response, bytes]:
        """Return a response and its content, received within a total time; raises `ServiceError` if it is too large."""
        content = bytearray()
        with limit_total_time(timeout_s), closing(self._client.send(request, stream=True)) as response:
            for part in response.iter_bytes():
                content += part
                if len(content) > self._response_bytes:
                    raise ServiceError(
                        f"the reply is longer than {self._response_bytes:,} bytes; raise response_bytes, or "
                        "request less"
                    )
        return response, bytes(content)

    def build_request(self, method: str, path: str, payload: Mapping[str, Any] | None) -> httpx.Request:
        """Return a request with the headers of the connection; `payload` is as in `fetch`."""
        if payload is None or method == "GET":
            url = httpx.URL(self.base_url + path)  # keeps the parameters of the path
            return self._client.build_request(method, url.copy_merge_params(payload) if payload else url)
        headers = {"Content-Type": "application/json"}
        return self._client.build_request(method, self.base_url + path, content=json.dumps(payload), headers=headers)

    def _describe_error(self, error: httpx.RequestError) -> str:
        return self.mask_secrets(f"{type(error).__name__}: {error}")

    def _describe_refusal(self, response: httpx.Response, content: bytes) -> str:
        shown = shorten_text(self.mask_secrets(content.decode("utf-8", "replace")), SHOWN)
        return f"HTTP {response.status_code} {shown}".rstrip()

    def mask_secrets(self, text: str) -> str:
        """Return a text with *** in place of the values of secret headers, also quoted and encoded ones."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


@cache
def load_certificates() -> ssl.SSLContext:
    """Return the trusted certificates. Loading them takes longer than most requests."""
    return httpx.create_ssl_context()


def read_secret(variable: str, setting: str) -> str:
    """Return the header value in an environment variable; raises `RetrieverError`, which never shows the value."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise RetrieverError(f"{setting}: the environment variable {variable} is not set; export it")
    if not (value.isascii() and value.isprintable()):
        raise RetrieverError(
            f"{setting}: the environment variable {variable} contains characters that are not allowed in a header"
        )
    return value


def resolve_port(url: httpx.URL) -> int:
    """Return the port of an address, or the default port of its scheme."""
    return url.port or {"http": 80, "https": 443}[url.scheme]
