"""Search with an object of another library: a function, a LangChain or LlamaIndex retriever, a Haystack component.

Objects are recognised by their methods; none of these libraries is imported.
"""

from __future__ import annotations

import importlib
import inspect
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, Retriever, RetrieverError, Searcher, list_filters
from retrievers.capabilities import Capabilities, derive_capabilities, refuse_filters
from retrievers.filters import Filter
from retrievers.services.filter_forms import format_filter
from retrievers.services.replies import SearchReply, build_reply, join_replies
from retrievers.store import NoStore, Store
from retrievers.strict_values import parse_id, parse_number
from retrievers.threads import map_threads

RESULTS_VERSION = "existing 1"

Interface = Literal["auto", "function", "langchain", "llama_index", "haystack", "search"]
Search = Callable[[str, int, Filter | None], object]
"""A function that returns the hits of a query, given the query, the number of hits and its filter."""

_METHODS = {
    "llama_index": "retrieve",
    "langchain": "invoke",
    "haystack": "run",
    "search": "search",
    "function": "__call__",
}
"""The method by which each interface is recognised, in the order of the attempts."""


@dataclass(frozen=True)
class QuerySearch:
    """How an object is searched, one query at a time, and whether it gets the filters of queries."""

    call: Search
    applies_filters: bool = False


@dataclass(frozen=True)
class BatchSearch:
    """A method `search(queries, k)`, perhaps with `filters`, which returns the hits of each query, or `Rankings`."""

    call: Callable[..., object]
    applies_filters: bool = False


ID_NAMES = ("item_id", "document_id", "doc_id", "source", "file_path")
"""The names of the metadata in which users of these libraries put the id of a document."""


class GivenDocument(NamedTuple):
    """A document as the factory receives it."""

    id: str
    title: str
    text: str


@settings(frozen=True, config={"extra": "forbid"})
class ExistingRetriever:
    """Settings of a retriever that exists: `factory`, as `module:name`, is called with `arguments` and returns it.

    With `pass_corpus` the factory also gets `documents`, a list of (id, title, text), to chunk and index itself, and,
    if it has a parameter `metadata`, the metadata of each document as a list of mappings.

    `interface` says how to call the object. auto recognises llama_index (`retrieve(query)`), langchain
    (`invoke(query)`), haystack (`run`, of a component or a pipeline) and search (`search(queries, k)`, with all queries
    at once); any other object is called as a function of the query, and of the number of hits if it has a second
    parameter. Hits are ids, pairs (tuples or lists) of an id and a score, documents, or a mapping of ids to scores,
    which is ranked by its scores. The number of hits is usually set when the object is built and should be
    `metrics.depth`.

    `item_id` is the path of a document's id, such as `metadata.page`. If it is null, the candidates are the `ID_NAMES`
    in the metadata, the id of a node's document (`ref_doc_id`) and the hit's own id: the first that is an id of the
    corpus is used, or else the first that exists. `score` is the path of the score; null stands for `score`, or 1 /
    rank for objects without scores. Of several hits of one document, only the first counts. Hits with the score NaN are
    left out and counted (`nan_scores`). If the object has a method `fetch_texts(ids)`, it returns, as a mapping, the
    texts of documents that the dataset lacks.

    The filter of a query is passed as an object, such as `{"year": {"from": 2000}}`, or None, to a function or method
    with a parameter `filter`, and the filters of all queries as a list to `search(queries, k, filters)`. Components and
    pipelines of Haystack get it as `filters`, in Haystack's form. Other objects refuse queries with filters.
    """

    access: ClassVar[Access] = Access(code=("factory",))
    # Only the object shows whether it takes filters; if not, the search raises.
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True, live=True)

    factory: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    interface: Interface = "auto"
    item_id: str | None = None
    score: str | None = None
    pass_corpus: bool = False
    concurrency: int = Field(default=1, ge=1, repr=False)

    def index(self, corpus: Corpus, store: Store) -> ExistingSearcher:
        """Call the factory; raises `RetrieverError` if it or its arguments are wrong."""
        if self.pass_corpus and not len(corpus):
            raise RetrieverError("pass_corpus: the dataset has no documents to pass; set pass_corpus=false")
        try:
            factory = self._import_factory()
            made = factory(**(self._list_documents(factory, corpus) if self.pass_corpus else {}), **self.arguments)
        except RetrieverError:
            raise
        except Exception as error:
            raise RetrieverError(f"factory={self.factory}: {describe_error(error)}") from error
        search = find_search(made, self.interface)
        if search is None:
            raise RetrieverError(f"factory={self.factory}: returned {describe_interfaces(made, self.interface)}")
        return ExistingSearcher(self, search, corpus.positions)

    def fetch_texts(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the texts from the object's method `fetch_texts`, nothing without such a method."""
        if self.pass_corpus:
            return {}
        try:
            fetch = getattr(self._import_factory()(**self.arguments), "fetch_texts", None)
            return {str(name): str(text) for name, text in fetch(ids).items()} if callable(fetch) else {}
        except Exception as error:  # anything that another library raises
            raise RetrieverError(f"factory={self.factory}: {describe_error(error)}") from error

    def _list_documents(self, factory: Callable[..., object], corpus: Corpus) -> dict[str, object]:
        """Return the documents as arguments of the factory, with their metadata if it has a parameter for them."""
        titles = corpus.titles or [""] * len(corpus)
        documents: dict[str, object] = {"documents": list(map(GivenDocument, corpus.ids, titles, corpus.texts))}
        if "metadata" in _list_parameters(factory)[1] - set(self.arguments):
            documents["metadata"] = list(corpus.metadata) or [{} for _ in corpus.ids]
        return documents

    def _import_factory(self) -> Callable[..., object]:
        module, colon, name = self.factory.partition(":")
        if not colon or not module or not name:
            raise RetrieverError(f"factory={self.factory}: should be module:name, such as my_rag.search:build")
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        if not callable(function):
            raise RetrieverError(f"factory={self.factory}: expected a function, found {type(function).__name__}")
        return function  # type: ignore[no-any-return]  # any function


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class GivenRetriever:
    """A retriever object given in Python, with the settings of `ExistingRetriever`; `name` identifies it.

    An object with a method `index(corpus, store)`, such as a retriever of this library, indexes the documents first.
    """

    name: str
    retriever: object = Field(repr=False)
    interface: Interface = "auto"
    item_id: str | None = None
    score: str | None = None
    concurrency: int = Field(default=1, ge=1, repr=False)

    @property
    def capabilities(self) -> Capabilities:
        """Return what the object may do; the search raises if an object of another library does not apply filters."""
        if find_search(self.retriever, self.interface) is not None:
            return Capabilities(filters=True, live=True)
        return replace(derive_capabilities(self.retriever), live=True)

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        """Return the object as a searcher; raises `RetrieverError` if it has no known interface."""
        search = find_search(self.retriever, self.interface)
        if search is not None:
            return ExistingSearcher(self, search, corpus.positions)
        if not isinstance(self.retriever, (str, list, tuple, type)) and isinstance(self.retriever, Retriever):
            return self.retriever.index(corpus, store)
        raise RetrieverError(f"not a retriever: {describe_interfaces(self.retriever, self.interface)}")


def find_search(retriever: object, interface: Interface = "auto") -> QuerySearch | BatchSearch | None:
    """Return how to search with an object, None if it has no known interface."""
    kinds = _METHODS if interface == "auto" else [interface]
    kind = next((kind for kind in kinds if callable(getattr(retriever, _METHODS[kind], None))), None)
    if kind is None or isinstance(retriever, type):
        return None
    call: Any = retriever if kind == "function" else getattr(retriever, _METHODS[kind])
    if kind == "haystack":
        is_pipeline = callable(getattr(retriever, "inputs", None))
        return _search_pipeline(retriever, call) if is_pipeline else _search_component(call)
    positional, names = _list_parameters(call)
    if kind == "search" and positional[:1] != ["query"]:
        return BatchSearch(call, "filters" in names)
    counted = kind in ("search", "function") and len([name for name in positional if name != "filter"]) > 1
    filtered = "filter" in names

    def search(query: str, k: int, own: Filter | None) -> object:
        return call(query, *([k] if counted else []), **({"filter": _format_json(own)} if filtered else {}))

    return QuerySearch(search, filtered)


def describe_interfaces(retriever: object, interface: Interface) -> str:
    """Describe an object without a known interface, and list the methods that were looked for."""
    kinds = _METHODS if interface == "auto" else [interface]
    if isinstance(retriever, type):
        return f"the class {retriever.__name__}; create an instance"
    methods = ", ".join(_METHODS[kind] for kind in kinds if kind != "function")
    wanted = [*(["a function"] if "function" in kinds else []), *([f"an object with {methods}"] if methods else [])]
    return f"{type(retriever).__name__}; expected {' or '.join(wanted)}"


def _format_json(own: Filter | None) -> object:
    return None if own is None else format_filter(own, "json", {})


def _list_parameters(function: Callable[..., object]) -> tuple[list[str], set[str]]:
    """Return the names of a function's positional parameters, and of all; none if it has no signature."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return [], set()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters.values() if p.kind in positional], set(parameters)


def _fill_inputs(query: str, k: int, own: Filter | None) -> dict[str, object]:
    """Return the values for inputs of Haystack by name; without a filter, `filters` keeps its default."""
    values: dict[str, object] = {"query": query, "text": query, "top_k": k}
    return values if own is None else {**values, "filters": format_filter(own, "haystack", {})}


def _search_component(call: Callable[..., object]) -> QuerySearch:
    _, names = _list_parameters(call)
    given = (names | {"query"}) - {"text"}

    def search(query: str, k: int, own: Filter | None) -> object:
        return call(**{name: value for name, value in _fill_inputs(query, k, own).items() if name in given})

    return QuerySearch(search, "filters" in names)


def _search_pipeline(pipeline: Any, call: Callable[..., object]) -> QuerySearch:  # noqa: ANN401 (Haystack's own class)
    """Return how to run a pipeline: inputs named query or text get the query, those named top_k the number of hits."""
    inputs: Mapping[str, Mapping[str, object]] = pipeline.inputs()

    def search(query: str, k: int, own: Filter | None) -> object:
        values = _fill_inputs(query, k, own)
        data = {name: {key: values[key] for key in sockets if key in values} for name, sockets in inputs.items()}
        outputs = call(data={name: given for name, given in data.items() if given})
        lists = [part for part in _values(outputs) if isinstance(part, Mapping) and "documents" in part]
        if not lists:
            raise ValueError("the pipeline has no output named documents; rename its output")
        return lists[-1]

    return QuerySearch(search, any("filters" in sockets for sockets in inputs.values()))


def _values(outputs: object) -> Sequence[object]:
    return list(outputs.values()) if isinstance(outputs, Mapping) else []


@dataclass(frozen=True, eq=False)
class ExistingSearcher:
    """Searches with a retriever of another library; it knows the position of each document by its id."""

    settings: ExistingRetriever | GivenRetriever
    find: QuerySearch | BatchSearch
    positions: Mapping[str, int]

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the hits of the object, in its order; a query that raises is an error of the rankings.

        Raises `RetrieverError` for filters that the object does not take.
        """
        find, filters = self.find, list_filters(queries)
        if any(filters) and not find.applies_filters:
            remedy = "give its function or method a parameter named filter"
            refuse_filters(type(self.settings).__name__, queries, remedy)
        if isinstance(find, BatchSearch):
            return self._search_batch(find, queries, k)
        replies = map_threads(
            lambda row: self._search_one(find.call, str(queries[row]), k, filters[row]),
            range(len(queries)),
            self.settings.concurrency,
        )
        return join_replies(list(replies), self.positions, k)

    def _search_batch(self, find: BatchSearch, queries: Sequence[str], k: int) -> Rankings:
        """Return the hits of all queries, found in one call; raises `RetrieverError` if it fails."""
        own = {"filters": list(map(_format_json, list_filters(queries)))} if find.applies_filters else {}
        try:
            hits = find.call([str(query) for query in queries], k, **own)
        except Exception as error:  # anything that another library raises
            raise RetrieverError(f"search: {describe_error(error)}") from error
        n = len(hits) if isinstance(hits, Sized) else 0
        if n != len(queries):
            raise RetrieverError(
                f"search: returned {n} lists of hits for {len(queries)} queries; return one for each query"
            )
        if isinstance(hits, Rankings):
            return hits.cut(k)
        rows = hits if isinstance(hits, Iterable) else ()
        return join_replies([self._parse_reply(row, k) for row in rows], self.positions, k)

    def _search_one(self, find: Search, query: str, k: int, own: Filter | None) -> SearchReply:
        start = time.perf_counter()
        try:
            hits = find(query, k, own)
        except Exception as error:  # anything that another library raises
            return SearchReply(error=describe_error(error))
        seconds = time.perf_counter() - start
        reply = self._parse_reply(hits, k)
        return reply if reply.error else replace(reply, seconds=seconds)

    def _parse_reply(self, hits: object, k: int) -> SearchReply:
        try:
            items = list(self._iter_items(hits))
            kept = [item for item in items if not math.isnan(item[1])]
            reply = build_reply(kept, k)
        except Exception as error:  # hits may be of any type
            return SearchReply(error=describe_error(error))
        return replace(reply, figures={**(reply.figures or {}), "nan_scores": float(len(items) - len(kept))})

    def _iter_items(self, hits: object) -> Iterator[tuple[str, float]]:
        if isinstance(hits, Mapping) and "documents" in hits:  # Haystack
            hits = hits["documents"]
        if isinstance(hits, Mapping):  # without an order: BEIR fills it from a heap
            scored = [(parse_id(name), _parse_score(score)) for name, score in hits.items()]
            yield from sorted(scored, key=lambda item: (not math.isnan(item[1]), item[1], item[0]), reverse=True)
            return
        if isinstance(hits, str) or not hasattr(hits, "__iter__"):
            raise TypeError(f"returned {type(hits).__name__} instead of a list of hits")
        for rank, hit in enumerate(hits, start=1):
            yield self._parse_hit(hit, rank)

    def _parse_hit(self, hit: Any, rank: int) -> tuple[str, float]:  # noqa: ANN401 (any document)
        if isinstance(hit, (str, Number)):
            return parse_id(hit), 1 / rank
        if isinstance(hit, (tuple, list)) and len(hit) == 2:
            item, score = hit
            return (parse_id(item) if isinstance(item, (str, Number)) else self._find_id(item)), _parse_score(score)
        score = get_value(hit, self.settings.score or "score")
        if score is None and self.settings.score:
            raise ValueError(f"a hit has no {self.settings.score}; its fields are {', '.join(list_names(hit))}")
        return self._find_id(hit), 1 / rank if score is None else _parse_score(score)

    def _find_id(self, hit: object) -> str:
        if self.settings.item_id:
            value = get_value(hit, self.settings.item_id)
            if value is None:
                raise ValueError(f"a hit has no {self.settings.item_id}; its fields are {', '.join(list_names(hit))}")
            return parse_id(value)
        paths = (f"{part}.{name}" for name in ID_NAMES for part in ("metadata", "meta"))
        own = ("item_id", "document_id", "doc_id", "ref_doc_id", "node.ref_doc_id", "id", "node_id", "_id")
        values = [parse_id(value) for path in (*paths, *own) if (value := get_value(hit, path)) not in (None, "")]
        if not values:
            raise ValueError(
                f"a hit has no id; set item_id to the path of its id (fields: {', '.join(list_names(hit))})"
            )
        return next((value for value in values if value in self.positions), values[0])


def _parse_score(value: Any) -> float:  # noqa: ANN401 (also a tensor)
    """Return a score, which may be NaN, as a float; raises `ValueError` or `TypeError`."""
    return parse_number(value) if isinstance(value, (str, bool)) else float(value)


def get_value(hit: object, path: str) -> Any:  # noqa: ANN401 (any value)
    """Return the value at a path of keys and attributes, joined by dots; None if it does not exist."""
    for name in path.split("."):
        hit = hit.get(name) if isinstance(hit, Mapping) else getattr(hit, name, None)
    return hit


def list_names(hit: object) -> list[str]:
    """Return the names of a hit's keys or attributes, for messages."""
    names = hit if isinstance(hit, Mapping) else getattr(hit, "__dict__", None) or [type(hit).__name__]
    return [str(name) for name in names if not str(name).startswith("_")]


def describe_error(error: Exception) -> str:
    """Return an error of another library in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".removesuffix(": ")
