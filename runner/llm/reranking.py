"""Rerankers behind APIs: Cohere, Voyage, Jina, text-embeddings-inference and others with a `/rerank` endpoint.

The score of each query and text is stored in the ledger and paid for once, like the vectors of embeddings.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.encoders.cuts import REFUSING, UNKNOWN_CUTS
from retrievers.llm.chat import ChatError, Reply
from retrievers.llm.model_calls import ModelCalls, count_bytes, count_passage_bytes
from retrievers.llm.prompting import Call, summarise_calls
from retrievers.notes import QueryLog
from retrievers.progress import report_progress
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.services.templates import get_path
from retrievers.store import Store, fingerprint
from retrievers.threads import map_threads
from runner.llm.api_model import API_ACCESS, Answer, ModelRequest, Spent
from runner.llm.client import BYTES_PER_TOKEN, TEMPLATE_TOKENS
from runner.llm.faults import fault_of_form
from runner.llm.http_model import HttpModel, read_items, to_floats
from runner.llm.ledger import NANO, open_ledger

RESULTS_VERSION = "reranking API 1"

REQUEST = {"model": "{model}", "query": "{query}", "documents": "{texts}"}
"""The default request: Cohere's."""

SEARCH_TEXTS, SEARCH_TOKENS = 100, 500
"""Cohere bills a search for every 100 texts; a text counts once for every 500 tokens."""

_ALL_WORDS = 1 << 40

_IDENTITY = ("model", "base_url", "path", "request", "results", "score", "truncation")
"""The settings in the key of a score, besides the query and the text."""


@settings(frozen=True, config={"extra": "forbid"})
class ApiReranker(HttpModel):
    """Settings of a reranker behind an API.

    `{query}`, `{texts}` and `{truncation}` are replaced in the request. `results` is the path of the list of results in
    a reply; in each result, `score` is the path of the score and `position` that of the position of its text. `units`
    is the path of the number of billed searches, at `price_search` per thousand. A request has at most `batch_size`
    texts.

    With `by_pair`, a score depends only on the query and the text, so other candidates of a query do not make it pay
    again. Otherwise, it depends on the list of candidates, which is sent in one request. If a call fails, the order of
    the base is kept. A blank text is not sent and comes last.
    """

    access: ClassVar[Access] = API_ACCESS
    group: ClassVar[str] = "reranker"
    label: ClassVar[str] = "reranker"
    price_hint: ClassVar[str] = (
        "price_in, the price per million tokens, or price_search, the price per thousand searches"
    )

    base_url: str = Field(min_length=1)
    path: str = "/rerank"
    results: str = "results"
    position: str | None = Field(default="index", repr=False)
    score: str = "relevance_score"
    units: str | None = Field(default=None, repr=False)
    truncation: bool | int | str | None = None
    by_pair: bool = True
    batch_size: int = Field(default=100, ge=1, repr=False)
    price_search: float | None = Field(default=None, ge=0, repr=False, allow_inf_nan=False)

    @property
    def template(self) -> Mapping[str, Any]:
        """Return the request with its placeholders."""
        return self.request or REQUEST

    @property
    def address(self) -> str:
        """Return the address of the server."""
        return self.base_url

    @property
    def has_prices(self) -> bool:
        """Return whether there is a price per token or per search."""
        return self.price_in is not None or self.price_search is not None

    @property
    def price_settings(self) -> str:
        """Return the settings of prices, for messages."""
        return f"{self.group}.price_in or {self.group}.price_search"

    def nanos(self, tokens: tuple[int, int], units: int = 0) -> int:
        """Return the cost of tokens and of searches, in billionths; 0 without prices."""
        return super().nanos(tokens) + round(units * (self.price_search or 0) * (NANO / 1000))

    def open(self, store: Store) -> Rerank:
        """Return the function that reranks."""
        return partial(_rerank, self)

    def describe_silent_cuts(self) -> str:
        """Return that the service may cut texts, with a remedy; "" if it refuses long ones."""
        if self.truncation in REFUSING:
            return ""
        return f"reranker.model={self.model}: {UNKNOWN_CUTS}; split documents (chunking=tokens) so that none is cut"

    def plan_candidate_calls(self, corpus: Corpus, queries: Sequence[str], n: int) -> ModelCalls:
        """Return the calls for n candidates of each query, assuming the longest documents."""
        shown = count_passage_bytes(corpus, n, _ALL_WORDS)
        sizes = [shown + n * (count_bytes(query) + TEMPLATE_TOKENS) for query in queries]
        calls = math.ceil(n / (self.batch_size if self.by_pair else n)) if n > 1 else 0
        units = sum(_bound_units(self, size, n, calls) for size in sizes) if calls else 0
        return ModelCalls(self, "rerank", calls * len(queries), sum(sizes) if calls else 0, units=units)


def _bound_units(reranker: ApiReranker, size: int, texts: int, calls: int = 1) -> int:
    """Return the highest number of searches billed for texts and their query with `size` bytes in total."""
    if reranker.price_search is None:
        return 0
    return math.ceil((size / SEARCH_TOKENS + texts) / SEARCH_TEXTS) + calls - 1


def _rerank(
    reranker: ApiReranker, queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store
) -> list[CandidateScores]:
    failures: list[ChatError] = []

    def score(pair: tuple[str, Sequence[str]]) -> CandidateScores:
        scores, log, error = _score_candidates(reranker, *pair, failures[0] if failures else None)
        if error is not None and error.final:
            failures.append(error)  # no other call can succeed
        return CandidateScores(scores, log)

    scored = map_threads(score, zip(queries, candidates, strict=True), reranker.concurrency)
    return list(report_progress(scored, "reranked", len(queries)))


def _score_candidates(
    reranker: ApiReranker, query: str, texts: Sequence[str], failure: ChatError | None
) -> tuple[NDArray[np.float32], QueryLog, ChatError | None]:
    """Return the scores of a query's candidates and their log; after a failure, the order of the base."""
    sent = [text.encode("utf-8", "replace").decode() for text in texts]  # without lone surrogates
    keys = _list_keys(reranker, query, sent)
    start = time.perf_counter()
    spent, error = Spent(0, 0), failure
    if error is None and len(keys) > 1:  # a single candidate needs no call
        try:
            spent = _pay(reranker, query, keys)
        except ChatError as caught:
            error = caught
    if error is not None or len(keys) < 2:
        base = -np.arange(len(texts), dtype=np.float32)
        outcome = error if error is not failure or error is None else type(error)(str(error), error.kind, True)
        calls = [] if outcome is None else [Call(outcome, time.perf_counter() - start)]
        return base, summarise_calls(calls), error
    known = {key: float(np.frombuffer(v, dtype=np.float32)[0]) for key, v in _recall(reranker, list(keys.values()))}
    scores = np.array([known[keys[text]] if text in keys else np.nan for text in sent], dtype=np.float32)
    scores[np.isnan(scores)] = np.nanmin(scores) - 1
    if not spent.calls:
        return scores, QueryLog(math.nan), None  # the original time is unknown
    reply = Reply("", calls=spent.calls, cost=spent.nanos / NANO)
    return scores, summarise_calls([Call(reply, time.perf_counter() - start)]), None


def _list_keys(reranker: ApiReranker, query: str, texts: Sequence[str]) -> dict[str, str]:
    """Return the key of the score of each text that is sent."""
    identity = fingerprint(*(f"{name}={getattr(reranker, name)!r}" for name in _IDENTITY))
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    others = () if reranker.by_pair else (fingerprint(*distinct),)
    return {text: fingerprint(identity, query, text, *others) for text in distinct}


def _recall(reranker: ApiReranker, keys: Sequence[str]) -> list[tuple[str, bytes]]:
    return list(open_ledger(reranker.ledger).recall_vectors(keys))


def _pay(reranker: ApiReranker, query: str, keys: Mapping[str, str]) -> Spent:
    """Score all texts that have no score yet; those that other processes have claimed are waited for."""
    texts, calls, nanos = {key: text for text, key in keys.items()}, 0, 0
    for missing in reranker.iter_missing(list(texts)):
        size = reranker.batch_size if reranker.by_pair else len(missing)
        for start in range(0, len(missing), size):
            spent = reranker.call_for_missing(
                missing[start : start + size], lambda claimed: _build_request(reranker, query, texts, claimed)
            )
            if spent is not None:
                calls, nanos = calls + spent.calls, nanos + spent.nanos
    return Spent(calls, nanos)


def _build_request(reranker: ApiReranker, query: str, texts: Mapping[str, str], keys: Sequence[str]) -> ModelRequest:
    shown = [texts[key] for key in keys]
    size = count_bytes(*shown) + len(keys) * (count_bytes(query) + TEMPLATE_TOKENS)
    sent = query.encode("utf-8", "replace").decode()

    def send() -> Answer:
        reply = reranker.post(query=sent, texts=shown, truncation=reranker.truncation)
        try:
            return _read_answer(reranker, keys, reply)
        except (LookupError, TypeError, ValueError) as error:
            raise fault_of_form(f"{error}: {reply}") from error

    most = reranker.nanos((size, 0), _bound_units(reranker, size, len(keys)))
    return ModelRequest(send, "rerank", size // BYTES_PER_TOKEN, most, keys[0])


def _read_answer(reranker: ApiReranker, keys: Sequence[str], reply: object) -> Answer:
    scores = {
        keys[position]: to_floats([get_path(item, reranker.score)]).tobytes()
        for position, item in read_items(reply, reranker.results, reranker.position, len(keys))
    }
    tokens = reranker.count_billed(reply, reranker.tokens)
    units = reranker.count_billed(reply, reranker.units)
    known = tokens is not None or units is not None
    return Answer(tokens=(tokens or 0, 0) if known else None, units=units or 0, vectors=scores)
