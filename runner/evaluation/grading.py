"""Grade with a language model how useful the hits of each question are, and find the rank of the needle.

The judge sees the question, the expected answer and the first chunks, and grades from 1 to 10. Each chunk belongs to a
document; the needle is the document of a question's gold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.composed.multistage import NO_TEXT
from retrievers.llm.chat import Chat
from retrievers.store import fingerprint
from runner.config.addresses import LocalPath
from runner.config.patterns import compile_pattern, match_pattern
from runner.datasets.base import EXPECTED_ANSWER, Queries
from runner.datasets.chunking import DOCUMENT
from runner.evaluation.grades import Grades
from runner.evaluation.judge_quality import agreement, earlier_grades
from runner.evaluation.prompts import FOLDER
from runner.evaluation.verdicts import GradeVerdict, Patience, Scale, collect_verdicts, shorten
from runner.llm.journal import Journal
from runner.llm.prompts import Prompt, load_prompt

Weight = Annotated[float, Field(ge=0, le=1)]

SCALE = Scale(1, 10)
NO_CHUNKS = "(nothing was retrieved)"
NO_ANSWER = "(none is given)"


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Grading:
    """How the hits of each question are graded.

    `prompt` is a template file. The judge sees the first `k` chunks, the question and its answer, each cut to
    `max_characters`. It grades them `repeats` times; a reply without a grade is requested again up to `retries` times.
    A total score is the grade times one of three `weights`: for the needle at rank 1, at a later rank up to k, and not
    found. The expected answer is in the metadata of the queries. The document of a chunk is the value of
    `document_field` in its metadata, the first group of `document_pattern` in its id, the document that it was cut
    from, or else the chunk itself. `reference` is a file of grades from another source to compare with.
    """

    access: ClassVar[Access] = Access(paths=("prompt", "reference"))

    llm: Chat
    prompt: LocalPath = "bundled:usefulness.txt"
    k: int = Field(default=5, ge=1)
    max_characters: int = Field(default=10_000, ge=100)
    repeats: int = Field(default=1, ge=1)
    retries: int = Field(default=3, ge=0)
    backoff_s: float = Field(default=1.0, ge=0, repr=False)
    weights: tuple[Weight, Weight, Weight] = (1.0, 0.8, 0.5)
    answer_field: str = EXPECTED_ANSWER
    document_field: str | None = None
    document_pattern: str | None = None
    reference: LocalPath | None = None

    @model_validator(mode="after")
    def _readable(self) -> Self:
        _ = self.template, self.earlier
        if self.document_field and self.document_pattern:
            raise ValueError("document_field and document_pattern are mutually exclusive; set only one of them")
        try:
            groups = compile_pattern(self.document_pattern or "()").groups
        except ValueError as error:
            raise ValueError(f"document_pattern={self.document_pattern}: {error}") from None
        if groups < 1:
            raise ValueError(
                f"document_pattern={self.document_pattern}: should contain a group, as in '(.+)_chunk[0-9]+'"
            )
        return self

    @cached_property
    def template(self) -> Prompt:
        """Return the prompt template."""
        return load_prompt(self.prompt, ("question", "expected_answer", "chunks"), bundled=FOLDER)

    @cached_property
    def earlier(self) -> Mapping[str, float]:
        """Return the grades of the reference by question."""
        return earlier_grades(self.reference) if self.reference else {}

    def identity(self, queries: Queries) -> str:
        """Return a hash of everything that decides grades except the hits: judge, prompt, settings, answers."""
        earlier = [f"{query}\0{grade}" for query, grade in sorted(self.earlier.items())]
        return fingerprint(repr(self), self.template.hash, *self.answers(queries), *earlier)

    def answers(self, queries: Queries) -> list[str]:
        """Return the expected answer of each query, "" if it has none."""
        if not queries.metadata:
            return [""] * len(queries)
        return [str(metadata.get(self.answer_field) or "") for metadata in queries.metadata]


def grade_found(
    grading: Grading,
    corpus: Corpus,
    queries: Queries,
    retrieved: Sequence[Sequence[str]],
    expected: Sequence[Sequence[str]],
    failed: Collection[int],
    journal: Path,
    searcher: str = "",
) -> tuple[Grades, Journal]:
    """Grade the hits of each query, best first, given the ids of its gold and the positions of failed queries.

    A query whose search raised an error is not graded, because it has no hits to judge. The journal of the work is a
    file in the folder `journal`; it is also returned, so that it can be deleted once the grades are saved. It belongs
    to one `searcher`: another with the same hits, possibly running at the same time, has its own.
    """
    chunks = _Chunks(corpus, grading)
    answers, seen = grading.answers(queries), [list(ids[: grading.k]) for ids in retrieved]
    graded = [position for position in range(len(queries)) if position not in failed]
    longest = grading.max_characters
    questions = [
        grading.template.fill(
            question=shorten(queries.texts[q], longest),
            expected_answer=shorten(answers[q], longest) or NO_ANSWER,
            chunks=chunks.render(seen[q]),
        )
        for q in graded
    ]
    kept = Journal(journal / f"{fingerprint(grading.identity(queries), searcher, *questions)}.jsonl")
    patience = Patience(grading.retries, grading.backoff_s)
    replies = collect_verdicts(grading.llm, questions, SCALE, "grade", kept, patience, grading.repeats)
    rows = [[GradeVerdict(None, "error", "the search raised an error")] * grading.repeats for _ in queries.ids]
    for position, row in zip(graded, replies, strict=True):
        cut = max(len(queries.texts[position]), len(answers[position]), chunks.longest(seen[position])) > longest
        rows[position] = [replace(verdict, cut=cut) for verdict in row]
    grades = Grades(
        judge=repr(grading.llm),
        prompt=grading.template.hash,
        k=grading.k,
        weights=grading.weights,
        verdicts=rows,
        ranks=np.array([np.nan if q in failed else chunks.rank(seen[q], expected[q]) for q in range(len(queries))]),
        echoes=[_same(text, answer) for text, answer in zip(queries.texts, answers, strict=True)],
    )
    return _add_agreement(grades, queries, grading.earlier), kept


def _add_agreement(grades: Grades, queries: Queries, earlier: Mapping[str, float]) -> Grades:
    if not earlier:
        return grades
    others = np.array([earlier.get(query, np.nan) for query in queries.ids])
    return replace(grades, agreement=agreement(grades.values, others))


def _same(question: str, answer: str) -> bool:
    return " ".join(question.split()).casefold() == " ".join(answer.split()).casefold()


class _Chunks:
    """The chunks of a corpus by id, and the document of each."""

    def __init__(self, corpus: Corpus, grading: Grading) -> None:
        self._corpus, self._grading = corpus, grading
        self._at = {identifier: position for position, identifier in enumerate(corpus.ids)}

    def document(self, chunk: str) -> str:
        """Return the document that a chunk belongs to; the chunk itself if none is known."""
        if self._grading.document_pattern:
            match = match_pattern(self._grading.document_pattern, chunk, whole=True)
            return match[1] if match else chunk
        if chunk in self._at and self._corpus.metadata:
            return str(self._corpus.metadata[self._at[chunk]].get(self._grading.document_field or DOCUMENT) or chunk)
        return chunk

    def render(self, chunks: Sequence[str]) -> str:
        """Return the chunks as the judge sees them."""
        parts = [
            f"[Chunk {place} - {self.document(chunk)}]\n{shorten(self._content(chunk), self._grading.max_characters)}"
            for place, chunk in enumerate(chunks, start=1)
        ]
        return "\n\n".join(parts) or NO_CHUNKS

    def longest(self, chunks: Sequence[str]) -> int:
        """Return the length of the longest of some chunks, in characters."""
        return max((len(self._content(chunk)) for chunk in chunks), default=0)

    def rank(self, chunks: Sequence[str], golds: Sequence[str]) -> float:
        """Return the rank of the first chunk whose document is that of a gold, NaN if there is no gold."""
        needles = {self.document(gold) for gold in golds}
        ranks = (place for place, chunk in enumerate(chunks, start=1) if self.document(chunk) in needles)
        return float(next(ranks, np.inf)) if needles else np.nan

    def _content(self, chunk: str) -> str:
        if (position := self._at.get(chunk)) is None:
            return NO_TEXT
        title = self._corpus.titles[position] if self._corpus.titles else ""
        return "\n".join(filter(None, (title, self._corpus.texts[position])))
