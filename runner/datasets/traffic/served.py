"""The rankings that production served, as a retriever: they are looked up by the ids of queries, never searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, RetrieverError
from retrievers.capabilities import Capabilities
from retrievers.services.replies import SearchReply, build_reply, join_replies
from retrievers.store import NoStore, Store
from runner.datasets.base import DatasetError
from runner.datasets.traffic.masking import MaskPatterns
from runner.datasets.traffic.queries import UtcTime, group_searches, load_traffic
from runner.datasets.traffic.searches import ServedSearch, Traffic
from runner.datasets.traffic.spans import ID_RULES, IdRule, parse_time

RESULTS_VERSION = "served 1"


@settings(frozen=True, config={"extra": "forbid"})
class Served:
    """Settings of the rankings in exported spans: the files, window, rules for ids and masks, as in `Telemetry`.

    A hit keeps the rank at which it was served. The ranking of a text is the newest in the window, and a search that
    failed is an error.
    """

    access: ClassVar[Access] = Access(paths=("path",))
    # What is served was filtered by the service; the files may grow, and are read once with the dataset.
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True, texts=False, ids=True, live=True, scans=False)

    path: str
    since: UtcTime | None = None
    until: UtcTime | None = None
    ids: tuple[IdRule, ...] = ID_RULES
    mask: MaskPatterns = Field(default_factory=dict)

    def index(self, corpus: Corpus, store: Store) -> ServedSearcher:
        """Read the files; raises `RetrieverError`."""
        try:
            traffic = load_traffic(self.path, self.ids, masks=self.mask).select(
                parse_time(self.since), parse_time(self.until)
            )
        except DatasetError as error:
            raise RetrieverError(str(error)) from None
        replies = {
            query.id: _build_reply(traffic, query.served)
            for by_text in (True, False)
            for query in group_searches(traffic, by_text)
        }
        return ServedSearcher(self.path, replies, corpus.positions)


def _build_reply(traffic: Traffic, search: ServedSearch) -> SearchReply:
    if search.hits is None:
        return SearchReply(error=search.error or "the documents were not recorded")
    ids = [name for name, _ in traffic.list_hits(search)]
    reply = build_reply([(name, -float(rank)) for rank, name in enumerate(ids)], len(ids))
    return replace(reply, seconds=search.latency_ms / 1000)


@dataclass(frozen=True, eq=False)
class ServedSearcher:
    """The served ranking of each query, by its id."""

    path: str
    replies: Mapping[str, SearchReply]
    positions: Mapping[str, int]

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the first k hits of each query; one that was not served in the window is an error."""
        missing = SearchReply(error="not served in this window")
        replies = [self.replies.get(str(getattr(query, "id", query)), missing) for query in queries]
        if queries and all(reply is missing for reply in replies):
            first = str(getattr(queries[0], "id", queries[0]))
            raise RetrieverError(f"{self.path}: contains none of the {len(queries):,} queries, such as {first!r}")
        return join_replies([replace(r, ids=r.ids[:k], scores=r.scores[:k]) for r in replies], self.positions, k)
