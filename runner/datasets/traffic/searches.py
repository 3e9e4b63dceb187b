"""What was served: collect spans and feedback, join them by trace, and choose the ranking that each search returned.

In each trace, the outermost span of retrieval is a search. A reranker within it, or one whose candidates are its
documents, gives the ranking; several independent spans of retrieval, such as a retry or sub-queries, are several
searches.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from runner.datasets.traffic.spans import UNRECORDED, Feedback, ServedDocument, Span, SpanKind

_NAN = math.nan

Outcome = Literal["used", "failed", "no query", "no documents", "redacted", "truncated", "dropped attributes"]
"""What a search can be used for: all but `used`, `failed` and `dropped attributes` lack a query or documents."""


@dataclass(slots=True)
class ServedSearch:
    """A search of a user: `hits` are None if they were not recorded, `latency_ms` is NaN if unknown.

    `hits` is a ranking, packed: document numbers (int32; -1: not recorded), then scores (float32, NaN for none).
    `user` and `session` are pseudonyms, `slices` are attributes by which results can be broken down, and `feedback` is
    the mean of what was said about the search as a whole (1 good, 0 bad), None without.
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
    candidates: int = 0


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
        numbers = _list_numbers(search.hits)
        scores = (None if math.isnan(s) else s for s in np.frombuffer(search.hits, np.float32)[len(numbers) :].tolist())
        ids = (self.documents[n] if n >= 0 else f"{UNRECORDED}{rank}" for rank, n in enumerate(numbers))
        return list(zip(ids, scores, strict=True))

    def select(self, since: int, until: int) -> Traffic:
        """Return the traffic with only the searches from one time until before another, in nanoseconds; 0: any."""
        if not since and not until:
            return self
        inside = [s for s in self.searches if since <= s.start_ns and (not until or s.start_ns < until)]
        outcomes = self.outcomes - Counter(search.outcome for search in self.searches)
        outcomes += Counter(search.outcome for search in inside)
        outcomes["outside the window"] = len(self.searches) - len(inside)
        return replace(self, searches=inside, outcomes=+outcomes)

    def describe(self) -> str:
        """Return in one line what was read: each span once, where ids come from, feedback, and what is broken."""
        parts = [f"{self.spans:,} spans ({_list_counts(self.outcomes)})"]
        if self.rules:
            parts.append(f"ids of served documents from {_list_counts(self.rules)}")
        if self.feedback:
            left = f", of which {self.unjoined:,} not about a single search" if self.unjoined else ""
            parts.append(f"feedback from {_list_counts(self.feedback)}{left}")
        if self.broken or self.unknown:
            parts.append(f"{self.broken:,} broken and {self.unknown:,} unknown records")
        return "; ".join(parts)


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())


@dataclass(slots=True)
class _Step:
    """A span of retrieval as it is held in memory: the texts that spans share are held once."""

    id: bytes
    parent: bytes
    kind: SpanKind
    query: str
    hits: bytes | None
    candidates: bytes | None
    start_ns: int
    latency_ms: float
    error: str
    problem: str
    version: str
    weight: float
    person: tuple[str, str]
    slices: Mapping[str, str]

    def measure_ms(self, start_ns: int) -> float:
        """Return the time from a start to the end of this span, in milliseconds; NaN if unknown."""
        return (self.start_ns - start_ns) / 1e6 + self.latency_ms if self.start_ns and start_ns else math.nan


class _Other(NamedTuple):
    """A span of another kind, of which only the place in its trace and the person matter."""

    id: bytes
    parent: bytes
    person: tuple[str, str]
    version: str = ""


_NOBODY = ("", "")


class _Trace:
    """The spans of a trace: the parent of each, those of retrieval, and the person that any of them names."""

    def __init__(self, entries: Sequence[_Step | _Other]) -> None:
        newest: dict[bytes, _Step | _Other] = {}
        for entry in entries:
            if entry.id not in newest or entry.version >= newest[entry.id].version:
                newest[entry.id] = entry
        self.parents = {entry.id: entry.parent for entry in newest.values()}
        self.steps = {entry.id: entry for entry in newest.values() if isinstance(entry, _Step)}
        persons = [entry.person for entry in newest.values()]
        self.person = tuple(next(filter(None, column), "") for column in zip(*persons, strict=True))


class TrafficCollector:
    """Collects spans and feedback from any number of files; a span that is repeated counts once, in its newest form.

    `describe` returns the slices of a span, and `hide` the pseudonym of a user or session.
    """

    def __init__(
        self, describe: Callable[[Mapping[str, object]], Mapping[str, str]], hide: Callable[[str], str]
    ) -> None:
        self._describe, self._hide = describe, hide
        self._traces: dict[bytes, list[_Step | _Other]] = {}
        self._feedback: dict[tuple[bytes, bytes, str, str], Feedback] = {}
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._rules: list[str] = []
        self._shared: dict[Any, Any] = {}

    def add(self, item: Span | Feedback) -> None:
        """Add a span or feedback."""
        if isinstance(item, Feedback):
            self._feedback[item.trace, item.span, item.name, item.key] = item
            return
        person = (self._hide(item.user), self._hide(item.session)) if item.user or item.session else _NOBODY
        person = self._shared.setdefault(person, person)
        entry: _Step | _Other = _Other(item.id, item.parent, person, item.version)
        if item.kind:
            slices = self._describe(item.context)
            has_times = item.start_ns and item.end_ns >= item.start_ns
            entry = _Step(
                item.id, item.parent, item.kind, self._shared.setdefault(item.query, item.query),
                self._pack(item.documents), self._pack(item.candidates), item.start_ns,
                (item.end_ns - item.start_ns) / 1e6 if has_times else math.nan, item.error, item.problem, item.version,
                item.weight, person, self._shared.setdefault(tuple(slices.items()), slices),
            )  # fmt: skip
        self._traces.setdefault(item.trace, []).append(entry)

    def _pack(self, documents: Sequence[ServedDocument] | None) -> bytes | None:
        if documents is None:
            return None
        numbers = array("i")
        for identifier, rule, _, text in documents:
            if rule == "unrecorded":
                numbers.append(-1)
                continue
            number = self._numbers.setdefault(identifier, len(self._numbers))
            if number == len(self._texts):
                self._texts.append(text)
                self._rules.append(rule)
            elif text:
                self._texts[number] = text
            numbers.append(number)
        return numbers.tobytes() + array("f", [_NAN if d.score is None else d.score for d in documents]).tobytes()

    def join(self) -> Traffic:
        """Return the traffic; the collector is empty afterwards."""
        outcomes, served = Counter[str](), np.zeros(len(self._numbers) + 1, dtype=np.int64)
        every = self._feedback.values()
        feedback, searches, spans = _FeedbackTable(every), list[ServedSearch](), 0
        while self._traces:  # frees memory on the way
            key, entries = self._traces.popitem()
            trace = _Trace(entries)
            own = [_build_search(key, trace, steps) for steps in _iter_searches(trace)]
            feedback.attach(key, trace, own)
            searches += own
            spans += len(entries)
            outcomes["duplicate"] += len(entries) - len(trace.parents)
            outcomes["other kind"] += len(trace.parents) - len(trace.steps)
            outcomes["nested"] += len(trace.steps) - len(own)
        for search in searches:
            outcomes[search.outcome] += 1
            for number in _list_numbers(search.hits) if search.hits else ():
                served[number] += 1
        rules = Counter[str]()
        for rule, count in zip([*self._rules, "unrecorded"], served.tolist(), strict=True):
            rules[rule] += count
        searches.sort(key=lambda search: (search.start_ns, not search.error, search.trace, search.span))
        kinds = Counter[str](one.kind for one in every)
        return Traffic(searches, list(self._numbers), self._texts, spans, +outcomes, +rules, kinds, feedback.left)


def _build_search(key: bytes, trace: _Trace, steps: _SearchSteps) -> ServedSearch:
    outer, served = steps
    query, (user, session) = outer.query or served.query, outer.person
    latency = outer.latency_ms
    if served.measure_ms(outer.start_ns) > latency:
        latency = served.measure_ms(outer.start_ns)
    candidates = served.candidates or outer.hits or b""
    return ServedSearch(
        key, outer.id, query, served.hits, outer.start_ns, latency, outer.error,
        _find_outcome(query, served.hits, outer.error, outer.problem or served.problem), user or trace.person[0],
        session or trace.person[1], outer.slices, outer.weight, candidates=len(candidates) // 8,
    )  # fmt: skip


class _SearchSteps(NamedTuple):
    """The outermost span of a search, and the one whose documents were served."""

    outer: _Step
    served: _Step


def _find_outcome(query: str, hits: bytes | None, error: str, problem: str) -> Outcome:
    if not query:
        return "redacted" if problem == "redacted" else "truncated" if problem == "truncated" else "no query"
    if error and not hits:
        return "failed"
    if hits is None:
        return "redacted" if problem == "redacted" else "truncated" if problem == "truncated" else "no documents"
    return "dropped attributes" if problem == "dropped" else "used"


def _iter_searches(trace: _Trace) -> Iterator[_SearchSteps]:
    """Yield the searches of a trace, with the ranking that each served."""
    if len(trace.steps) == 1:  # as most traces have
        yield from (_SearchSteps(step, step) for step in trace.steps.values())
        return
    inside: defaultdict[bytes, list[_Step]] = defaultdict(list)
    outer: list[_Step] = []
    for step in trace.steps.values():
        above = _find_outermost(trace, step.id)
        if above is None:
            outer.append(step)
        else:
            inside[above].append(step)
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
    yield from (_SearchSteps(step, served[step.id]) for step in retrievers)


def _find_outermost(trace: _Trace, span: bytes) -> bytes | None:
    """Return the outermost span of retrieval around a span, None if there is none."""
    outermost, seen = None, {span}
    while (span := trace.parents.get(span, b"")) and span not in seen:
        seen.add(span)
        if span in trace.steps:
            outermost = span
    return outermost


def _choose_inner(outer: _Step, inner: Sequence[_Step]) -> _Step:
    """Return the step that gave the ranking: the last reranker, unless the outer span returned a part of its output."""
    ranked = sorted(
        (step for step in inner if step.kind == "reranker" and step.hits), key=lambda s: s.start_ns + 1e6 * s.latency_ms
    )
    if not ranked:
        if outer.hits is None and len(inner) == 1 and not outer.error:
            return inner[0]
        return outer
    last = ranked[-1]
    if outer.hits is None or last.hits is None:
        return last
    own, output = _list_numbers(outer.hits), _list_numbers(last.hits)
    is_input = last.candidates is not None and own == _list_numbers(last.candidates)
    return last if is_input or not set(own) <= set(output) else outer


def _find_sources(reranker: _Step, retrievers: Sequence[_Step], served: Mapping[bytes, _Step]) -> list[_Step]:
    """Return the searches for the same query whose documents are most of a reranker's candidates."""
    inputs = set(_list_numbers(reranker.candidates)) if reranker.candidates else set[int]()
    sources = []
    for step in retrievers:
        hits = served[step.id].hits
        own = set(_list_numbers(hits)) if hits else set[int]()
        same = not reranker.query or reranker.query == step.query
        if step.kind == "retriever" and same and own and 2 * len(own & inputs) >= min(len(own), len(inputs)) > 0:
            sources.append(step)
    return sources


def _list_numbers(hits: bytes) -> list[int]:
    return list(memoryview(hits)[: len(hits) // 2].cast("i"))


class _FeedbackTable:
    """Feedback by its target; `left` is the number that has not been attached to a search."""

    def __init__(self, every: Iterable[Feedback]) -> None:
        self._by_span: defaultdict[bytes, list[Feedback]] = defaultdict(list)
        self._by_trace: defaultdict[bytes, list[Feedback]] = defaultdict(list)
        self.left = 0
        for one in every:
            self.left += 1
            (self._by_span[one.span] if one.span else self._by_trace[one.trace]).append(one)

    def attach(self, key: bytes, trace: _Trace, searches: Sequence[ServedSearch]) -> None:
        """Attach feedback to the searches of a trace: by span, else to the only search below that did not fail."""
        if not self.left:
            return
        by_span = {search.span: search for search in searches}
        alone = [search for search in searches if not search.error]
        for span in trace.parents:
            if span in self._by_span:
                search = by_span.get(span) or by_span.get(_find_outermost(trace, span) or b"")
                below = [s for s in alone if search is None and _is_below(trace, s.span, span)]
                self._give(search or (below[0] if len(below) == 1 else None), self._by_span.pop(span))
        if key in self._by_trace:
            self._give(alone[0] if len(alone) == 1 else None, self._by_trace.pop(key))

    def _give(self, search: ServedSearch | None, feedback: Sequence[Feedback]) -> None:
        if search is not None:
            search.feedback = [*(search.feedback or ()), *feedback]
            self.left -= len(feedback)


def _is_below(trace: _Trace, span: bytes, above: bytes) -> bool:
    seen = {span}
    while (span := trace.parents.get(span, b"")) and span not in seen:
        seen.add(span)
        if span == above:
            return True
    return False
