"""Search through an HTTP API: send one request per query and read the reply as a ranking.

The form of the request and the places of the results in the reply are settings, so that most APIs fit. Results of a
service are never cached, because it may answer differently next time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import httpx
import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, RetrieverError
from retrievers.capabilities import Capabilities
from retrievers.encoders.base import Encoder, Vectors
from retrievers.services.addresses import ApiAddress, check_items
from retrievers.services.connection import HEALTH_TIMEOUT_S, Connection, ServiceError
from retrievers.services.filter_forms import FilterForm
from retrievers.services.http_forms import DOCUMENT, ReplyForm, RequestForm, refuse_secrets
from retrievers.services.replies import SearchReply, join_replies
from retrievers.services.templates import (
    MISSING,
    fill_address,
    fill_template,
    get_path,
    has_placeholder,
    iter_text_names,
)
from retrievers.store import NoStore, Store, fingerprint
from retrievers.strict_values import parse_reply
from retrievers.threads import map_threads

RESULTS_VERSION = "http 1"

log = logging.getLogger(__name__)


@settings(frozen=True, config={"extra": "forbid", "hide_input_in_errors": True, "arbitrary_types_allowed": True})
class Http:
    """Settings of a search API over HTTP. Paths into replies are keys and positions, joined by dots: `hits.0.id`.

    `RequestForm` and `ReplyForm` (`retrievers.services.http_forms`) describe the settings of requests and replies, and
    `ApiAddress` (`retrievers.services.addresses`) those of the address. Rankings carry the address that answered.

    Names of `parameters` are placeholders in the request and in paths. A parameter `search_type` is also the name by
    which a dataset may have judgments of its own for this search. `encoder` computes the vectors of the queries; the
    diagnostic `encoding_ms` is the mean time of one, which is not part of the time of a query.

    `facts` are what the index reports about itself: each name is mapped to the address of a GET request and the path of
    a value in its reply; an object or a list is replaced by its hash. They are recorded and identify a result.

    `document_path` is the address of a document, in which `{document_id}` is replaced by its id, and `document_text`
    the path of its text in the reply. They are used for texts of documents that the dataset lacks.

    `expected_items`, a number or `corpus` for the size of the corpus, is compared with `total` in the reply to
    `items_path`; null skips this check.

    A query is retried, `retries` times, when there is no connection, no complete reply within `timeout_s`, or a reply
    of status 429, 502, 503 or 504: after `backoff_s`, twice that, and so on, or after the wait that the service asks
    for. A reply of more than `response_bytes` is an error of its query.
    """

    access: ClassVar[Access] = Access("services", names=("base_url", "ports"), secrets=("secret_headers",))

    base_url: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    encoder: Encoder | None = None
    method: Literal["POST", "GET"] = "POST"
    search_path: str = Field(kw_only=True)
    request: dict[str, Any] = Field(kw_only=True)
    filter_form: FilterForm = "json"
    filter_names: dict[str, str] = Field(default_factory=dict)
    results: str = Field(kw_only=True)
    item_id: str = Field(kw_only=True)
    score: str | None = Field(kw_only=True)
    scores: str | None = None
    lower_is_better: bool = False
    complete: dict[str, Any] = Field(default_factory=dict)
    reason: str | None = None
    health_path: str | None = None
    ports: list[int] = Field(default_factory=list)
    items_path: str | None = None
    total: str = ""
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
        _ = self.address
        facts = {f"facts.{name}": address for name, (address, _) in self.facts.items()}
        names = ("search_path", "items_path", "health_path", "document_path")
        paths = {setting: path for setting in names if (path := getattr(self, setting))}
        texts = iter_text_names(self.request)
        refuse_secrets({"headers": self.headers, "request": texts, "parameters": self.parameters}, paths | facts)
        _ = self.request_form
        if self.encoder is None and has_placeholder(self.request, "vector"):
            raise RetrieverError("request: {vector} needs an encoder; set, for example, encoder=minilm")
        for setting, path in paths.items():
            if not path.startswith("/"):
                raise RetrieverError(f"{setting}={path}: should begin with a /, as in /search")
        if self.expected_items is not None and self.items_path is None:
            raise RetrieverError("expected_items: needs items_path, the address of a reply with the number of items")

    @property
    def capabilities(self) -> Capabilities:
        """Return what the service can do: it filters if the request has a place for the filter of a query."""
        search_type = self.parameters.get("search_type")
        return Capabilities(
            filters=has_placeholder(self.request, "filter"),
            live=True,
            scans=False,
            search_type="" if search_type is None else str(search_type),
        )

    @property
    def address(self) -> ApiAddress:
        """Return the address of the API; raises `RetrieverError` if it is not valid."""
        health_path = None if self.health_path is None else fill_address(self.health_path, self.parameters)
        return ApiAddress(
            self.base_url, self.ports, health_path, self.headers, self.secret_headers,
            self.timeout_s, self.retries, self.backoff_s, self.response_bytes,
        )  # fmt: skip

    @property
    def request_form(self) -> RequestForm:
        """Return the form of requests; raises `RetrieverError` if it is not valid."""
        return RequestForm(self.request, self.parameters, self.method, self.filter_form, self.filter_names)

    @property
    def reply_form(self) -> ReplyForm:
        """Return the form of replies, with parameters in its paths."""
        results, item_id = (str(fill_template(path, self.parameters)) for path in (self.results, self.item_id))
        scores = str(fill_template(self.scores, self.parameters)) if self.scores else None
        return ReplyForm(results, item_id, self.score, scores, self.lower_is_better, self.complete, self.reason)

    def index(self, corpus: Corpus, store: Store) -> HttpSearcher:
        """Connect to the API, check its number of items, and return a searcher; raises `RetrieverError`."""
        connection = self.address.connect()
        if self.expected_items is not None and self.items_path is not None:
            address = fill_address(self.items_path, self.parameters)
            expected = len(corpus) if self.expected_items == "corpus" else self.expected_items
            source = "the size of the corpus" if self.expected_items == "corpus" else "by expected_items"
            check_items(connection, address, self.total, expected, source)
        embed = None if self.encoder is None else self.encoder.embed(Corpus([], []), store).queries
        return HttpSearcher(self, connection, corpus.positions, embed)

    def describe_index(self) -> Mapping[str, str]:
        """Return the `facts` that the index reports now; nothing if the API does not answer its health check."""
        if not self.facts:
            return {}
        quick = replace(self.address, retries=0, timeout_s=min(self.timeout_s, HEALTH_TIMEOUT_S))
        connection, values = quick.connect(), {}
        for name, (address, path) in self.facts.items():
            with suppress(ServiceError, LookupError):
                reply, _ = connection.fetch("GET", fill_address(address, self.parameters))
                value = get_path(reply, str(fill_template(path, self.parameters)))
                if value is not MISSING:
                    values[name] = _format_fact(value)
        return values

    def fetch_texts(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the texts of documents by id, without those that the API does not return."""
        if self.document_path is None or not ids:
            return {}
        connection, address = self.address.connect(), self.document_path
        path = str(fill_template(self.document_text, self.parameters))

        def fetch(name: str) -> str | ServiceError:
            return _fetch_text(connection, fill_address(address, {**self.parameters, DOCUMENT: name}), path)

        texts = dict(zip(ids, map_threads(fetch, ids, self.concurrency), strict=True))
        problems = [(name, text) for name, text in texts.items() if isinstance(text, ServiceError)]
        if problems:
            log.warning(
                "%s of %s documents could not be fetched, such as %r (%s)",
                f"{len(problems):,}", f"{len(ids):,}", *problems[0],
            )  # fmt: skip
        return {name: text for name, text in texts.items() if isinstance(text, str)}


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
        request, reply = self.settings.request_form, self.settings.reply_form

        def search(row: int) -> SearchReply:
            payload = request.fill(queries[row], None if vectors is None else vectors[row].tolist(), k)
            return self._search_one(payload, reply, k)

        replies = map_threads(search, range(len(queries)), self.settings.concurrency)
        rankings = join_replies(list(replies), self.positions, k)
        diagnostics = {**rankings.diagnostics, **encoding}
        return replace(rankings, diagnostics=diagnostics, addresses={"": self.connection.base_url})

    def build_requests(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> list[httpx.Request]:  # noqa: B008 (immutable)
        """Return the request of each query, for a client that sends them itself; vectors are computed here."""
        vectors, _ = self._embed(queries, store)
        form, path = self.settings.request_form, fill_address(self.settings.search_path, self.settings.parameters)
        rows = [None] * len(queries) if vectors is None else vectors.tolist()
        payloads = (form.fill(query, row, k) for query, row in zip(queries, rows, strict=True))
        return [self.connection.build_request(self.settings.method, path, payload) for payload in payloads]

    def read_response(self, content: bytes, k: int) -> SearchReply:
        """Return the ids and scores in the body of a response with a good status, or an error."""
        try:
            return self.settings.reply_form.read(parse_reply(content), k)
        except (ServiceError, LookupError, ValueError) as error:
            return SearchReply(error=self.connection.mask_secrets(str(error)))

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

    def _search_one(self, payload: Mapping[str, Any], form: ReplyForm, k: int) -> SearchReply:
        settings = self.settings
        try:
            path = fill_address(settings.search_path, settings.parameters)
            reply, seconds = self.connection.fetch(settings.method, path, payload)
            return replace(form.read(reply, k), seconds=seconds)
        except (ServiceError, LookupError) as error:
            return SearchReply(error=self.connection.mask_secrets(str(error)))


def _fetch_text(connection: Connection, address: str, path: str) -> str | ServiceError:
    """Return the text of a document, or why there is none."""
    try:
        reply, _ = connection.fetch("GET", address)
        text = get_path(reply, path)
    except (ServiceError, LookupError) as error:
        return ServiceError(connection.mask_secrets(str(error)))
    return text if isinstance(text, str) else ServiceError(f"the reply's {path} is not text")


def _format_fact(value: object) -> str:
    """Return a value as text; an object or a list is replaced by its hash."""
    return fingerprint(json.dumps(value, sort_keys=True)) if isinstance(value, (dict, list)) else str(value)
