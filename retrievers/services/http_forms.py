"""The form of a search API: how the request of a query is written, and how its reply is read.

Sends nothing. Paths into replies are keys and positions, joined by dots: `hits.0.id`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl

from retrievers.base import RetrieverError
from retrievers.services.connection import SHOWN, ServiceError
from retrievers.services.filter_forms import FilterForm, format_filter
from retrievers.services.replies import SearchReply, build_reply
from retrievers.services.templates import MISSING, fill_template, format_text, get_path, has_placeholder
from retrievers.strict_values import parse_id, parse_number

DOCUMENT = "document_id"
"""The placeholder of an id in the address of a document."""

_QUERY = ("query", "query_json", "vector")
"""The placeholders of a query in a request: its text, the same as a JSON string, and its vector."""

_NAMES = (*_QUERY, "filter", "top_k", DOCUMENT)

_SECRET = re.compile("auth(?!ors?(?![a-z]))|cookie|credential|key(?!word)|passw|secret|token(?!iz)", re.IGNORECASE)
"""A part of a name that marks a secret; author, keyword and tokenizer do not."""


@dataclass(frozen=True)
class RequestForm:
    """The request of a query, sent as JSON (POST) or as parameters (GET).

    `{query}` (with quotes `{query_json}`, for use in a text), `{top_k}` and the names of `parameters` are replaced,
    then null values are left out. `{vector}` is the vector of the query.

    `{filter}` is the filter of the query, null for a query without one, in the form `filter_form`
    (`retrievers.services.filter_forms`); `filter_names` maps fields to the names that they have in the index. The forms
    vespa and weaviate continue a text, and are empty for a query without a filter. A request without `{filter}` does
    not apply filters.
    """

    request: Mapping[str, Any]
    parameters: Mapping[str, Any]
    method: Literal["POST", "GET"]
    filter_form: FilterForm
    filter_names: Mapping[str, str]

    def __post_init__(self) -> None:
        """Refuse a request without a query, and one that GET parameters cannot hold."""
        if not has_placeholder(self.request, *_QUERY):
            raise RetrieverError("request: without {query}, all queries would send the same request; add {query}")
        for name in self.parameters:
            if name in _NAMES or not name.isidentifier():
                raise RetrieverError(
                    f"parameters.{name}: this name is reserved, or is not an identifier; choose another name"
                )
        for name, value in self.request.items():
            if self.method == "GET" and isinstance(value, Mapping):
                raise RetrieverError(f"request.{name}: method=GET cannot send nested keys; set method=POST")

    def fill(self, query: str, vector: Sequence[float] | None, k: int) -> Mapping[str, Any]:
        """Return the request of a query."""
        text = query.encode("utf-8", "replace").decode()  # lone surrogates cannot be sent
        own = {"query": text, "query_json": json.dumps(text), "vector": vector, "filter": self._format_filter(query)}
        filled: Mapping[str, Any] = fill_template(self.request, {**self.parameters, **own, "top_k": k})
        return filled

    def _format_filter(self, query: str) -> object:
        """Return the filter of a query for the request; as text if the request is an address."""
        value = format_filter(getattr(query, "filter", None), self.filter_form, self.filter_names)
        return format_text(value) if self.method == "GET" and value is not None else value


@dataclass(frozen=True)
class ReplyForm:
    """The places of the results in a reply.

    `results` is the path of the list of results in a reply, `item_id` and `score` are paths in each result. `scores` is
    the path of a list of scores beside the results, in place of `score`. A name that ends with "?" in a path may be
    missing, such as the list in some replies without results. With `score` null, for an API without scores, the score
    is 1 / rank.

    `complete` maps paths to the values that they have in a complete reply, for services that answer with status 200
    although a shard failed or time ran out. Any other value is an error of the query, with the text at the path
    `reason`. Null stands for a missing or empty value.

    The order of the service is kept, also among equal scores. A score that is higher than the score above it is lowered
    to that score. `lower_is_better` negates all scores first.
    """

    results: str
    item_id: str
    score: str | None
    scores: str | None
    lower_is_better: bool
    complete: Mapping[str, Any]
    reason: str | None

    def read(self, reply: object, k: int) -> SearchReply:
        """Return the first k distinct items of a reply; raises `ServiceError` if it is partial."""
        self._check_complete(reply)
        results = _get_list(reply, self.results)
        try:
            return build_reply(self._iter_items(results, reply), k, self.lower_is_better)
        except ValueError as error:
            raise ServiceError(str(error)) from None

    def _check_complete(self, reply: object) -> None:
        for path, expected in self.complete.items():
            value = get_path(reply, path)
            if value is MISSING or value == expected or (expected is None and not value):
                continue
            name, shown = path.replace("?", ""), json.dumps(value)[:SHOWN]
            problem = f"has {name}: {shown}" if expected is None else f"has {name} {shown}, not {json.dumps(expected)}"
            reason = get_path(reply, self.reason) if self.reason else MISSING
            text = "" if reason is MISSING else reason if isinstance(reason, str) else json.dumps(reason)
            raise ServiceError(f"the reply {problem}{f': {text[:SHOWN]}' if text else ''}")

    def _iter_items(self, results: Sequence[object], reply: object) -> Iterator[tuple[str, float]]:
        """Yield the id and score of each result; the scores may stand beside the results."""
        beside = _get_list(reply, self.scores) if self.scores else None
        if beside is not None and len(beside) != len(results):
            raise ServiceError(f"the reply has {len(beside)} scores for {len(results)} results")
        for rank, result in enumerate(results, start=1):
            score = 1 / rank
            if beside is not None:
                score = _parse_score(beside[rank - 1])
            elif self.score:
                score = _parse_score(get_path(result, self.score))
            yield _parse_id(get_path(result, self.item_id)), score


def refuse_secrets(names: Mapping[str, Iterable[str]], addresses: Mapping[str, str]) -> None:
    """Raise `RetrieverError` if a name in a setting, or of a parameter in an address, suggests a secret value.

    Both are by setting. The values of such names would be recorded.
    """
    parameters = {
        setting: [name for name, _ in parse_qsl(address.partition("?")[2], keep_blank_values=True)]
        for setting, address in addresses.items()
    }
    for setting, own in {**names, **parameters}.items():
        for name in own:
            if _SECRET.search(name):
                raise RetrieverError(
                    f"{setting}.{name}: the name suggests a secret, whose value would be recorded; put the value "
                    "into an environment variable, and name that variable in secret_headers"
                )


def _get_list(reply: object, path: str) -> Sequence[object]:
    values = get_path(reply, path)
    if values is MISSING:
        return []
    if not isinstance(values, list):
        raise ServiceError(f"the reply's {path} is not a list")
    return values


def _parse_id(value: object) -> str:
    if isinstance(value, str):
        return value  # also an empty one, which is no document: the other hits of the reply count
    with suppress(ValueError):
        return parse_id(value)
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is not a valid item id")


def _parse_score(value: object) -> float:
    with suppress(ValueError):
        return parse_number(value)  # some services write numbers as text
    raise ServiceError(f"{json.dumps(value)[:SHOWN]} is not a valid score; for an API without scores, set score=null")
