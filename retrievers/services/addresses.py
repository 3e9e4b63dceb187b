"""Find the address of a search API, and check that it answers and has the expected items."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import httpx

from retrievers.base import RetrieverError
from retrievers.services.connection import Connection, ServiceError, read_secret, resolve_port
from retrievers.services.templates import get_path

_PORT = "{port}"
"""The placeholder in `headers` for the port of the API."""

_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+:([!-~]([\t -~]*[!-~])?)?", re.ASCII)
"""A valid header (RFC 9110, 5.1 and 5.5): no line breaks, no spaces at the ends."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ApiAddress:
    """The address of an API, and what each request to it carries and may take.

    The API is queried at `base_url` and at no other address. With `base_url` null, the first of the `ports` of this
    machine that answers `health_path` is queried. Another program may listen there, so `secret_headers` need a
    `base_url`. With `health_path` null there is no check before the queries.

    `{port}` in a value of `headers` is replaced by the port of the API. `secret_headers` maps headers to the
    environment variables that hold their values.
    """

    base_url: str | None
    ports: Sequence[int]
    health_path: str | None
    headers: Mapping[str, str]
    secret_headers: Mapping[str, str]
    timeout_s: float
    retries: int
    backoff_s: float
    response_bytes: int

    def __post_init__(self) -> None:
        """Refuse a missing or malformed address, a malformed header, and a password, which would be recorded."""
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(f"{name}:{value}"):
                raise RetrieverError(f"headers.{name}: contains characters that are not allowed in a header")
        if self.base_url is None:
            if self.secret_headers:
                raise RetrieverError("secret_headers: secrets are sent only to a fixed address; set base_url")
            if self.health_path is None or not self.ports:
                raise RetrieverError(
                    "base_url: is required, for example http://localhost:9200; or set health_path and ports to "
                    "find a search API on this machine"
                )
            return
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise RetrieverError(f"base_url={self.base_url}: invalid address ({error})") from error
        if url.userinfo:
            raise RetrieverError(
                "base_url: the password in the address would be recorded; pass it in secret_headers instead"
            )
        if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
            raise RetrieverError(f"base_url={self.base_url}: should be an address such as http://localhost:8001")

    def connect(self) -> Connection:
        """Return a connection to the first address that answers; raises `RetrieverError` if none does."""
        secrets = {
            header: read_secret(variable, f"secret_headers.{header}")
            for header, variable in self.secret_headers.items()
        }
        tried: list[str] = []
        for url in self._iter_urls():
            headers = {name: value.replace(_PORT, str(resolve_port(url))) for name, value in self.headers.items()}
            connection = Connection(
                str(url), headers, secrets, self.timeout_s, self.retries, self.backoff_s, self.response_bytes
            )
            if self.health_path is None:
                return connection
            problem = connection.check_health(self.health_path)
            if not problem:
                if self.base_url is None:
                    log.warning("base_url is not set; using the search API at %s", connection.base_url)
                return connection
            tried.append(f"{url} ({problem})")
        host = any(name.lower() == "host" for name in self.headers)
        raise RetrieverError(
            f"no search API answered at {', '.join(tried)}; start it, or set the retriever's "
            f"base_url{'; if the server does not know the name in headers.Host, remove that header' if host else ''}"
        )

    def _iter_urls(self) -> Iterator[httpx.URL]:
        """Yield the addresses to try: `base_url`, or else the ports of this machine."""
        if self.base_url is not None:
            yield httpx.URL(self.base_url)
            return
        for port in dict.fromkeys(self.ports):
            yield httpx.URL(f"http://localhost:{port}")


def check_items(connection: Connection, address: str, path: str, expected: int, source: str) -> None:
    """Raise `RetrieverError` unless the number at a path of the reply to an address is the expected one.

    `source` says in the message where the expected number comes from.
    """
    skip = "set the retriever's expected_items to null to skip this check"
    try:
        reply, _ = connection.fetch("GET", address)
        total = get_path(reply, path)
    except (ServiceError, LookupError) as error:
        raise RetrieverError(f"{connection.base_url}: the items could not be counted ({error}); {skip}") from error
    if total != expected:
        raise RetrieverError(
            f"{connection.base_url}: expected {expected} items ({source}), found {total}. Is this the right "
            f"database? If so, {skip}"
        )
