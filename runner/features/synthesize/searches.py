"""Write queries as typed into a search box, from headings, names and terms.

A writer yields candidates in random order, with better ones likelier to be first, and does not check the limits. Frames
are English; in other languages, a query consists of topics and terms only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from runner.features.synthesize.headings import (
    JOINED,
    LONGEST_HEADING,
    QUESTION,
    find_action,
    has_own_words,
    is_cut,
    is_defined,
    is_telling,
    iter_topics,
    needs_its_page,
)
from runner.features.synthesize.language import ENGLISH
from runner.features.synthesize.limits import collapse_spaces, tokens, words
from runner.features.synthesize.material import Material
from runner.features.synthesize.misspelling import misspell
from runner.features.synthesize.rewording import Task, draw_early, fit_parts
from runner.features.synthesize.snippets import iter_snippets

TRIES = 12
"""The maximum number of candidates of a writer."""

_CODE = regex.compile(r"\p{Ll}\p{Lu}|\p{L}[-_.]\p{L}")
"""A name from code; acronyms and numbered names say too little on their own."""

_NO_KEYWORD = regex.compile(
    r"[/\\=<>{}$@%&#^~'’]|:.|\.{2}|^v?\d|[-_.:]$|^[a-z]+\.[a-z]{2,3}$"
    r"|\.(?:ya?ml|json|toml|sh|ps1|go|py|js|ts|txt|md|exe|conf|html?)$"
    r"|(?:^|-)(?:to|in|not|and|or|per|of|on|by|the|a|as|is|like|specific|based|related|level|only|wide|free|time)(?:-|$)",
    regex.IGNORECASE,
)
"""Paths, versions, files and hyphenated English, which nobody types from memory."""

_SHORTEST_IDENTIFIER, _LONGEST_IDENTIFIER = 4, 32
"""The bounds of the length of an identifier; shorter ones are units and symbols."""

_VERSIONED = regex.compile(r"v?\d[\w.]*$", regex.IGNORECASE)


def exact_snippet(task: Task) -> Iterator[str]:
    """Yield verbatim passages of a golden, first those that no distractor has."""
    least, most = task.limits.bounds("exact_snippet")
    chunks, bundle = task.material.chunks, task.material.bundle
    others = [collapse_spaces(chunks.texts[at]) for at in bundle.distractors]
    passages = [passage for passage in iter_snippets(task.material) if least <= len(tokens(passage)) <= most]
    yield from sorted(
        draw_early(passages, len(passages), task.chance), key=lambda passage: any(passage in other for other in others)
    )


def keyword(task: Task) -> Iterator[str]:
    """Yield a topic with an identifier or a term of the golden, as people type from memory."""
    material = task.material
    topics = find_topics(material)
    remembered = [
        *filter_repeated(find_identifiers(material), material)[:3],
        *filter_repeated(find_terms(material), material)[:2],
    ]
    for _ in range(TRIES):
        topic = next(iter(draw_early(topics[:4], 1, task.chance)), "")
        added = [text for text in draw_early(remembered, 2, task.chance) if is_apart(text, topic)]
        parts = filter(None, [topic, *(added[:1] if _can_be_added_to(topic) else [])])
        yield " ".join(fit_parts(parts, task, "keyword"))
    if not topics and not task.is_english:
        drawn = draw_early(material.keywords[:12], 3, task.chance)
        yield " ".join(fit_parts(sorted(drawn, key=material.keywords.index), task, "keyword"))


def short(task: Task) -> Iterator[str]:
    """Yield the topic of a heading, or an identifier, in a few words."""
    material, most = task.material, task.limits.bounds("short")[1]
    candidates = [*find_topics(material)[:3], *find_identifiers(material)[:1]]
    yield from draw_early([text for text in candidates if len(tokens(text)) <= most], len(candidates), task.chance)


def web_search_like(task: Task) -> Iterator[str]:
    """Yield the topics and actions of headings in lower case, as in queries to a search engine."""
    most = task.limits.bounds("web_search_like")[1]
    candidates = list(dict.fromkeys(filter(None, _web_queries(task))))
    for query in draw_early(candidates, len(candidates), task.chance):
        if len(tokens(query)) <= most:
            yield query.lower().rstrip("?")


def misspellings(task: Task) -> Iterator[str]:
    """Yield keyword or web queries with a typing error in one word, or in two words of a longer query."""
    write = task.chance.choice((keyword, web_search_like, web_search_like))
    for query in write(task):
        slips = task.chance.choice((1, 2)) if len(query.split()) > _LONG_ENOUGH_FOR_TWO else 1
        misspelt = misspell(query, slips, task.chance)
        if misspelt != query:
            yield misspelt


_LONG_ENOUGH_FOR_TWO = 5
"""Two typing errors in a shorter query would leave too little of it."""


def _web_queries(task: Task) -> Iterator[str]:
    material = task.material
    headings = [heading for heading in material.telling_headings if len(heading.split()) <= LONGEST_HEADING]
    outer = next(iter(iter_topics(headings[0], material)), "") if headings else ""
    for heading in headings[:0:-1] or headings:
        yield from _iter_heading_queries(heading, outer, task)
    topics = find_topics(material)
    for term in filter_repeated(find_identifiers(material), material)[:1]:
        yield from (f"{topic} {term}" for topic in topics[:1] if is_apart(term, topic) and _can_be_added_to(topic))
    if not task.is_english:
        yield from topics


def _iter_heading_queries(heading: str, outer: str, task: Task) -> Iterator[str]:
    """Yield the queries that a heading answers, with the topic of the page if the heading needs it."""
    material = task.material
    site, action = material.usage.site_name, find_action(heading, material.usage)
    if QUESTION.match(heading):
        if len(heading.split()) >= _SHORTEST_QUESTION and is_telling(heading, material):
            yield heading
    elif action:
        if is_telling(action.partition(" ")[2], material):
            yield f"{task.chance.choice(('how to', 'how to', 'how do i'))} {action}"
            yield from (_ARTICLE.sub("", action), _with_site(_ARTICLE.sub("", action), site))
    else:
        for topic in iter_topics(heading, material):
            if needs_its_page(topic, material):
                is_all = len(material.phrasing.content_words(topic)) >= len(material.phrasing.content_words(heading))
                if not (is_all and has_own_words(topic) and is_telling(outer, material)):
                    continue
                if is_apart(outer, topic) and not JOINED.search(f"{outer} {topic}"):
                    yield f"{outer} {topic}"
            elif is_telling(topic, material):
                yield from (topic, _with_site(topic, site))


_SHORTEST_QUESTION = 4
_ARTICLE = regex.compile(r"\b(?:an?|the) ", regex.IGNORECASE)


def find_topics(material: Material) -> list[str]:
    """Return the specific topics of the headings, the innermost first; without headings, the best terms."""
    headings = [topic for heading in material.telling_headings[::-1] for topic in iter_topics(heading, material)]
    topics = [
        material.phrasing.restore_case(topic)
        for topic in headings
        if not _VERSIONED.match(topic)
        and is_telling(topic, material)
        and (_CODE.search(topic) or not needs_its_page(topic, material))
    ]
    terms = find_terms(material) if material.phrasing.language == ENGLISH else list(material.phrases)
    return list(dict.fromkeys(topics)) or terms[:3]


def find_terms(material: Material) -> list[str]:
    """Return the terms of several words that several chunks have, the best of the golden first."""
    phrases = (phrase for phrase in material.phrases if " " in phrase)
    terms = [phrase for phrase in phrases if material.usage.is_term(phrase.split()) and is_telling(phrase, material)]
    return [material.phrasing.restore_case(term) for term in terms if is_defined(term) and not is_cut(term, material)]


def filter_repeated(texts: Sequence[str], material: Material) -> list[str]:
    """Return the texts that the golden has at least twice; what it mentions once is not its subject.

    Paths of fields and names in capitals, such as `spec.replicas` and `NEW_NAME`, are left out because people type them
    alone.
    """
    content = material.chunks.texts[material.bundle.goldens[0]].lower()
    return [text for text in texts if not _TYPED_ALONE.search(text) and content.count(text.lower()) > 1]


_TYPED_ALONE = regex.compile(r"\.|^[\p{Lu}\d]+_")


def _can_be_added_to(topic: str) -> bool:
    """Return whether a term can follow a topic: one of two or three ordinary words without a joining word."""
    pieces = topic.split()
    return len(pieces) in (2, 3) and not _CODE.search(pieces[0]) and not JOINED.search(topic)


def find_identifiers(material: Material) -> list[str]:
    """Return the identifiers of the golden that people can type from memory, the most specific first."""
    return [
        word
        for word in material.keywords
        if _CODE.search(word)
        and not _NO_KEYWORD.search(word)
        and _SHORTEST_IDENTIFIER <= len(word) <= _LONGEST_IDENTIFIER
        and is_telling(word, material)
    ]


def _with_site(query: str, site: str) -> str:
    return f"{query} {site}" if site and site not in query.lower().split() else ""


def is_apart(text: str, other: str) -> bool:
    """Return whether two texts share no word; parts of identifiers count as words, plurals as their singular."""
    return not _parts(text) & _parts(other)


def _parts(text: str) -> set[str]:
    cut = _CAMEL.sub(" ", text.replace("_", " ").replace("-", " "))
    return {_PLURAL.sub("", word) for word in (*words(cut), *words(text))}


_PLURAL = regex.compile(r"(?:ies|y|s)$")
_CAMEL = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")
