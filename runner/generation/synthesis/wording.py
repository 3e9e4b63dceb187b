"""How queries of each type are put into words, without a language model: from phrases, headings and sentences.

A writer yields candidates, the best that chance brings first; what a candidate must keep to is not its concern. Of a
text in another language than English it is phrases without a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import regex

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
    how_many,
    related,
)
from runner.generation.synthesis.limits import tokens
from runner.generation.synthesis.material import Material
from runner.generation.synthesis.misspelling import misspelt
from runner.generation.synthesis.rewording import (
    FEWEST_PIECES,
    NUMBER,
    Task,
    asked_for,
    clause_around,
    drawn_share,
    early,
    framed,
    pieces_of,
    question_word,
)

TRIES = 12
"""How many candidates a writer offers at most."""

Writer = Callable[[Task], Iterator[str]]


def exact_snippet(task: Task) -> Iterator[str]:
    """Yield sentences and clauses of a golden just as they stand there, those first that no distractor has."""
    least, most = task.limits.bounds("exact_snippet")
    chunks, bundle = task.material.chunks, task.material.bundle
    others = [chunks.texts[at] for at in bundle.distractors]
    passages = list(task.material.prose.passages)
    drawn = early(passages, len(passages), task.chance)
    for passage in sorted(drawn, key=lambda passage: any(passage in other for other in others)):
        words = list(regex.finditer(r"\S+", passage))
        if len(words) >= least:
            yield passage[: words[min(most, len(words)) - 1].end()]


def keyword(task: Task) -> Iterator[str]:
    """Yield the words of highest tf-idf, and identifiers, as one types them into a search box."""
    words = task.material.keywords
    for _ in range(TRIES):
        drawn = _fitting(early(words[:12], task.chance.randint(2, 5), task.chance), task, "keyword")
        yield " ".join(sorted(drawn, key=words.index))


def web_search_like(task: Task) -> Iterator[str]:
    """Yield the topic and a phrase or two, in small letters and without the words between them."""
    for _ in range(TRIES):
        phrases = early(apart(task.material.phrases, task.material.topic), task.chance.randint(1, 2), task.chance)
        parts = _fitting([task.material.topic, *phrases], task, "web_search_like")
        yield " ".join(dict.fromkeys(" ".join(filter(None, parts)).split())).lower()


def misspellings(task: Task) -> Iterator[str]:
    """Yield keyword or web queries with a slip in one or two words."""
    write = task.chance.choice((keyword, web_search_like))
    for query in write(task):
        slipped = misspelt(query, task.chance.choice((1, 1, 2)), task.chance)
        if slipped != query:
            yield slipped


def short(task: Task) -> Iterator[str]:
    """Yield the topic, or a phrase that says much."""
    _, most = task.limits.bounds("short")
    phrases = [phrase for phrase in (task.material.topic, *task.material.phrases[:6]) if len(tokens(phrase)) <= most]
    yield from early(phrases, len(phrases), task.chance)


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
    """Yield questions for a number of things; else sentences with a number or a name asked for where it stands."""
    _, most = task.limits.bounds("fact_seeking")
    drawn = early(task.material.sentences, TRIES, task.chance)
    if task.is_english:
        yield from filter(None, (how_many(task, sentence) for sentence in drawn))
    with_numbers = [sentence for sentence in drawn if NUMBER.search(sentence)]
    for sentence in sorted(drawn, key=lambda sentence: sentence not in with_numbers):
        pieces = pieces_of(sentence)
        at = asked_for(pieces, task)
        if at is None:
            continue
        start, end = clause_around(pieces, at, most - 1)  # what asks for it may be two words
        window = pieces[start:end]
        window[at - start] = question_word(pieces, at, task)
        if task.is_english and at > start and window[at - start - 1].lower() in ("a", "an", "the"):
            del window[at - start - 1]
        asked = " ".join(window).rstrip(",;:")
        if end - start < FEWEST_PIECES or asked.count("(") != asked.count(")"):
            continue
        yield (
            f"{task.material.phrasing.spelt(asked.split(' ', 1)[0])} {asked.partition(' ')[2]}?"
            if task.is_english
            else asked
        )


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
