"""Write queries of all types from phrases, headings and sentences, by rules.

A writer yields candidates in random order, with better ones likelier to be first, and does not check the limits. In
languages other than English, candidates are phrases without a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from runner.features.synthesize.base import Bundle
from runner.features.synthesize.frames import (
    ASKS,
    COMPARED,
    LONGEST_SUBJECT,
    RELATIONS,
    TOLD,
    UNSURE,
    about,
    ask_relation,
    exclude_words,
)
from runner.features.synthesize.language import ENGLISH
from runner.features.synthesize.limits import tokens
from runner.features.synthesize.material import Material
from runner.features.synthesize.questions import iter_heading_questions, iter_questions
from runner.features.synthesize.rewording import (
    FEWEST_PIECES,
    GAP,
    NUMBER,
    Task,
    choose_gap,
    draw_early,
    draw_share,
    fill_frame,
    find_clause,
    fit_parts,
    split_pieces,
)
from runner.features.synthesize.searches import TRIES, exact_snippet, keyword, misspellings, short, web_search_like

Writer = Callable[[Task], Iterator[str]]


def medium(task: Task) -> Iterator[str]:
    """Yield questions about the relation between phrases of a statement."""
    for _ in range(TRIES):
        for statement in draw_early(task.material.statements, 1, task.chance):
            yield ask_relation(task, statement, RELATIONS, draw_share(task))


def long(task: Task) -> Iterator[str]:
    """Yield long descriptions of a need for information, from a topic and related phrases."""
    least, _ = task.limits.bounds("long")
    for _ in range(TRIES):
        phrases = draw_early(exclude_words(task.material.phrases, task.material.topic, least), least, task.chance)
        if not task.is_english:
            parts = fit_parts([task.material.topic, *phrases], task, "long")
            queries = (" ".join(parts[:n]) for n in range(1, len(parts) + 1))
            yield task.material.phrasing.restore_case(
                next((query for query in queries if len(tokens(query)) >= least), "")
            )
        elif len(phrases) > 1:
            yield fill_frame(task, task.chance.choice(TOLD), [task.material.topic, *phrases[:2]], draw_share(task))


def concept_seeking(task: Task) -> Iterator[str]:
    """Yield what-is, how and why questions about the subject of the heading, or about a phrase.

    In languages other than English, the query is the subject only.
    """
    material = task.material
    subjects = [material.subject] if material.is_headed else draw_early(material.phrases[:4], 4, task.chance)
    for subject in filter(None, subjects):
        spoken = material.phrasing.restore_case(subject)
        if ASKS.match(subject) or not task.is_english:
            yield spoken
            continue
        for _ in range(TRIES):
            if len(tokens(subject)) > LONGEST_SUBJECT:
                yield ask_relation(task, subject, RELATIONS, draw_share(task))
            else:
                yield about(task, spoken)


def low_overlap(task: Task) -> Iterator[str]:
    """Yield reworded questions with at least one synonym, few of whose terms are in a golden."""
    known = task.material.terms.analyzer.tokens
    material = task.material
    others = [sentence for sentence in material.sentences if sentence not in material.statements]
    for statement in [*draw_early(material.statements, TRIES, task.chance), *others[:TRIES]]:
        for _ in range(TRIES):
            query = ask_relation(task, statement, UNSURE, task.most_overlap, anew=True)
            if len(known(query)) > 2 and task.share(query) <= task.most_overlap:
                yield query


def fact_seeking(task: Task) -> Iterator[str]:
    """Yield questions that a sentence answers; in languages other than English, sentences with a gap."""
    if not task.is_english:
        yield from _with_gaps(task) if task.material.usage.language != ENGLISH else ()
        return
    material = task.material
    of_headings = [
        question for heading in material.telling_headings for question in iter_heading_questions(heading, material)
    ]
    questions = [
        question for sentence in material.whole_sentences for question in islice(iter_questions(sentence, material), 2)
    ]
    for question in (*draw_early(questions, TRIES, task.chance), *draw_early(of_headings, TRIES, task.chance)):
        yield f"{question[0].upper()}{question[1:]}?" if task.chance.random() < _WRITTEN_OUT else question


_WRITTEN_OUT = 0.5
"""The share of questions with a capital and a question mark, because people type both forms."""


def _with_gaps(task: Task) -> Iterator[str]:
    """Yield sentences with a gap for a number or a name."""
    _, most = task.limits.bounds("fact_seeking")
    drawn = draw_early(task.material.sentences, TRIES, task.chance)
    for sentence in sorted(drawn, key=lambda sentence: not NUMBER.search(sentence)):
        pieces = split_pieces(sentence)
        at = choose_gap(pieces, task)
        if at is None:
            continue
        start, end = find_clause(pieces, at, most)
        window = [*pieces[start:at], GAP, *pieces[at + 1 : end]]
        query = " ".join(window).rstrip(",;:")
        if end - start >= FEWEST_PIECES and query.count("(") == query.count(")"):
            yield query


def comparison(task: Task) -> Iterator[str]:
    """Yield questions that compare the subjects of two goldens; none if the subjects are the same."""
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
"""The writer of each query type."""
