"""Search through an HTTP API: one request per query, its reply read as a ranking.

The form of the request and the places of the results in the reply are settings, so that most APIs fit. Results of a
service are never cached, because it may answer differently next time.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl

import httpx
import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, RetrieverError, create_empty_rankings
from retrievers.connection import SHOWN, Connection, ServiceError, read_secret, resolve_port
from retrievers.store import NoStore, Store
from retrievers.threads import map_threads

REQUEST = {"query": "{query}", "top_k": "{top_k}", "search_type": "{search_type}", "include_answer": False}
"""The default request."""

_PLACEHOLDER = re.compile(r"\{(?:query|top_k|search_type)\}")

_PORT = "{port}"
"""The placeholder in `headers` for the port of the API."""

_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+:([!-~]([\t -~]*[!-~])?)?", re.ASCII)
"""A valid header (RFC 9110, 5.1 and 5.5): no line breaks, no spaces at the ends."""

_SECRET = re.compile("auth(?!ors?(?![a-z]))|cookie|credential|key(?!word)|passw|secret|token(?!iz)", re.IGNORECASE)
"""A part of a name that marks a secret; author, keyword and tokenizer do not."""

log = logging.getLogger(__name__)


@settings(frozen=True, config={"extra": "forbid", "hide_input_in_errors": True})
class Http:
    """Settings of a search API over HTTP. Paths into replies are keys and positions, joined by dots: `hits.0.id`.

    `request` (null: `REQUEST`) is sent as JSON (POST) or as parameters (GET). `{query}`, `{top_k}` and `{search_type}`
    in its values are replaced, then null values are left out. `results` is the path of the list of results in a reply,
    `item_id` and `score` are paths in each result. With `score` null, for an API without scores, the score is 1 / rank.

    The order of the service is kept, also among equal scores. Scores never rise: one that is higher than the score
    above it is lowered to that score. `lower_is_better` negates all scores first.

    The API is queried at `base_url` and at no other address. With `base_url` null, the first of the `ports` of this
    machine that answers `health_path` is queried. Another program may listen there, so `secret_headers` need a
    `base_url`. Rankings carry the address that answered. With `health_path` null there is no check before the queries.
    `expected_items`, a number or `corpus` for the size of the corpus, is compared with `total` in the reply to
    `items_path`; null skips this check.

    `{port}` in a value of `headers` is replaced by the port of the API. `secret_headers` maps headers to the
    environment variables that hold their values. A query is retried, `retries` times, when there is no connection, no
    complete reply within `timeout_s`, or a reply of status 429, 502, 503 or 504: after `backoff_s`, twice that, and so
    on, or after the wait that the service asks for. A reply of more than `response_bytes` is an error of its query.
    """

    live: ClassVar[bool] = True

    base_url: str | None = None
    search_type: str | None = None
    method: Literal["POST", "GET"] = "POST"
    search_path: str = "/search"
    request: dict[str, Any] | None = None
    results: str = "results"
    item_id: str = "item_id"
    score: str | None = "score"
    lower_is_better: bool = False
    health_path: str | None = "/health"
    ports: list[int] = Field(default_factory=list)
    items_path: str = "/items?limit=1"
    total: str = "total"
    expected_items: int | Literal["corpus"] | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    secret_headers: dict[str, str] = Field(default_factory=dict)
    timeout_s: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    retries: int = Field(default=3, ge=0)
    backoff_s: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    concurrency: int = Field(default=8, ge=1, repr=False)
    response_bytes: int = Field(default=1 << 26, ge=1, repr=False)

    def __post_init__(self) -> None:
        self._check_address()
        for setting, name in self._iter_recorded_names():
            if _SECRET.search(name):
                raise RetrieverError(
                    f"{setting}.{name}: looks like a secret and would be recorded; put its value into an environment "
                    f"variable, and name that in secret_headers"
                )
        self._check_request()
        for setting in ("search_path", "items_path", "health_path"):
            if not (getattr(self, setting) or "/").startswith("/"):
                raise RetrieverError(f"{setting}={getattr(self, setting)}: should begin with a /, as in /search")
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(f"{name}:{value}"):
                raise RetrieverError(f"headers.{name}: has characters not allowed in a header")

    def index(self, corpus: Corpus, store: Store) -> HttpSearcher:
        """Connect to the API, check its number of items, and return a searcher; raises `RetrieverError`."""
        connection = self._connect()
        if self.expected_items is not None:
            self._check_items(connection, len(corpus) if self.expected_items == "corpus" else self.expected_items)
        return HttpSearcher(self, connection, {name: position for position, name in enumerate(corpus.ids)})

    def _check_address(self) -> None:
        """Refuse a missing or malformed address, and one whose password would be recorded."""
        if self.base_url is None:
            if self.secret_headers:
                raise RetrieverError("secret_headers: set base_url, the only address that they are sent to")
            if self.health_path is None or not self.ports:
                raise RetrieverError(
                    "base_url: set it, for example to http://localhost:9200, or set health_path and ports to look for "
                    "a search API on this machine"
                )
            return
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise RetrieverError(f"base_url={self.base_url}: is not a valid address ({error})") from error
        if url.userinfo:
            raise RetrieverError("base_url: a password in an address would be recorded; put it into secret_headers")
        if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
            raise RetrieverError(f"base_url={self.base_url}: should be an address such as http://localhost:8001")

    def _check_request(self) -> None:
        """Refuse a request without a query, and one that GET parameters cannot hold."""
        if self.request and "{query}" not in json.dumps(self.request):
            raise RetrieverError("request: has no {query}, so that all queries would send the same request")
        for name, value in (self.request or {}).items():
            if self.method == "GET" and isinstance(value, Mapping):
                raise RetrieverError(f"request.{name}: has nested keys, which method=GET cannot send; set method=POST")

    def _iter_recorded_names(self) -> Iterator[tuple[str, str]]:
        """Yield each setting and user-defined name whose value would be recorded."""
        yield from (("headers", name) for name in self.headers)
        yield from (("request", name) for name in _iter_text_names(self.request))
        for setting in ("search_path", "items_path", "health_path"):
            path = getattr(self, setting) or ""
            yield from ((setting, name) for name, _ in parse_qsl(path.partition("?")[2], keep_blank_values=True))

    def _connect(self) -> Connection:
        """Return a connection to the first address that answers."""
        secrets = {
            header: read_secret(variable, f"secret_headers.{header}")
            for header, variable in self.secret_headers.items()
        }
        tried: list[str] = []
        for url in self._iter_addresses():
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
            f"no search API answers: tried {', '.join(tried)}; start it, or set the retriever's base_url"
            f"{'; if the server does not know the name in headers.Host, remove that header' if host else ''}"
        )

    def _iter_addresses(self) -> Iterator[httpx.URL]:
        """Yield the addresses to try: `base_url`, or else the ports of this machine."""
        if self.base_url is not None:
            yield httpx.URL(self.base_url)
            return
        for port in dict.fromkeys(self.ports):
            yield httpx.URL(f"http://localhost:{port}")

    def _check_items(self, connection: Connection, expected: int) -> None:
        skip = "set the retriever's expected_items to null to skip this check"
        try:
            reply, _ = connection.fetch("GET", self.items_path)
            total = _resolve_path(reply, self.total)
        except ServiceError as error:
            raise RetrieverError(f"{connection.base_url}: cannot count its items ({error}); {skip}") from error
        if total != expected:
            source = "the size of the corpus" if self.expected_items == "corpus" else "by expected_items"
            raise RetrieverError(
                f"{connection.base_url}: has {total} items where {expected} are expected ({source}); is this the right "
                f"database? If so, {skip}"
            )


@dataclass(frozen=True, eq=False)
class HttpSearcher:
    """A connection to an API, and the position of each document by its id. Threads may share it."""

    settings: Http
    connection: Connection
    positions: Mapping[str, int]

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the results of the API; the time of a query is that of its last attempt, with others under way.

        Items that the corpus lacks keep their rank, as unknown hits. Repeated items are left out. The diagnostics count
        both, and the queries whose scores rise.
        """
        rankings, seconds = create_empty_rankings(len(queries), k), np.full(len(queries), np.nan, dtype=np.float32)
        replies = list(map_threads(lambda query: self._search_one(query, k), queries, self.settings.concurrency))
        unknown: dict[str, int] = {}
        for row, reply in enumerate(replies):
            rankings.documents[row, : len(reply.ids)] = [self._find_position(name, unknown) for name in reply.ids]
            rankings.scores[row, : len(reply.scores)] = reply.scores
            seconds[row] = reply.seconds
        errors = {row: reply.error for row, reply in enumerate(replies) if reply.error}
        diagnostics = {
            "unknown_items": float(np.count_nonzero(rankings.documents >= len(self.positions))),
            "repeated_items": float(sum(reply.repeated for reply in replies)),
            "rising_scores": float(sum(reply.rising for reply in replies)),
        }
        return replace(
            rankings, seconds=seconds, errors=errors or None, diagnostics=diagnostics, unknown_ids=tuple(unknown),
            addresses={"": self.connection.base_url},
        )  # fmt: skip

    def _find_position(self, name: str, unknown: dict[str, int]) -> int:
        """Return the position of an item; one that the corpus lacks is added to `unknown`, behind the corpus."""
        known = self.positions.get(name)
        return unknown.setdefault(name, len(self.positions) + len(unknown)) if known is None else known

    def _search_one(self, query: str, k: int) -> _Reply:
        text = query.encode("utf-8", "replace").decode()  # lone surrogates cannot be sent
        values = {"{query}": text, "{top_k}": k, "{search_type}": self.settings.search_type}
        payload = _fill(self.settings.request or REQUEST, values)
        try:
            reply, seconds = self.connection.fetch(self.settings.method, self.settings.search_path, payload)
            return replace(self._parse(reply, k), seconds=seconds)
        except ServiceError as error:
            return _Reply(error=str(error))

    def _parse(self, reply: object, k: int) -> _Reply:
        """Return the first k distinct items of a reply."""
        results = _resolve_path(reply, self.settings.results)
        if not isinstance(results, list):
            raise ServiceError(f"the reply's {self.settings.results} is not a list")
        items: dict[str, float] = {}
        for rank, result in enumerate(results, start=1):
            name = _parse_id(_resolve_path(result, self.settings.item_id))
            if name not in items:
                items[name] = (
                    _parse_score(_resolve_path(result, self.settings.score)) if self.settings.score else 1 / rank
                )
        scores = _convert_scores(list(items.values())[:k])
        if self.settings.lower_is_better:
            scores = 0 - scores
        falling = np.minimum.accumulate(scores)
        rising = bool((falling != scores).any())
        return _Reply(list(items)[:k], falling, repeated=len(results) - len(items), rising=rising)


@dataclass(frozen=True)
class _Reply:
    """The ids and scores of the items for a query, or an error, and the number of repeated items."""

    ids: Sequence[str] = ()
    scores: NDArray[np.float32] | Sequence[float] = ()
    seconds: float = float("nan")
    error: str = ""
    repeated: int = 0
    rising: bool = False


def _fill(template: object, values: Mapping[str, object]) -> Any:  # noqa: ANN401 (any JSON)
    """Return a template with its placeholders replaced and null values left out; text with a null in it is null."""
    if isinstance(template, Mapping):
        filled = {name: _fill(value, values) for name, value in template.items()}
        return {name: value for name, value in filled.items() if value is not None}
    if isinstance(template, list):
        return [_fill(value, values) for value in template]
    if not isinstance(template, str):
        return template
    if template in values:  # numbers stay numbers
        return values[template]
    unset = any(values[name] is None for name in _PLACEHOLDER.findall(template))
    return None if unset else _PLACEHOLDER.sub(lambda match: str(values[match[0]]), template)


def _iter_text_names(template: object, name: str = "") -> Iterator[str]:
    """Yield the names, joined by dots, of texts in a template that are not placeholders."""
    if isinstance(template, Mapping):
        for key, value in template.items():
            yield from _iter_text_names(value, f"{name}.{key}" if name else str(key))
    elif isinstance(template, list):
        for value in template:
            yield from _iter_text_names(value, name)
    elif isinstance(template, str) and not _PLACEHOLDER.fullmatch(template):
        yield name


def _resolve_path(reply: object, path: str) -> Any:  # noqa: ANN401 (any JSON)
    """Return the value at a path in a reply, the reply itself for ""; raises `ServiceError`."""
    for name in path.split(".") if path else ():
        if isinstance(reply, Mapping) and name in reply:
            reply = reply[name]
        elif isinstance(reply, list) and name.isdecimal() and int(name) < len(reply):
            reply = reply[int(name)]
        else:
            raise ServiceError(f"the reply has no {path}")
    return reply


def _parse_id(value: object) -> str:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is not an item id")


def _parse_score(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is not a score; set score=null for an API without scores")


def _convert_scores(values: Sequence[float]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            scores = np.array(values, dtype=np.float64).astype(np.float32)
    except OverflowError:  # an integer of hundreds of digits
        scores = np.full(1, np.inf, dtype=np.float32)
    if not np.isfinite(scores).all():
        raise ServiceError("a score does not fit in a 32-bit float")
    return scores
