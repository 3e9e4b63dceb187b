"""A search API somewhere else as a retriever: one request a query, its reply as a ranking.

How a request is put, and where in a reply the results are, is a setting, so that most APIs fit. What searches there,
and how, is not known here; so nothing of it is kept, and each search asks again.
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

from retrievers.base import Corpus, Rankings, RetrieverError, no_rankings
from retrievers.connection import SHOWN, Connection, ServiceError, read_secret, resolve_port
from retrievers.store import NoStore, Store
from retrievers.threads import side_by_side

REQUEST = {"query": "{query}", "top_k": "{top_k}", "search_type": "{search_type}", "include_answer": False}
"""What is sent where no other request is set."""

_PLACEHOLDER = re.compile(r"\{(?:query|top_k|search_type)\}")

_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+:([!-~]([\t -~]*[!-~])?)?", re.ASCII)
"""What a header may be (RFC 9110, 5.1 and 5.5): no line break, and no space but within."""

_SECRET = re.compile("auth(?!ors?(?![a-z]))|cookie|credential|key(?!word)|passw|secret|token(?!iz)", re.IGNORECASE)
"""What the name of a secret has in it; an author, a keyword and a tokenizer are none."""

log = logging.getLogger(__name__)


@settings(frozen=True, config={"extra": "forbid", "hide_input_in_errors": True})
class Http:
    """Settings of a search API over HTTP. Paths into replies are keys and positions with dots between: `hits.0.id`.

    `request` (null: `REQUEST`) is sent as JSON (POST) or as parameters (GET), `{query}`, `{top_k}` and `{search_type}`
    in its values filled in, and what is null then left out. `results` is where a reply has its list, `item_id` and
    `score` where each of that has these; null for `score`, of an API without one, makes it 1 / rank.

    The service's order is kept, also among equal scores. Scores only fall: one that is higher than that of the item
    above counts as much as that, unless `lower_is_better`, which turns the sign.

    The API is queried at `base_url` and nowhere else. Without a `base_url`, the first of the `ports` of this machine
    that answers `health_path` is queried: other programs may listen there, so `secret_headers` need a `base_url`.
    Rankings carry the address that answered. A null `health_path` skips the check.
    `golden_subdomain` asks for the host golden.localhost, by which a server tells its golden database from its others.
    `expected_items`, a number or as many as the `corpus`, is compared with the `total` of `items_path` (null: not at
    all).

    `secret_headers` names the environment variable that has each header's value. A query is asked again, `retries`
    times, when there is no connection, no whole answer within `timeout_s`, or one of status 429, 502, 503 or 504: after
    `backoff_s`, twice that, and so on, or when the service says. A reply of more than `response_bytes` is an error of
    its query.
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
    ports: list[int] = Field(default_factory=lambda: [8001, 8000, 8080, 3000])
    golden_subdomain: bool = True
    items_path: str = "/items?limit=1"
    total: str = "total"
    expected_items: int | Literal["corpus"] | None = "corpus"
    headers: dict[str, str] = Field(default_factory=dict)
    secret_headers: dict[str, str] = Field(default_factory=dict)
    timeout_s: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    retries: int = Field(default=3, ge=0)
    backoff_s: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    concurrency: int = Field(default=8, ge=1, repr=False)
    response_bytes: int = Field(default=1 << 26, ge=1, repr=False)

    def __post_init__(self) -> None:
        self._check_address()
        for place, name in self._recorded():
            if _SECRET.search(name):
                raise RetrieverError(
                    f"{place}.{name}: would be recorded; name the environment variable that has it in secret_headers"
                )
        self._check_request()
        for place in ("search_path", "items_path", "health_path"):
            if not (getattr(self, place) or "/").startswith("/"):
                raise RetrieverError(f"{place}={getattr(self, place)}: should begin with a /, as in /search")
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(f"{name}:{value}"):
                raise RetrieverError(f"headers.{name}: has characters that no header has")

    def index(self, corpus: Corpus, store: Store) -> HttpSearcher:
        """Find the API, compare how many items it has, and return a searcher; raises `RetrieverError`."""
        connection = self._connected()
        if self.expected_items is not None:
            self._check_items(connection, len(corpus) if self.expected_items == "corpus" else self.expected_items)
        return HttpSearcher(self, connection, {name: position for position, name in enumerate(corpus.ids)})

    def _check_address(self) -> None:
        """Refuse an address that is none or would be recorded with a password, and a missing one that is needed."""
        if self.base_url is None:
            if self.secret_headers:
                raise RetrieverError("secret_headers: set base_url, the only address that they are sent to")
            if self.health_path is None or not self.ports:
                raise RetrieverError("base_url: set it; without health_path and ports, no search API can be looked for")
            return
        try:
            url = httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise RetrieverError(f"base_url={self.base_url}: is no address ({error})") from error
        if url.userinfo:
            raise RetrieverError("base_url: a password in an address would be recorded; put it into secret_headers")
        if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
            raise RetrieverError(f"base_url={self.base_url}: should be an address such as http://localhost:8001")

    def _check_request(self) -> None:
        """Refuse a request that would not say what is searched for, or that no address can hold."""
        if self.request and "{query}" not in json.dumps(self.request):
            raise RetrieverError("request: has no {query}, so that every query would be asked alike")
        for name, value in (self.request or {}).items():
            if self.method == "GET" and isinstance(value, Mapping):
                raise RetrieverError(f"request.{name}: has keys of its own, which method=GET cannot send; take POST")

    def _recorded(self) -> Iterator[tuple[str, str]]:
        """Yield where a setting has a text under a name of the user's, and the name."""
        yield from (("headers", name) for name in self.headers)
        yield from (("request", name) for name in _texts(self.request))
        for place in ("search_path", "items_path", "health_path"):
            path = getattr(self, place) or ""
            yield from ((place, name) for name, _ in parse_qsl(path.partition("?")[2], keep_blank_values=True))

    def _connected(self) -> Connection:
        """Return a connection to the first place where the API is."""
        secrets = {
            header: read_secret(name, f"secret_headers.{header}") for header, name in self.secret_headers.items()
        }
        tried: list[str] = []
        for url in self._places():
            golden = {"Host": f"golden.localhost:{resolve_port(url)}"} if self.golden_subdomain else {}
            headers = {**golden, **self.headers}
            connection = Connection(
                str(url), headers, secrets, self.timeout_s, self.retries, self.backoff_s, self.response_bytes
            )
            if self.health_path is None:
                return connection
            trouble = connection.check_health(self.health_path)
            if not trouble:
                if self.base_url is None:
                    log.warning("no base_url is set: the search API at %s is queried", connection.base_url)
                return connection
            tried.append(f"{url} ({trouble})")
        named = "; with its golden_subdomain false, the host is asked for by its own name"
        raise RetrieverError(
            f"no search API answers: tried {', '.join(tried)}; start it, or say where it is with the "
            f"retriever's base_url{named if self.golden_subdomain else ''}"
        )

    def _places(self) -> Iterator[httpx.URL]:
        """Yield where the API may be: at the address that was given, or else at some ports of this machine."""
        if self.base_url is not None:
            yield httpx.URL(self.base_url)
            return
        for port in dict.fromkeys(self.ports):
            yield httpx.URL(f"http://localhost:{port}")

    def _check_items(self, connection: Connection, expected: int) -> None:
        skip = "the retriever's expected_items set to null skips the check"
        try:
            reply, _ = connection.fetch("GET", self.items_path)
            total = _at(reply, self.total)
        except ServiceError as error:
            raise RetrieverError(f"{connection.base_url}: its items cannot be counted ({error}); {skip}") from error
        if total != expected:
            whose = "like the corpus" if self.expected_items == "corpus" else "as expected_items says"
            raise RetrieverError(
                f"{connection.base_url}: has {total} items where there should be {expected}, {whose}: is it another "
                f"database? If it is the right one: {skip}"
            )


@dataclass(frozen=True, eq=False)
class HttpSearcher:
    """A connection to an API, and the position of each document by its id. Threads may share it."""

    settings: Http
    connection: Connection
    positions: Mapping[str, int]

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return what the API finds; a query takes as long as its last attempt, among others that are under way.

        Items that the corpus lacks keep their rank, as unknown hits. Items that come again are left out. Both are
        counted in the diagnostics, and so are the queries whose scores rise.
        """
        found, seconds = no_rankings(len(queries), k), np.full(len(queries), np.nan, dtype=np.float32)
        answers = list(side_by_side(lambda query: self._answer(query, k), queries, self.settings.concurrency))
        unknown: dict[str, int] = {}
        for position, answer in enumerate(answers):
            found.documents[position, : len(answer.ids)] = [self._position(name, unknown) for name in answer.ids]
            found.scores[position, : len(answer.scores)] = answer.scores
            seconds[position] = answer.seconds
        errors = {position: answer.error for position, answer in enumerate(answers) if answer.error}
        said = {
            "unknown_items": float(np.count_nonzero(found.documents >= len(self.positions))),
            "repeated_items": float(sum(answer.repeated for answer in answers)),
            "rising_scores": float(sum(answer.rising for answer in answers)),
        }
        return replace(
            found, seconds=seconds, errors=errors or None, diagnostics=said, unknown_ids=tuple(unknown),
            addresses={"": self.connection.base_url},
        )  # fmt: skip

    def _position(self, name: str, unknown: dict[str, int]) -> int:
        """Return the position of an item, a new one behind the corpus and the unknown items before it if need be."""
        known = self.positions.get(name)
        return unknown.setdefault(name, len(self.positions) + len(unknown)) if known is None else known

    def _answer(self, query: str, k: int) -> _Answer:
        how = self.settings
        text = query.encode("utf-8", "replace").decode()  # half a surrogate pair is nothing that can be sent
        values = {"{query}": text, "{top_k}": k, "{search_type}": how.search_type}
        filled = _filled(how.request or REQUEST, values)
        try:
            reply, seconds = self.connection.fetch(how.method, how.search_path, filled)
            return replace(self._read(reply, k), seconds=seconds)
        except ServiceError as error:
            return _Answer(error=str(error))

    def _read(self, reply: object, k: int) -> _Answer:
        """Return the items of a reply, each once, at most k."""
        results = _at(reply, self.settings.results)
        if not isinstance(results, list):
            raise ServiceError(f"the reply's {self.settings.results} is no list")
        found: dict[str, float] = {}
        for place, result in enumerate(results, start=1):
            name = _id_of(_at(result, self.settings.item_id))
            if name not in found:
                found[name] = _score_of(_at(result, self.settings.score)) if self.settings.score else 1 / place
        scores = _float32(list(found.values())[:k])
        if self.settings.lower_is_better:
            scores = 0 - scores
        falling = np.minimum.accumulate(scores)
        rising = bool((falling != scores).any())
        return _Answer(list(found)[:k], falling, repeated=len(results) - len(found), rising=rising)


@dataclass(frozen=True)
class _Answer:
    """The ids and scores of the items that answer a query, or an error, and how many items came again."""

    ids: Sequence[str] = ()
    scores: NDArray[np.float32] | Sequence[float] = ()
    seconds: float = float("nan")
    error: str = ""
    repeated: int = 0
    rising: bool = False


def _filled(template: object, values: Mapping[str, object]) -> Any:  # noqa: ANN401 (any JSON)
    """Return a template with its placeholders replaced, without what is null; a text about a null is null too."""
    if isinstance(template, Mapping):
        filled = {name: _filled(value, values) for name, value in template.items()}
        return {name: value for name, value in filled.items() if value is not None}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    if template in values:  # a number stays one
        return values[template]
    unknown = any(values[name] is None for name in _PLACEHOLDER.findall(template))
    return None if unknown else _PLACEHOLDER.sub(lambda found: str(values[found[0]]), template)


def _texts(template: object, name: str = "") -> Iterator[str]:
    """Yield where a template has texts that are no placeholders, as names with dots between."""
    if isinstance(template, Mapping):
        for key, value in template.items():
            yield from _texts(value, f"{name}.{key}" if name else str(key))
    elif isinstance(template, list):
        for value in template:
            yield from _texts(value, name)
    elif isinstance(template, str) and not _PLACEHOLDER.fullmatch(template):
        yield name


def _at(reply: object, path: str) -> Any:  # noqa: ANN401 (any JSON)
    """Return what a reply has at a path, "" for the reply itself; raises `ServiceError`."""
    for name in path.split(".") if path else ():
        if isinstance(reply, Mapping) and name in reply:
            reply = reply[name]
        elif isinstance(reply, list) and name.isdecimal() and int(name) < len(reply):
            reply = reply[int(name)]
        else:
            raise ServiceError(f"the reply has no {path}")
    return reply


def _id_of(value: object) -> str:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is no item id")


def _score_of(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is no score; an API without scores has score=null")


def _float32(values: Sequence[float]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            scores = np.array(values, dtype=np.float64).astype(np.float32)
    except OverflowError:  # an integer of hundreds of digits
        scores = np.full(1, np.inf, dtype=np.float32)
    if not np.isfinite(scores).all():
        raise ServiceError("a score is no number of 32 bits")
    return scores
