"""What was served: collect spans and feedback, join them by trace, and choose the ranking that each search returned.

In each trace, the outermost span of retrieval is a search. A reranker within it, or one whose candidates are its
documents, gives the ranking; several independent spans of retrieval, such as a retry or sub-queries, are several
searches.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from runner.datasets.traffic.spans import UNRECORDED, Feedback, ServedDocuments, Span, list_numbers

Outcome = Literal["used", "failed", "no query", "no documents", "redacted", "truncated", "dropped attributes"]
"""What a search can be used for: all but `used`, `failed` and `dropped attributes` lack a query or documents."""


@dataclass(slots=True)
class ServedSearch:
    """A search of a user: `hits` are None if they were not recorded, `latency_ms` is NaN if unknown.

    `hits` is a ranking, packed: document numbers (int32; -1: not recorded), then scores (float32, NaN for none).
    `user` and `session` are pseudonyms, `slices` are attributes by which results can be broken down, `weight` is the
    number of searches that a sampled one stands for, and `feedback` is what was said about the search as a whole.
    """

    trace: bytes
    span: bytes
    query: str
    hits: bytes | None
    start_ns: int
    latency_ms: float
    error: str
    outcome: Outcome
    user: str
    session: str
    slices: Mapping[str, str]
    weight: float
    feedback: list[Feedback] | None = None


@dataclass
class Traffic:
    """The searches in some files, by time, and counts of what was read.

    `documents` are the ids of all served documents and `texts` their newest texts ("" if unknown), by number.
    `outcomes` counts spans, each once: those of searches by `Outcome`, and `nested`, `duplicate` and `other kind`.
    `rules` counts served documents by where their id comes from, and `feedback` what was said by who said it.
    `unjoined` is the feedback that concerns no single search, and `damage` says in a line what is broken in a file.
    """

    searches: Sequence[ServedSearch]
    documents: Sequence[str]
    texts: Sequence[str]
    spans: int
    outcomes: Counter[str]
    rules: Counter[str]
    feedback: Counter[str]
    unjoined: int = 0
    broken: int = 0
    unknown: int = 0
    damage: Sequence[str] = ()

    def list_hits(self, search: ServedSearch) -> list[tuple[str, float | None]]:
        """Return the ids and scores of a search's hits, best first; a document that was not recorded has an own id."""
        if search.hits is None:
            return []
        numbers = list_numbers(search.hits)
        scores = (None if math.isnan(s) else s for s in np.frombuffer(search.hits, np.float32)[len(numbers) :].tolist())
        ids = (self.documents[n] if n >= 0 else f"{UNRECORDED}{rank}" for rank, n in enumerate(numbers))
        return list(zip(ids, scores, strict=True))

    def select(self, since: int, until: int, sampling: float = 1) -> Traffic:
        """Return the traffic with only the searches from one time until before another, in nanoseconds; 0: any.

        A search whose spans do not show how they were sampled stands for 1 / `sampling` searches.
        """
        inside = [s for s in self.searches if since <= s.start_ns and (not until or s.start_ns < until)]
        if sampling < 1:
            inside = [search if search.weight != 1 else replace(search, weight=1 / sampling) for search in inside]
        elif len(inside) == len(self.searches):
            return self
        outcomes = self.outcomes - Counter(search.outcome for search in self.searches)
        outcomes += Counter(search.outcome for search in inside)
        outcomes["outside the window"] = len(self.searches) - len(inside)
        return replace(self, searches=inside, outcomes=+outcomes)

    def describe(self) -> str:
        """Return in one line what was read: each span once, where ids come from, feedback, and what is broken."""
        parts = [f"{self.spans:,} spans ({_list_counts(self.outcomes)})"]
        if (total := count_searches(self.searches)) != len(self.searches):
            parts.append(f"{len(self.searches):,} sampled searches stand for {total:,}")
        if self.rules:
            parts.append(f"ids of served documents from {_list_counts(self.rules)}")
        if self.feedback:
            left = f", of which {self.unjoined:,} not about a single search" if self.unjoined else ""
            parts.append(f"feedback from {_list_counts(self.feedback)}{left}")
        if self.broken or self.unknown:
            parts.append(f"{self.broken:,} broken and {self.unknown:,} unknown records")
        return "; ".join(parts)


def count_searches(searches: Iterable[ServedSearch]) -> int:
    """Return the number of searches, where a sampled one stands for several."""
    return round(sum(search.weight for search in searches))


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


class _Trace:
    """The spans of a trace, each in its newest form, and those of them that are steps of retrieval."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.id, self.spans = spans[0].trace, dict[bytes, Span]()
        for span in spans:
            if span.id not in self.spans or span.version >= self.spans[span.id].version:
                self.spans[span.id] = span
        self.steps = {span.id: span for span in self.spans.values() if span.kind}

    def iter_above(self, span: bytes) -> Iterator[bytes]:
        """Yield the spans around a span, the innermost first."""
        seen = {span}
        while span in self.spans and (span := self.spans[span].parent) and span not in seen:
            seen.add(span)
            yield span

    def find_outermost(self, span: bytes) -> bytes | None:
        """Return the outermost span of retrieval around a span, None if there is none."""
        return next((above for above in [*self.iter_above(span)][::-1] if above in self.steps), None)


class TrafficCollector:
    """Collects spans and feedback from any number of files; a span that is repeated counts once, in its newest form.

    `documents` packs the rankings of the spans. `describe` returns the slices of a span, `hide` the pseudonym of a user
    or session, and `mask` a query without personal data.
    """

    def __init__(
        self,
        documents: ServedDocuments,
        describe: Callable[[Mapping[str, object]], Mapping[str, str]],
        hide: Callable[[str], str],
        mask: Callable[[str], str] = str,
    ) -> None:
        self.documents = documents
        self._describe, self._hide, self._mask = describe, hide, mask
        self._traces: dict[bytes, list[Span]] = {}
        self._feedback: dict[tuple[bytes, bytes, str, str], Feedback] = {}
        self._shared: dict[Any, Any] = {}

    def add(self, item: Span | Feedback) -> None:
        """Add a span or feedback; the texts that spans share are held once."""
        if isinstance(item, Feedback):
            self._feedback[item.trace, item.span, item.name, item.key] = item
            return
        item.user, item.session = self._hide(item.user), self._hide(item.session)
        if item.kind:
            slices = self._describe(item.context)
            item.context = self._shared.setdefault(tuple(slices.items()), slices)
            query = self._mask(item.query)
            item.query = self._shared.setdefault(query, query)
        self._traces.setdefault(item.trace, []).append(item)

    def join(self) -> Traffic:
        """Return the traffic; the collector is empty afterwards."""
        outcomes, served = Counter[str](), np.zeros(len(self.documents.texts) + 1, dtype=np.int64)
        every = self._feedback.values()
        feedback, searches, spans = _FeedbackTable(every), list[ServedSearch](), 0
        while self._traces:  # frees memory on the way
            _, entries = self._traces.popitem()
            trace = _Trace(entries)
            own = [_build_search(trace, *steps) for steps in _iter_searches(trace)]
            feedback.attach(trace, own)
            searches += own
            spans += len(entries)
            outcomes["duplicate"] += len(entries) - len(trace.spans)
            outcomes["other kind"] += len(trace.spans) - len(trace.steps)
            outcomes["nested"] += len(trace.steps) - len(own)
        for search in searches:
            outcomes[search.outcome] += 1
            for number in list_numbers(search.hits) if search.hits else ():
                served[number] += 1
        rules = Counter[str]()
        for rule, count in zip([*self.documents.sources, "unrecorded"], served.tolist(), strict=True):
            rules[rule] += count
        searches.sort(key=lambda search: (search.start_ns, not search.error, search.trace, search.span))
        kinds = Counter[str](one.kind for one in every)
        ids, texts = list(self.documents.numbers), self.documents.texts
        return Traffic(searches, ids, texts, spans, +outcomes, +rules, kinds, feedback.left)


def _build_search(trace: _Trace, outer: Span, served: Span) -> ServedSearch:
    """Return a search from its outermost span and the one whose documents were served."""
    query, end = outer.query or served.query, max(outer.end_ns, served.end_ns)
    has_times = outer.start_ns and end >= outer.start_ns
    user, session = (
        next(filter(None, (getattr(span, name) for span in (outer, *trace.spans.values()))), "")
        for name in ("user", "session")
    )
    return ServedSearch(
        outer.trace, outer.id, query, served.hits, outer.start_ns,
        (end - outer.start_ns) / 1e6 if has_times else math.nan, outer.error,
        _find_outcome(query, served.hits, outer.error, outer.problem or served.problem), user, session, outer.context,
        outer.weight,
    )  # fmt: skip


def _find_outcome(query: str, hits: bytes | None, error: str, problem: str) -> Outcome:
    if query and error and not hits:
        return "failed"
    if query and hits is not None:
        return "dropped attributes" if problem == "dropped" else "used"
    if problem in ("redacted", "truncated"):
        return "redacted" if problem == "redacted" else "truncated"
    return "no documents" if query else "no query"


def _iter_searches(trace: _Trace) -> Iterator[tuple[Span, Span]]:
    """Yield the outermost span of each search in a trace, and the one whose documents were served."""
    if len(trace.steps) == 1:  # as most traces have
        yield from ((step, step) for step in trace.steps.values())
        return
    inside: defaultdict[bytes, list[Span]] = defaultdict(list)
    outer: list[Span] = []
    for step in trace.steps.values():
        above = trace.find_outermost(step.id)
        (outer if above is None else inside[above]).append(step)
    by_time = sorted(outer, key=lambda step: step.start_ns)
    retrievers = [step for step in by_time if step.kind == "retriever"]
    served = {step.id: _choose_inner(step, inside[step.id]) for step in by_time}
    for step in by_time:
        if step.kind == "reranker":
            sources = _find_sources(step, retrievers, served)
            for source in sources:
                served[source.id] = served[step.id]
            if sources:  # it belongs to the first search; the others are parts of the same
                retrievers = [r for r in retrievers if r not in sources[1:]]
            else:
                retrievers.append(step)
    yield from ((step, served[step.id]) for step in retrievers)


def _choose_inner(outer: Span, inner: Sequence[Span]) -> Span:
    """Return the step that gave the ranking: the last reranker, unless the outer span returned a part of its output."""
    ranked = sorted((step for step in inner if step.kind == "reranker" and step.hits), key=lambda step: step.end_ns)
    if not ranked:
        return inner[0] if outer.hits is None and len(inner) == 1 and not outer.error else outer
    last = ranked[-1]
    if outer.hits is None or last.hits is None:
        return last
    own, output = list_numbers(outer.hits), list_numbers(last.hits)
    is_input = last.candidates is not None and own == list_numbers(last.candidates)
    return last if is_input or not set(own) <= set(output) else outer


def _find_sources(reranker: Span, retrievers: Sequence[Span], served: Mapping[bytes, Span]) -> list[Span]:
    """Return the searches for the same query whose documents are most of a reranker's candidates."""
    inputs = {*list_numbers(reranker.candidates or b"")}
    sources = []
    for step in retrievers:
        own = {*list_numbers(served[step.id].hits or b"")}
        same = not reranker.query or reranker.query == step.query
        if step.kind == "retriever" and same and 2 * len(own & inputs) >= min(len(own), len(inputs)) > 0:
            sources.append(step)
    return sources


class _FeedbackTable:
    """Feedback by its target; `left` is the number that has not been attached to a search."""

    def __init__(self, every: Collection[Feedback]) -> None:
        self._by_target: defaultdict[bytes | tuple[bytes], list[Feedback]] = defaultdict(list)
        self.left = len(every)
        for one in every:
            self._by_target[one.span or (one.trace,)].append(one)

    def attach(self, trace: _Trace, searches: Sequence[ServedSearch]) -> None:
        """Attach feedback to the searches of a trace: by span, else to the only search below that did not fail."""
        if not self.left:
            return
        by_span = {search.span: search for search in searches}
        alone = [search for search in searches if not search.error]
        for span in trace.spans:
            if feedback := self._by_target.pop(span, None):
                below = [search for search in alone if span in trace.iter_above(search.span)]
                search = by_span.get(span) or by_span.get(trace.find_outermost(span) or b"")
                self._give(search, below, feedback)
        self._give(None, alone, self._by_target.pop((trace.id,), ()))

    def _give(self, search: ServedSearch | None, below: Sequence[ServedSearch], feedback: Sequence[Feedback]) -> None:
        if search := search or (below[0] if len(below) == 1 else None):
            search.feedback = [*(search.feedback or ()), *feedback]
            self.left -= len(feedback)
