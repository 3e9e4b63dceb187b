"""How queries of each type are put into words, without a language model: from phrases, headings and sentences.

A writer yields candidates, the best that chance brings first; what a candidate must keep to is not its concern. Of a
text in another language than English it is phrases without a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from runner.generation.synthesis.base import Bundle
from runner.generation.synthesis.frames import (
    ASKS,
    COMPARED,
    LONGEST_SUBJECT,
    RELATIONS,
    TOLD,
    UNSURE,
    about,
    apart,
    related,
)
from runner.generation.synthesis.language import ENGLISH
from runner.generation.synthesis.limits import tokens
from runner.generation.synthesis.material import Material
from runner.generation.synthesis.questions import questions_of, questions_of_heading
from runner.generation.synthesis.rewording import (
    FEWEST_PIECES,
    GAP,
    NUMBER,
    Task,
    asked_for,
    clause_around,
    drawn_share,
    early,
    framed,
    pieces_of,
)
from runner.generation.synthesis.searches import exact_snippet, keyword, misspellings, short, web_search_like

TRIES = 12
"""How many candidates a writer offers at most."""

Writer = Callable[[Task], Iterator[str]]


def medium(task: Task) -> Iterator[str]:
    """Yield what a sentence brings together, asked as one does who does not have it before them."""
    for _ in range(TRIES):
        for statement in early(task.material.statements, 1, task.chance):
            yield related(task, statement, RELATIONS, drawn_share(task))


def long(task: Task) -> Iterator[str]:
    """Yield a need told at length: a topic, and what one has heard of it."""
    least, _ = task.limits.bounds("long")
    for _ in range(TRIES):
        phrases = early(apart(task.material.phrases, task.material.topic, least), least, task.chance)
        if not task.is_english:
            parts = _fitting([task.material.topic, *phrases], task, "long")
            said = (" ".join(parts[:n]) for n in range(1, len(parts) + 1))
            yield task.material.phrasing.spelt(next((query for query in said if len(tokens(query)) >= least), ""))
        elif len(phrases) > 1:
            yield framed(task, task.chance.choice(TOLD), [task.material.topic, *phrases[:2]], drawn_share(task))


def concept_seeking(task: Task) -> Iterator[str]:
    """Yield what-is, how and why questions about the subject, as its heading puts it, or about a phrase.

    Of a language that there are no frames for it is the subject alone.
    """
    material = task.material
    subjects = [material.subject] if material.is_headed else early(material.phrases[:4], 4, task.chance)
    for subject in filter(None, subjects):
        spoken = material.phrasing.spelt(subject)
        if ASKS.match(subject) or not task.is_english:
            yield spoken
            continue
        for _ in range(TRIES):
            if len(tokens(subject)) > LONGEST_SUBJECT:
                yield related(task, subject, RELATIONS, drawn_share(task))
            else:
                yield about(task, spoken)


def low_overlap(task: Task) -> Iterator[str]:
    """Yield questions in other words: a word is another, and few of their terms are in a golden."""
    known = task.material.terms.analyzer.tokens
    material = task.material
    others = [sentence for sentence in material.sentences if sentence not in material.statements]
    for statement in [*early(material.statements, TRIES, task.chance), *others[:TRIES]]:
        for _ in range(TRIES):
            query = related(task, statement, UNSURE, task.most_overlap, anew=True)
            if len(known(query)) > 2 and task.share(query) <= task.most_overlap:
                yield query


def fact_seeking(task: Task) -> Iterator[str]:
    """Yield questions that a sentence answers; in another language than English, sentences with a gap."""
    if not task.is_english:
        yield from _with_gaps(task) if task.material.usage.language != ENGLISH else ()
        return
    material = task.material
    of_headings = [
        question for heading in material.telling_headings for question in questions_of_heading(heading, material)
    ]
    questions = [
        question for sentence in material.whole_sentences for question in islice(questions_of(sentence, material), 2)
    ]
    for question in (*early(questions, TRIES, task.chance), *early(of_headings, TRIES, task.chance)):
        yield f"{question[0].upper()}{question[1:]}?" if task.chance.random() < _WRITTEN_OUT else question


_WRITTEN_OUT = 0.5
"""The share of questions with a capital and a question mark; people type them either way."""


def _with_gaps(task: Task) -> Iterator[str]:
    """Yield sentences with a gap for a number or a name."""
    _, most = task.limits.bounds("fact_seeking")
    drawn = early(task.material.sentences, TRIES, task.chance)
    for sentence in sorted(drawn, key=lambda sentence: not NUMBER.search(sentence)):
        pieces = pieces_of(sentence)
        at = asked_for(pieces, task)
        if at is None:
            continue
        start, end = clause_around(pieces, at, most)
        window = [*pieces[start:at], GAP, *pieces[at + 1 : end]]
        asked = " ".join(window).rstrip(",;:")
        if end - start >= FEWEST_PIECES and asked.count("(") == asked.count(")"):
            yield asked


def comparison(task: Task) -> Iterator[str]:
    """Yield questions that set what one golden is about against what another is; none where both are the same."""
    goldens = task.material.bundle.goldens
    sides = [
        Material(task.material.chunks, Bundle((golden,), ()), task.material.terms)
        for golden in task.chance.sample(goldens, 2)
    ]
    for depth in range(TRIES):
        a, b = ([side.topic, *side.phrases][depth % (1 + len(side.phrases))] for side in sides)
        if a and b and not set(a.split()) & set(b.split()):
            yield task.chance.choice(COMPARED).format(a=a, b=b) if task.is_english else f"{a} – {b}"


WRITERS: Mapping[str, Writer] = MappingProxyType({
    writer.__name__: writer
    for writer in (
        concept_seeking, exact_snippet, web_search_like, low_overlap, fact_seeking, keyword, misspellings, long, medium,
        short, comparison,
    )
})  # fmt: skip
"""Who writes queries of which type."""


def _fitting(parts: Sequence[str], task: Task, query_type: str) -> list[str]:
    """Return the first of some parts that a query of a type has room for."""
    _, most = task.limits.bounds(query_type)
    fitting: list[str] = []
    for part in parts:
        if len(tokens(" ".join((*fitting, part)))) <= most:
            fitting.append(part)
    return fitting
