"""Fill in missing judgments: the best documents of several results are pooled, and a language model grades the pool.

Judgments by people take precedence over the model's. The effect of documents that stay unjudged is bounded: as if all
were irrelevant, and as if all were relevant. Queries without gold are left alone, because by the word of the dataset's
authors their right result is an empty one. If chunks were searched, the model sees the first chunk that was found of a
document and judges the document by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings
from retrievers.llm.chat import Chat
from retrievers.store import fingerprint
from runner.config.addresses import LocalPath
from runner.datasets.base import Judgments
from runner.datasets.dataset import Dataset
from runner.evaluation.prompts import FOLDER
from runner.evaluation.verdicts import GradeVerdict, Patience, Scale, collect_verdicts, shorten
from runner.llm.journal import Journal
from runner.llm.prompts import Prompt, load_prompt
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader

SCALE = Scale(0, 3)

Pair = tuple[int, int]
"""A query and a document, by position."""

PairIds = tuple[str, str]
"""A query and a document, by id."""

Place = tuple[int, int]
"""Where a document was found first: the index of the ranking, and its position in the corpus that was searched."""


class JudgedRankings(NamedTuple):
    """The rankings of a result in a dataset, perhaps of chunks of its documents, and the judgments of the documents."""

    dataset: Dataset
    rankings: Rankings
    judgments: Judgments


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Judging:
    """How unjudged pairs are judged: those among the first `depth` documents of any result, on a scale from 0 to 3.

    `prompt` is a template file. The judge sees the first `max_characters` of a query and of a document. A reply without
    a grade is requested again up to `retries` times.
    """

    llm: Chat
    prompt: LocalPath = "bundled:relevance.txt"
    depth: int = Field(default=10, ge=1)
    max_characters: int = Field(default=10_000, ge=100)
    retries: int = Field(default=3, ge=0)
    backoff_s: float = Field(default=1.0, ge=0, repr=False)

    @model_validator(mode="after")
    def _readable(self) -> Self:
        _ = self.template
        return self

    @cached_property
    def template(self) -> Prompt:
        """Return the prompt template."""
        return load_prompt(self.prompt, ("question", "document"), bundled=FOLDER)


@dataclass(frozen=True)
class Bounds:
    """A measure's mean if all unjudged documents are irrelevant, the usual assumption, and if all are relevant.

    For P, Success and RR these are the smallest and the largest possible values. For a measure with an ideal (nDCG, R,
    AP) they are only two points, because relevant documents raise the ideal too. `judged` is the share of the first
    documents that is judged.
    """

    irrelevant: float
    relevant: float
    judged: float


@dataclass(frozen=True)
class Standing:
    """The bounds of a result before and after judgments are filled in."""

    name: str
    before: Bounds
    after: Bounds


def pool(runs: Sequence[JudgedRankings], depth: int, all_queries: bool = False) -> dict[Pair, Place]:
    """Return the pairs among the first `depth` of any rankings that its judgments lack, most important first.

    They are ordered by best rank, then by how many rankings have them, then by query and document, so that a limited
    budget covers the most important ones. Each pair has the place of its best rank, in the first of the rankings that
    have it there. Hits that the corpus lacks have no text to judge and are left out. So are queries without gold,
    unless `all_queries` are pooled.
    """
    best: dict[Pair, tuple[int, Place]] = {}
    systems = Counter[Pair]()
    lacking: dict[int, Callable[[Pair], bool]] = {}
    for run, (dataset, rankings, judgments) in enumerate(runs):
        lacks = lacking.get(id(judgments)) or lacking.setdefault(id(judgments), _lacks(judgments, all_queries))
        documents = _documents(runs[run])
        pairs: dict[Pair, tuple[int, Place]] = {}
        for query, rank in np.argwhere(rankings.documents[:, :depth] != NOTHING).tolist():
            position = int(rankings.documents[query, rank])
            document = int(documents[position])
            if position < len(dataset.corpus) and lacks((query, document)):
                pairs.setdefault((query, document), (rank, (run, position)))
        systems.update(pairs.keys())
        best |= {pair: min(place, best.get(pair, place)) for pair, place in pairs.items()}
    return {pair: best[pair][1] for pair in sorted(best, key=lambda pair: (best[pair][0], -systems[pair], pair))}


def list_pair_ids(dataset: Dataset, pairs: Collection[Pair]) -> list[PairIds]:
    """Return the ids of pairs."""
    names = dataset.documents.ids
    return [(dataset.queries.ids[query], names[document]) for query, document in pairs]


def judge_pairs(
    judging: Judging,
    runs: Sequence[JudgedRankings],
    pairs: Mapping[Pair, Place],
    folder: Path,
    advance: Callable[[bool], None] = lambda failed: None,
) -> tuple[list[GradeVerdict], Journal]:
    """Return the verdict on each pair, and the journal of the work.

    The journal is a file in `folder`; delete it once the verdicts are saved. `advance` is called after the first answer
    for each pair, with whether it failed.
    """
    queries, longest = runs[0].dataset.queries.texts, judging.max_characters
    texts = [
        (queries[query], read_content(runs[run].dataset.corpus, position))
        for (query, _), (run, position) in pairs.items()
    ]
    questions = [
        judging.template.fill(question=shorten(query, longest), document=shorten(document, longest))
        for query, document in texts
    ]
    journal = Journal(folder / f"{fingerprint(repr(judging), judging.template.hash, *questions)}.jsonl")
    patience = Patience(judging.retries, judging.backoff_s)
    replies = collect_verdicts(judging.llm, questions, SCALE, "judge", journal, patience, advance=advance)
    cut = [max(map(len, both)) > longest for both in texts]
    return [replace(row[0], cut=was_cut) for row, was_cut in zip(replies, cut, strict=True)], journal


def fill_judgments(judgments: Judgments, pairs: Collection[Pair], verdicts: Sequence[GradeVerdict]) -> Judgments:
    """Return judgments with the graded verdicts on pairs that they lack, converted to the scale of the judgments.

    If their largest grade is 1, the upper half of the judge's scale becomes 1, so that the judge's grades weigh no more
    than theirs.
    """
    greatest = int(judgments.grades.max(initial=1))
    lacks, judged_pairs = _lacks(judgments), zip(pairs, verdicts, strict=True)
    graded = [(pair, verdict.grade) for pair, verdict in judged_pairs if verdict.grade is not None and lacks(pair)]
    grades = [convert_grade(grade, greatest) for _, grade in graded]
    return _add(judgments, [pair for pair, _ in graded], grades)


def convert_grade(grade: float, greatest: int) -> int:
    """Convert a grade of the judge's scale to the scale of judgments with the largest grade `greatest`."""
    return int(grade * greatest / SCALE.greatest + 0.5)


def bounds(run: JudgedRankings, measure: Measure, depth: int) -> Bounds:
    """Return the bounds of a measure of rankings in which some of the first `depth` documents may be unjudged."""
    dataset, rankings, judgments = run
    unjudged = [*pool([run], depth), *_unreadable(run, depth)]
    everything = _add(judgments, unjudged, [int(judgments.grades.max(initial=1))] * len(unjudged))
    seen, outside = Measure("Judged", depth), _documents(run)[len(dataset.corpus) :].tolist()
    of = (
        len(rankings),
        len(dataset.documents),
        dataset.document_of,
        dict(zip(rankings.unknown_ids, outside, strict=True)),
    )
    least, most = (Grader(version, *of).score(rankings, [measure, seen]) for version in (judgments, everything))
    return Bounds(least.means()[str(measure)], most.means()[str(measure)], least.means()[str(seen)])


def _documents(run: JudgedRankings) -> NDArray[np.int32]:
    """Return the document, as a position in judgments, for each position in rankings (n + m,).

    Hits that neither the corpus nor the judgments have come last, in the order of `Rankings.unknown_ids`.
    """
    dataset, n = run.dataset, len(run.dataset.corpus)
    known = np.arange(n, dtype=np.int32) if dataset.document_of is None else dataset.document_of
    free = len(dataset.documents) + len(dataset.judgments.unknown_documents)
    outside = [dataset.judged_ids.get(name, free + i) for i, name in enumerate(run.rankings.unknown_ids)]
    return np.concatenate((known, np.array(outside, dtype=np.int32)))


def rank_documents(run: JudgedRankings, depth: int) -> NDArray[np.int32]:
    """Return the first `depth` documents of each query as positions in judgments, -1 for none (n x depth)."""
    documents = np.concatenate((_documents(run), np.array([NOTHING], dtype=np.int32)))
    return documents[run.rankings.documents[:, :depth]]


def _unreadable(run: JudgedRankings, depth: int) -> list[Pair]:
    """Return the unjudged pairs among the first documents whose text the corpus lacks."""
    hits, documents, lacks = run.rankings.documents[:, :depth], _documents(run), _lacks(run.judgments)
    places = np.argwhere(hits >= len(run.dataset.corpus)).tolist()
    pairs = dict.fromkeys((query, int(documents[hits[query, rank]])) for query, rank in places)
    return [pair for pair in pairs if lacks(pair)]


def read_content(corpus: Corpus, position: int) -> str:
    """Return the text of a document or chunk for the judge: its title, then its text."""
    title = corpus.titles[position] if corpus.titles else ""
    return f"{title} {corpus.texts[position]}" if title else corpus.texts[position]


def _lacks(judgments: Judgments, all_queries: bool = False) -> Callable[[Pair], bool]:
    """Return a predicate for pairs to judge: a query with gold, and a document that is unjudged for it."""
    judged = set(zip(judgments.queries.tolist(), judgments.documents.tolist(), strict=True))
    answerable = set(judgments.queries[judgments.grades > 0].tolist())
    return lambda pair: (all_queries or pair[0] in answerable) and pair not in judged


def _add(judgments: Judgments, pairs: Sequence[Pair], grades: Sequence[int]) -> Judgments:
    added: NDArray[np.int32] = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    queries = np.concatenate((judgments.queries, added[:, 0]))
    documents = np.concatenate((judgments.documents, added[:, 1]))
    everything = np.concatenate((judgments.grades, np.array(grades, dtype=np.int32)))
    order = np.lexsort((documents, queries))
    return replace(judgments, queries=queries[order], documents=documents[order], grades=everything[order])
