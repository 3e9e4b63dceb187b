"""Search through an HTTP API: send one request per query and read the reply as a ranking.

The form of the request and the places of the results in the reply are settings, so that most APIs fit. Results of a
service are never cached, because it may answer differently next time.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl

import httpx
import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, RetrieverError
from retrievers.connection import HEALTH_TIMEOUT_S, SHOWN, Connection, ServiceError, read_secret, resolve_port
from retrievers.encoders.base import Encoder, Vectors
from retrievers.filter_forms import FilterForm, format_filter
from retrievers.replies import SearchReply, build_reply, join_replies
from retrievers.store import NoStore, Store, fingerprint
from retrievers.templates import (
    MISSING,
    fill_address,
    fill_template,
    format_text,
    get_path,
    has_placeholder,
    iter_text_names,
)
from retrievers.threads import map_threads

REQUEST = {"query": "{query}", "top_k": "{top_k}", "search_type": "{search_type}", "include_answer": False}
"""The default request."""

_QUERY = ("query", "query_json", "vector")
"""The placeholders of a query in a request: its text, the same as a JSON string, and its vector."""

_NAMES = (*_QUERY, "filter", "top_k", "search_type")

_DOCUMENT = "document_id"
"""The placeholder of an id in the address of a document."""

_PORT = "{port}"
"""The placeholder in `headers` for the port of the API."""

_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+:([!-~]([\t -~]*[!-~])?)?", re.ASCII)
"""A valid header (RFC 9110, 5.1 and 5.5): no line breaks, no spaces at the ends."""

_SECRET = re.compile("auth(?!ors?(?![a-z]))|cookie|credential|key(?!word)|passw|secret|token(?!iz)", re.IGNORECASE)
"""A part of a name that marks a secret; author, keyword and tokenizer do not."""

log = logging.getLogger(__name__)


@settings(frozen=True, config={"extra": "forbid", "hide_input_in_errors": True, "arbitrary_types_allowed": True})
class Http:
    """Settings of a search API over HTTP. Paths into replies are keys and positions, joined by dots: `hits.0.id`.

    `request` (null: `REQUEST`) is sent as JSON (POST) or as parameters (GET). `{query}` (with quotes `{query_json}`,
    for use in a text), `{top_k}`, `{search_type}` and the names of `parameters` are replaced, then null values are left
    out. `{vector}` is the vector of the query from the `encoder`; the diagnostic `encoding_ms` is its mean time, which
    is not part of the time of a query. Parameters are replaced in paths, too.

    `{filter}` is the filter of the query, null for a query without one, in the form `filter_form`
    (`retrievers.filter_forms`); `filter_names` maps fields to the names that they have in the index. The forms vespa
    and weaviate continue a text, and are empty for a query without a filter. A request without `{filter}` does not
    apply filters.

    `results` is the path of the list of results in a reply, `item_id` and `score` are paths in each result. `scores` is
    the path of a list of scores beside the results, in place of `score`. A name that ends with "?" in a path may be
    missing, such as the list in some replies without results. With `score` null, for an API without scores, the score
    is 1 / rank.

    `complete` maps paths to the values that they have in a complete reply, for services that answer with status 200
    although a shard failed or time ran out. Any other value is an error of the query, with the text at the path
    `reason`. Null stands for a missing or empty value.

    The order of the service is kept, also among equal scores. A score that is higher than the score above it is lowered
    to that score. `lower_is_better` negates all scores first.

    `facts` are what the index reports about itself: each name is mapped to the address of a GET request and the path of
    a value in its reply; an object or a list is replaced by its hash. They are recorded and identify a result.

    `document_path` is the address of a document, in which `{document_id}` is replaced by its id, and `document_text`
    the path of its text in the reply. They are used for texts of documents that the dataset lacks.

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
    parameters: dict[str, Any] = Field(default_factory=dict)
    encoder: Encoder | None = None
    method: Literal["POST", "GET"] = "POST"
    search_path: str = "/search"
    request: dict[str, Any] | None = None
    filter_form: FilterForm = "json"
    filter_names: dict[str, str] = Field(default_factory=dict)
    results: str = "results"
    item_id: str = "item_id"
    score: str | None = "score"
    scores: str | None = None
    lower_is_better: bool = False
    complete: dict[str, Any] = Field(default_factory=dict)
    reason: str | None = None
    health_path: str | None = "/health"
    ports: list[int] = Field(default_factory=list)
    items_path: str = "/items?limit=1"
    total: str = "total"
    expected_items: int | Literal["corpus"] | None = None
    facts: dict[str, tuple[str, str]] = Field(default_factory=dict)
    document_path: str | None = None
    document_text: str = "text"
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
                    f"{setting}.{name}: the name suggests a secret, whose value would be recorded; put the value "
                    "into an environment variable, and name that variable in secret_headers"
                )
        self._check_request()
        for setting in ("search_path", "items_path", "health_path", "document_path"):
            if not (getattr(self, setting) or "/").startswith("/"):
                raise RetrieverError(f"{setting}={getattr(self, setting)}: should begin with a /, as in /search")
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(f"{name}:{value}"):
                raise RetrieverError(f"headers.{name}: contains characters that are not allowed in a header")

    @property
    def applies_filters(self) -> bool:
        """Return whether the request has a place for the filter of a query."""
        return has_placeholder(self.request, "filter")

    def index(self, corpus: Corpus, store: Store) -> HttpSearcher:
        """Connect to the API, check its number of items, and return a searcher; raises `RetrieverError`."""
        connection = self._connect()
        if self.expected_items is not None:
            self._check_items(connection, len(corpus) if self.expected_items == "corpus" else self.expected_items)
        embed = None if self.encoder is None else self.encoder.embed(Corpus([], []), store).queries
        return HttpSearcher(self, connection, corpus.positions, embed)

    def describe_index(self) -> Mapping[str, str]:
        """Return the `facts` that the index reports now; nothing if the API does not answer its health check."""
        if not self.facts:
            return {}
        connection, values = self._connect(retries=0, timeout_s=min(self.timeout_s, HEALTH_TIMEOUT_S)), {}
        for name, (address, path) in self.facts.items():
            with suppress(ServiceError, LookupError):
                reply, _ = connection.fetch("GET", fill_address(address, self.parameters))
                value = get_path(reply, str(fill_template(path, self.parameters)))
                if value is not MISSING:
                    text = json.dumps(value, sort_keys=True)
                    values[name] = fingerprint(text) if isinstance(value, (dict, list)) else str(value)
        return values

    def fetch_texts(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the texts of documents by id, without those that the API does not return."""
        if self.document_path is None or not ids:
            return {}
        connection, address = self._connect(), self.document_path
        path = str(fill_template(self.document_text, self.parameters))

        def fetch(name: str) -> str | ServiceError:
            try:
                reply, _ = connection.fetch("GET", fill_address(address, {**self.parameters, _DOCUMENT: name}))
                text = get_path(reply, path)
            except (ServiceError, LookupError) as error:
                return ServiceError(connection.mask_secrets(str(error)))
            return text if isinstance(text, str) else ServiceError(f"the reply's {path} is not text")

        texts = dict(zip(ids, map_threads(fetch, ids, self.concurrency), strict=True))
        problems = [(name, text) for name, text in texts.items() if isinstance(text, ServiceError)]
        if problems:
            log.warning(
                "%s of %s documents could not be fetched, such as %r (%s)",
                f"{len(problems):,}", f"{len(ids):,}", *problems[0],
            )  # fmt: skip
        return {name: text for name, text in texts.items() if isinstance(text, str)}

    def _check_address(self) -> None:
        """Refuse a missing or malformed address, and an address with a password, which would be recorded."""
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

    def _check_request(self) -> None:
        """Refuse a request without a query, and one that GET parameters cannot hold."""
        if self.request and not has_placeholder(self.request, *_QUERY):
            raise RetrieverError("request: without {query}, all queries would send the same request; add {query}")
        if self.encoder is None and has_placeholder(self.request, "vector"):
            raise RetrieverError("request: {vector} needs an encoder; set, for example, encoder=minilm")
        for name in self.parameters:
            if name in (*_NAMES, _DOCUMENT) or not name.isidentifier():
                raise RetrieverError(
                    f"parameters.{name}: this name is reserved, or is not an identifier; choose another name"
                )
        for name, value in (self.request or {}).items():
            if self.method == "GET" and isinstance(value, Mapping):
                raise RetrieverError(f"request.{name}: method=GET cannot send nested keys; set method=POST")

    def _iter_recorded_names(self) -> Iterator[tuple[str, str]]:
        """Yield each setting and user-defined name whose value would be recorded."""
        yield from (("headers", name) for name in self.headers)
        yield from (("request", name) for name in iter_text_names(self.request))
        yield from (("parameters", name) for name in self.parameters)
        names = ("search_path", "items_path", "health_path", "document_path")
        paths = {setting: getattr(self, setting) or "" for setting in names}
        for setting, path in (paths | {f"facts.{name}": address for name, (address, _) in self.facts.items()}).items():
            yield from ((setting, name) for name, _ in parse_qsl(path.partition("?")[2], keep_blank_values=True))

    def _connect(self, retries: int | None = None, timeout_s: float | None = None) -> Connection:
        """Return a connection to the first address that answers."""
        retries, timeout_s = self.retries if retries is None else retries, timeout_s or self.timeout_s
        secrets = {
            header: read_secret(variable, f"secret_headers.{header}")
            for header, variable in self.secret_headers.items()
        }
        tried: list[str] = []
        for url in self._iter_addresses():
            headers = {name: value.replace(_PORT, str(resolve_port(url))) for name, value in self.headers.items()}
            connection = Connection(str(url), headers, secrets, timeout_s, retries, self.backoff_s, self.response_bytes)
            if self.health_path is None:
                return connection
            problem = connection.check_health(fill_address(self.health_path, self.parameters))
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
            reply, _ = connection.fetch("GET", fill_address(self.items_path, self.parameters))
            total = get_path(reply, self.total)
        except (ServiceError, LookupError) as error:
            raise RetrieverError(f"{connection.base_url}: the items could not be counted ({error}); {skip}") from error
        if total != expected:
            source = "the size of the corpus" if self.expected_items == "corpus" else "by expected_items"
            raise RetrieverError(
                f"{connection.base_url}: expected {expected} items ({source}), found {total}. Is this the right "
                f"database? If so, {skip}"
            )


@dataclass(frozen=True, eq=False)
class HttpSearcher:
    """Searches through a connection to an API. Threads may share it."""

    settings: Http
    connection: Connection
    positions: Mapping[str, int]
    embed: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]] | None = None

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the results of the API; the time of a query is that of its last attempt, beside concurrent queries.

        Items that the corpus lacks keep their rank, as unknown hits. Repeated items are left out. The diagnostics count
        both, and the queries whose scores rise.
        """
        vectors, encoding = self._embed(queries, store)
        replies = map_threads(
            lambda row: self._search_one(queries[row], None if vectors is None else vectors[row].tolist(), k),
            range(len(queries)),
            self.settings.concurrency,
        )
        rankings = join_replies(list(replies), self.positions, k)
        diagnostics = {**rankings.diagnostics, **encoding}
        return replace(rankings, diagnostics=diagnostics, addresses={"": self.connection.base_url})

    def _embed(self, queries: Sequence[str], store: Store) -> tuple[Vectors | None, Mapping[str, float]]:
        """Return the vectors of the queries and the mean time of one as a diagnostic; None without an encoder."""
        if self.embed is None:
            return None, {}
        vectors, seconds = self.embed(list(map(str, queries)), store)
        if not vectors.shape[1]:
            raise RetrieverError(
                f"encoder: {type(self.settings.encoder).__name__} learns from documents, which an API does not "
                "provide; choose a pretrained model"
            )
        return vectors, {"encoding_ms": float(np.nanmean(seconds)) * 1000}

    def _search_one(self, query: str, vector: Sequence[float] | None, k: int) -> SearchReply:
        settings = self.settings
        text = query.encode("utf-8", "replace").decode()  # lone surrogates cannot be sent
        own = {"query": text, "query_json": json.dumps(text), "vector": vector, "filter": self._format_filter(query)}
        values = {**settings.parameters, **own, "top_k": k, "search_type": settings.search_type}
        payload = fill_template(settings.request or REQUEST, values)
        try:
            path = fill_address(settings.search_path, settings.parameters)
            reply, seconds = self.connection.fetch(settings.method, path, payload)
            return replace(self._parse(reply, k), seconds=seconds)
        except (ServiceError, LookupError) as error:
            return SearchReply(error=self.connection.mask_secrets(str(error)))

    def _format_filter(self, query: str) -> object:
        """Return the filter of a query for the request; as text if the request is an address."""
        settings = self.settings
        value = format_filter(getattr(query, "filter", None), settings.filter_form, settings.filter_names)
        return format_text(value) if settings.method == "GET" and value is not None else value

    def _parse(self, reply: object, k: int) -> SearchReply:
        """Return the first k distinct items of a reply; raises `ServiceError` if it is partial."""
        self._check_complete(reply)
        results = self._get_list(reply, self.settings.results)
        try:
            return build_reply(self._iter_items(results, reply), k, self.settings.lower_is_better)
        except ValueError as error:
            raise ServiceError(str(error)) from None

    def _check_complete(self, reply: object) -> None:
        for path, expected in self.settings.complete.items():
            value = get_path(reply, path)
            if value is MISSING or value == expected or (expected is None and not value):
                continue
            name, shown = path.replace("?", ""), json.dumps(value)[:SHOWN]
            problem = f"has {name}: {shown}" if expected is None else f"has {name} {shown}, not {json.dumps(expected)}"
            reason = get_path(reply, self.settings.reason) if self.settings.reason else MISSING
            text = "" if reason is MISSING else reason if isinstance(reason, str) else json.dumps(reason)
            raise ServiceError(f"the reply {problem}{f': {text[:SHOWN]}' if text else ''}")

    def _get_list(self, reply: object, setting: str) -> Sequence[object]:
        path = str(fill_template(setting, self.settings.parameters))
        values = get_path(reply, path)
        if values is MISSING:
            return []
        if not isinstance(values, list):
            raise ServiceError(f"the reply's {path} is not a list")
        return values

    def _iter_items(self, results: Sequence[object], reply: object) -> Iterator[tuple[str, float]]:
        """Yield the id and score of each result; the scores may stand beside the results."""
        settings = self.settings
        item_id = str(fill_template(settings.item_id, settings.parameters))
        beside = self._get_list(reply, settings.scores) if settings.scores else None
        if beside is not None and len(beside) != len(results):
            raise ServiceError(f"the reply has {len(beside)} scores for {len(results)} results")
        for rank, result in enumerate(results, start=1):
            score = 1 / rank
            if beside is not None:
                score = _parse_score(beside[rank - 1])
            elif settings.score:
                score = _parse_score(get_path(result, settings.score))
            yield _parse_id(get_path(result, item_id)), score


def _parse_id(value: object) -> str:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is not a valid item id")


def _parse_score(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    with suppress(ValueError, TypeError):  # some services write numbers as text
        if isinstance(value, str):
            return float(value)
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is not a valid score; for an API without scores, set score=null")
