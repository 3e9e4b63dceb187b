"""Name, for each gold document missed at a cutoff, the one step of the retriever that lost it.

Only arithmetic on the ranks of gold documents in the rankings of the stages: losses by step add up to the gold missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.datasets.base import Judgments
from runner.datasets.dataset import Dataset
from runner.metrics.scores import UNRANKED, Ranks

NOT_IN_CORPUS, FILTER, CHUNKING, NOT_RETRIEVED = "not in the corpus", "filter", "chunking", "not retrieved"
CANDIDATES, THRESHOLD, CUTOFF, NOT_OBSERVABLE = "candidates", "threshold", "cutoff", "not observable"

BEFORE_SEARCH = (NOT_IN_CORPUS, FILTER, CHUNKING)
"""The steps that lose gold before any search: it has nothing that a search for the query could return."""

FOUND, NOT_COUNTED = -1, -2
"""The codes of gold that is not lost: it is among the first hits, or its query failed."""

Codes = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class StageRanks:
    """The rank of each gold document in the ranking of a stage, `UNRANKED` if it is missing; None if it is not stored.

    `name` is dotted, "" for the whole retriever. A part that searches itself has neither `step` nor inputs; `complete`
    is as in `retrievers.stages.Stage`.
    """

    name: str
    ranks: Ranks | None
    step: str = ""
    inputs: Sequence[StageRanks] = ()
    complete: bool = True

    @property
    def is_part(self) -> bool:
        """Return whether the stage searches itself."""
        return self.complete and not self.inputs

    def leave_out(self, gold: NDArray[np.bool_]) -> StageRanks:
        """Return the stage as if it and its inputs did not return some of the gold documents, marked by a mask."""
        ranks = None if self.ranks is None else np.where(gold, np.int32(UNRANKED), self.ranks)
        return replace(self, ranks=ranks, inputs=[part.leave_out(gold) for part in self.inputs])

    def walk(self) -> Iterator[StageRanks]:
        """Yield the stages in the order in which they work: each after its inputs."""
        for stage in self.inputs:
            yield from stage.walk()
        yield self


@dataclass(frozen=True, eq=False)
class Losses:
    """The step that lost each gold document that is not among the first `cutoff` hits of its query.

    Gold is in the order of `JudgedQueries.expected`, query by query. `codes` (gold,) are positions in `steps`, the
    names of the steps in the order of the retriever, or `FOUND` or `NOT_COUNTED`. `ranks` (stages x gold) are the ranks
    in the rankings of `stages`, 0 if missing; the last stage, "", is the retriever itself. A stage such as `base@100`
    is the ranking of `base` down to rank 100, of which the last step reads less. `unobserved` names the stages whose
    rankings are not known. `dropped` counts, for each threshold of the metrics, the gold among the first
    hits that scores below it.
    """

    cutoff: int
    steps: Sequence[str]
    codes: Codes
    stages: Sequence[str]
    ranks: Ranks
    unobserved: Sequence[str] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of gold documents that each step lost; the sum is the number missed."""
        lost = np.bincount(self.codes[self.codes >= 0], minlength=len(self.steps))
        return dict(zip(self.steps, lost.tolist(), strict=True))

    @property
    def missed(self) -> int:
        """Return the number of gold documents that are not among the first hits."""
        return int(np.count_nonzero(self.codes >= 0))

    @property
    def gold(self) -> int:
        """Return the number of gold documents of the queries that were answered."""
        return int(np.count_nonzero(self.codes != NOT_COUNTED))

    def describe(self) -> dict[str, Any]:
        """Return all but the arrays, for JSON, with the number of losses by step."""
        names = ("cutoff", "steps", "stages", "unobserved", "dropped")
        return {name: getattr(self, name) for name in names} | {"counts": self.counts}

    @classmethod
    def restore(cls, described: Mapping[str, Any], codes: Codes, ranks: Ranks) -> Losses:
        """Return the losses of which `describe` returned the rest; raises `ValueError` if the parts do not fit."""
        head = {name: value for name, value in described.items() if name != "counts"}
        losses = cls(codes=codes, ranks=ranks, **head)
        fits = ranks.shape == (len(losses.stages), len(codes)) and losses.counts == described["counts"]
        if not fits or codes.min(initial=0) < NOT_COUNTED or codes.max(initial=-1) >= len(losses.steps):
            raise ValueError("the losses of gold documents do not belong together")
        return losses

    def select(self, gold: NDArray[np.integer]) -> Losses:
        """Return the losses of some of the gold documents, by position."""
        return replace(self, codes=self.codes[gold], ranks=self.ranks[:, gold])

    def add_deeper(self, deeper: Mapping[str, Ranks], depth: int) -> Losses:
        """Return the losses with the ranks of gold (gold,) in rankings of stages down to a depth."""
        if not deeper:
            return self
        stages = [*(f"{name}@{depth}" for name in deeper), *self.stages]
        ranks = [np.where(own == UNRANKED, 0, own) for own in deeper.values()]
        return replace(self, stages=stages, ranks=np.vstack([*ranks, self.ranks]))

    def find_beyond(self) -> dict[int, int]:
        """Return the gold that is deeper in the input of a step than the step reads, and a depth that includes it."""
        beyond: dict[int, int] = {}
        rows = dict(zip(self.stages, self.ranks, strict=True))
        for name, ranks in rows.items():
            part, _, depth = name.rpartition("@")
            if part and part in rows and depth.isdecimal():
                beyond |= dict.fromkeys(np.flatnonzero((ranks > 0) & (rows[part] == 0)).tolist(), int(depth))
        return beyond

    def light(self) -> Losses:
        """Return the losses without ranks."""
        return replace(self, stages=(), ranks=self.ranks[:0])

    def drop_below(self, threshold: float, scores: NDArray[np.float32]) -> Losses:
        """Return the losses if hits below a threshold are dropped; `scores` (gold,) are those of the last stage."""
        below = (self.codes == FOUND) & (scores < np.float32(threshold))
        codes = np.where(below, np.int8(len(self.steps)), self.codes)
        return replace(self, steps=(*self.steps, THRESHOLD), codes=codes)


def find_unreachable(dataset: Dataset, judgments: Judgments) -> Codes:
    """Return the position in `BEFORE_SEARCH` of the step that loses each gold document (gold,), -1 for none.

    A document is lost in chunking if it has no chunk, and a gold span if no chunk contains enough of it.
    """
    order, n = judgments.gold_order, len(dataset.documents)
    queries, documents = judgments.queries[order], judgments.documents[order]
    codes = np.full(len(order), -1, dtype=np.int8)
    if not n:  # the documents are those of a service or a run, which are not known
        return codes
    is_known = documents < n
    if dataset.document_of is not None:
        chunks = np.bincount(dataset.document_of, minlength=n)
        codes[is_known & (chunks[np.where(is_known, documents, 0)] == 0)] = BEFORE_SEARCH.index(CHUNKING)
    for own in dict.fromkeys(filter(None, dataset.queries.filters)):
        passing = dataset.corpus.fields.select(own)
        if dataset.document_of is not None:
            passing = np.bincount(dataset.document_of[passing], minlength=n) > 0
        filtered = np.array([other == own for other in dataset.queries.filters], dtype=np.bool_)
        is_out = is_known & (codes < 0) & filtered[queries] & ~passing[np.where(is_known, documents, 0)]
        codes[is_out] = BEFORE_SEARCH.index(FILTER)
    codes[~is_known] = BEFORE_SEARCH.index(NOT_IN_CORPUS)
    if (spans := judgments.spans) is not None:
        lost = {name for name, is_lost in zip(spans.names, spans.is_lost.tolist(), strict=True) if is_lost}
        is_cut = np.array([name not in lost for name in judgments.unknown_documents], dtype=np.bool_)
        outside = np.flatnonzero(~is_known)
        codes[outside[is_cut[documents[outside] - n]]] = BEFORE_SEARCH.index(CHUNKING)
    return codes


def attribute_losses(final: StageRanks, cutoff: int, counted: NDArray[np.bool_], unreachable: Codes) -> Losses:
    """Return the step that lost each gold document; `counted` (gold,) marks gold of queries that were answered.

    Gold that no stage returned is lost before the search if it is `unreachable` (see `find_unreachable`), else it is
    *not retrieved*. A stage of which an input has the gold among its first hits has lost it. Otherwise an input has, or
    a stage before that; of several, the one furthest along. Gold that no stage has among its first hits is lost by the
    depth of the *candidates* if the ranking that a stage reads ends above it, or else by the *cutoff*. A loss is *not
    observable* if it depends on rankings that are not known.
    """
    stages = list(final.walk())
    composed = list(dict.fromkeys(stage.step for stage in stages if stage.step))
    order = (*BEFORE_SEARCH, NOT_RETRIEVED, CUTOFF, CANDIDATES, *composed, NOT_OBSERVABLE)  # the furthest along is last
    code_of = {step: code for code, step in enumerate(order)}
    known = [(stage.name, stage.ranks) for stage in stages if stage.ranks is not None]
    ranks = np.stack([own for _, own in known])
    codes = _attribute(final, ranks[-1], cutoff, code_of)
    codes = np.where((unreachable >= 0) & (ranks == UNRANKED).all(axis=0), unreachable, codes)
    is_lost = counted & (ranks[-1] > cutoff)
    happened = {order[code] for code in set(codes[is_lost].tolist())}
    shown = (*BEFORE_SEARCH, NOT_RETRIEVED, CANDIDATES, *composed, CUTOFF, NOT_OBSERVABLE)
    steps = [step for step in shown if step in happened or step in (NOT_RETRIEVED, CUTOFF, *composed)]
    numbers = np.array([steps.index(step) if step in steps else FOUND for step in order], dtype=np.int8)
    return Losses(
        cutoff,
        steps,
        np.where(is_lost, numbers[codes], np.where(counted, np.int8(FOUND), np.int8(NOT_COUNTED))),
        [name for name, _ in known],
        np.where(ranks == UNRANKED, 0, ranks),
        [stage.name for stage in stages if stage.ranks is None or not stage.complete],
    )


def _attribute(stage: StageRanks, ranks: Ranks, cutoff: int, code_of: Mapping[str, int]) -> Codes:
    """Return the step that lost each gold document (gold,), as if the stage had none among its first hits."""
    if stage.is_part:
        return np.where(ranks == UNRANKED, code_of[NOT_RETRIEVED], code_of[CUTOFF]).astype(np.int8)
    lost, best = np.full(ranks.shape, code_of[NOT_RETRIEVED], np.int8), np.full(ranks.shape, UNRANKED, np.int32)
    for part in stage.inputs:
        if part.ranks is not None:
            own = _attribute(part, part.ranks, cutoff, code_of)
            own[(own == code_of[CUTOFF]) & (part.ranks == UNRANKED)] = code_of[CANDIDATES]
            lost, best = np.maximum(lost, own), np.minimum(best, part.ranks)
    if not stage.complete or any(part.ranks is None for part in stage.inputs):
        lost[:] = code_of[NOT_OBSERVABLE]
    if stage.step:
        lost[best <= cutoff] = code_of[stage.step]
    return lost
