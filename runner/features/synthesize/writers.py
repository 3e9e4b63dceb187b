"""Write queries by rules, from the headings, names and sentences of a chunk.

Only types that read well without understanding the text have a writer. A writer yields candidates in random order,
with better ones likelier to be first, and does not check the limits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from runner.features.synthesize.base import Draft
from runner.features.synthesize.misspelling import misspell
from runner.features.synthesize.questions import iter_questions
from runner.features.synthesize.snippets import iter_snippets
from runner.features.synthesize.topics import Material, drop_determiners

Writer = Callable[[Material, random.Random], Iterator[Draft]]

_LONG_ENOUGH_FOR_TWO = 5
"""Two typing errors in a shorter query would leave too little of it."""

_WRITTEN_OUT = 0.5
"""The share of questions with a capital and a question mark, because people type both forms."""


def draw_early(things: Iterable[str], chance: random.Random) -> list[str]:
    """Return things in a random order, drawn with a weight of 1 / (r + 2) for position r, so early ones are likelier.

    Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir.
    """
    keys = {thing: chance.random() ** (place + 2) for place, thing in enumerate(dict.fromkeys(things))}
    return sorted(keys, key=lambda thing: -keys[thing])


def exact_snippet(material: Material, chance: random.Random) -> Iterator[Draft]:
    """Yield passages that people paste, verbatim."""
    yield from map(Draft, draw_early(iter_snippets(material), chance))


def fact_seeking(material: Material, chance: random.Random) -> Iterator[Draft]:
    """Yield questions that the headings and sentences answer."""
    for question in draw_early(iter_questions(material), chance):
        written_out = f"{question[0].upper()}{question[1:]}?"
        yield Draft(written_out if chance.random() < _WRITTEN_OUT else question)


def web_search_like(material: Material, chance: random.Random) -> Iterator[Draft]:
    """Yield the topic or the action as typed into a search engine, in lower case."""
    actions = [f"how to {material.action}"] if material.action else []
    queries = [*actions, drop_determiners(material.topic).rstrip("?")] if material.topic else material.characteristic
    yield from (Draft(query.lower()) for query in draw_early(queries, chance))


def keyword(material: Material, chance: random.Random) -> Iterator[Draft]:
    """Yield an identifier, a topic that has no function words, or characteristic words."""
    words = [] if material.action else material.content_words(drop_determiners(material.topic))
    topic = [" ".join(words)] if words == drop_determiners(material.topic).split() and words else []
    keywords = [*material.identifiers[:3], *topic] or material.characteristic
    yield from map(Draft, draw_early(keywords, chance))


def short(material: Material, chance: random.Random) -> Iterator[Draft]:
    """Yield the topic or an identifier; the limits drop those that are not short."""
    topic = [drop_determiners(material.topic)] if material.topic and not material.is_question else []
    yield from map(Draft, draw_early([*topic, *material.identifiers[:1]] or material.characteristic, chance))


def misspellings(material: Material, chance: random.Random) -> Iterator[Draft]:
    """Yield web queries or keywords with a typing error in one word, or in two words of a longer query."""
    for draft in (*web_search_like(material, chance), *keyword(material, chance)):
        slips = chance.choice((1, 2)) if len(draft.query.split()) > _LONG_ENOUGH_FOR_TWO else 1
        misspelt = misspell(draft.query, slips, chance)
        if misspelt != draft.query:
            yield Draft(misspelt, intended=draft.query)


WRITERS: Mapping[str, Writer] = MappingProxyType({
    writer.__name__: writer for writer in (exact_snippet, web_search_like, fact_seeking, keyword, misspellings, short)
})  # fmt: skip
"""The writer of each query type that rules can write."""
