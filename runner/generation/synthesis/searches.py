"""What people type into a search box, made of headings, names and terms: keywords, short and web queries, snippets.

A writer yields candidates, the best that chance brings first; it does not check the limits. Frames are English: in
another language a query is topics and terms without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from runner.generation.synthesis.headings import (
    LONGEST_HEADING,
    QUESTION,
    action_in,
    has_own_words,
    is_cut,
    is_defined,
    is_telling,
    needs_its_page,
    topics_of,
)
from runner.generation.synthesis.language import ENGLISH
from runner.generation.synthesis.limits import squeezed, tokens, words
from runner.generation.synthesis.material import Material
from runner.generation.synthesis.misspelling import misspelt
from runner.generation.synthesis.rewording import Task, early
from runner.generation.synthesis.snippets import snippets_of

TRIES = 12
"""How many candidates a writer offers at most."""

_CODE = regex.compile(r"\p{Ll}\p{Lu}|\p{L}[-_.]\p{L}")
"""A name out of code; acronyms and numbered names say too little by themselves."""

_NO_KEYWORD = regex.compile(
    r"[/\\=<>{}$@%&#^~'’]|:.|\.{2}|^v?\d|[-_.:]$|^[a-z]+\.[a-z]{2,3}$"
    r"|\.(?:ya?ml|json|toml|sh|ps1|go|py|js|ts|txt|md|exe|conf|html?)$"
    r"|(?:^|-)(?:to|in|not|and|or|per|of|on|by|the|a|as|is|like|specific|based|related|level|only|wide|free|time)(?:-|$)",
    regex.IGNORECASE,
)
"""Paths, versions, files and hyphenated English are no names that one types from memory."""

_SHORTEST_IDENTIFIER, _LONGEST_IDENTIFIER = 4, 32
"""Shorter ones are units and symbols."""

_VERSIONED = regex.compile(r"v?\d[\w.]*$", regex.IGNORECASE)


def exact_snippet(task: Task) -> Iterator[str]:
    """Yield passages of a golden word for word, those that no distractor has first."""
    least, most = task.limits.bounds("exact_snippet")
    chunks, bundle = task.material.chunks, task.material.bundle
    others = [squeezed(chunks.texts[at]) for at in bundle.distractors]
    passages = [passage for passage in snippets_of(task.material) if least <= len(tokens(passage)) <= most]
    yield from sorted(
        early(passages, len(passages), task.chance), key=lambda passage: any(passage in other for other in others)
    )


def keyword(task: Task) -> Iterator[str]:
    """Yield a topic with an identifier or a term of the golden, as one types what one remembers of it."""
    material = task.material
    topics = telling_topics(material)
    remembered = [*repeated(identifiers_of(material), material)[:3], *repeated(terms_of_prose(material), material)[:2]]
    for _ in range(TRIES):
        topic = next(iter(early(topics[:4], 1, task.chance)), "")
        added = [text for text in early(remembered, 2, task.chance) if is_apart(text, topic)]
        yield _fitting([topic, *(added[:1] if _can_be_added_to(topic) else [])], task, "keyword")
    if not topics and not task.is_english:
        drawn = early(material.keywords[:12], 3, task.chance)
        yield _fitting(sorted(drawn, key=material.keywords.index), task, "keyword")


def short(task: Task) -> Iterator[str]:
    """Yield the topic of a heading, a term that the golden repeats, or a name, in a few words."""
    material, most = task.material, task.limits.bounds("short")[1]
    candidates = [*telling_topics(material)[:3], *identifiers_of(material)[:1]]
    yield from early([text for text in candidates if len(tokens(text)) <= most], len(candidates), task.chance)


def web_search_like(task: Task) -> Iterator[str]:
    """Yield what the headings name or tell to do, in small letters, as one asks a search engine."""
    most = task.limits.bounds("web_search_like")[1]
    candidates = list(dict.fromkeys(filter(None, _web_queries(task))))
    for query in early(candidates, len(candidates), task.chance):
        if len(tokens(query)) <= most:
            yield query.lower().rstrip("?")


_JOINED = regex.compile(r" (?:of|for|in|on|with|by|to|from|and) ")
"""A topic with one of these is a phrase that nothing can be put behind."""


def misspellings(task: Task) -> Iterator[str]:
    """Yield keyword or web queries with a slip in one word, in two of a longer query."""
    write = task.chance.choice((keyword, web_search_like, web_search_like))
    for query in write(task):
        slips = task.chance.choice((1, 2)) if len(query.split()) > _LONG_ENOUGH_FOR_TWO else 1
        slipped = misspelt(query, slips, task.chance)
        if slipped != query:
            yield slipped


_LONG_ENOUGH_FOR_TWO = 5
"""Of a query of fewer words, two slips leave too little."""


def _web_queries(task: Task) -> Iterator[str]:
    material = task.material
    headings = [heading for heading in material.telling_headings if len(heading.split()) <= LONGEST_HEADING]
    outer = next(iter(topics_of(headings[0], material)), "") if headings else ""
    for heading in headings[:0:-1] or headings:
        yield from _asked_by(heading, outer, task)
    topics = telling_topics(material)
    for term in repeated(identifiers_of(material), material)[:1]:
        yield from (f"{topic} {term}" for topic in topics[:1] if is_apart(term, topic) and _can_be_added_to(topic))
    if not task.is_english:
        yield from topics


def _asked_by(heading: str, outer: str, task: Task) -> Iterator[str]:
    """Yield the queries that a heading answers, with the topic of the page where the heading needs it."""
    material = task.material
    site, action = material.usage.site_name, action_in(heading, material.usage)
    if QUESTION.match(heading):
        if len(heading.split()) >= _SHORTEST_QUESTION and is_telling(heading, material):
            yield heading
    elif action:
        if is_telling(action.partition(" ")[2], material):
            yield f"{task.chance.choice(('how to', 'how to', 'how do i'))} {action}"
            yield from (_ARTICLE.sub("", action), _with_site(_ARTICLE.sub("", action), site))
    else:
        for topic in topics_of(heading, material):
            if needs_its_page(topic, material):
                is_all = len(material.phrasing.content_words(topic)) >= len(material.phrasing.content_words(heading))
                if not (is_all and has_own_words(topic) and is_telling(outer, material)):
                    continue
                if is_apart(outer, topic) and not _JOINED.search(f"{outer} {topic}"):
                    yield f"{outer} {topic}"
            elif is_telling(topic, material):
                yield from (topic, _with_site(topic, site))


_SHORTEST_QUESTION = 4
_ARTICLE = regex.compile(r"\b(?:an?|the) ", regex.IGNORECASE)


def telling_topics(material: Material) -> list[str]:
    """Return the topics of the headings, the innermost first; of a text without headings, of its terms."""
    headings = [topic for heading in material.telling_headings[::-1] for topic in topics_of(heading, material)]
    topics = [
        material.phrasing.spelt(topic)
        for topic in headings
        if not _VERSIONED.match(topic)
        and is_telling(topic, material)
        and (_CODE.search(topic) or not needs_its_page(topic, material))
    ]
    terms = terms_of_prose(material) if material.phrasing.language == ENGLISH else list(material.phrases)
    return list(dict.fromkeys(topics)) or terms[:3]


def terms_of_prose(material: Material) -> list[str]:
    """Return phrases of two words or more that several chunks have, those that say most of the golden first."""
    phrases = (phrase for phrase in material.phrases if " " in phrase)
    terms = [phrase for phrase in phrases if material.usage.is_term(phrase.split()) and is_telling(phrase, material)]
    return [material.phrasing.spelt(term) for term in terms if is_defined(term) and not is_cut(term, material)]


def repeated(texts: Sequence[str], material: Material) -> list[str]:
    """Return those of some texts that the golden has at least twice: what it says once in passing is not its matter.

    Paths of fields and names in capitals, as `spec.replicas` and `NEW_NAME`, are typed alone.
    """
    content = material.chunks.texts[material.bundle.goldens[0]].lower()
    return [text for text in texts if not _TYPED_ALONE.search(text) and content.count(text.lower()) > 1]


_TYPED_ALONE = regex.compile(r"\.|^[\p{Lu}\d]+_")


def _can_be_added_to(topic: str) -> bool:
    """Tell a topic that a term can stand behind: two or three ordinary words that nothing joins."""
    pieces = topic.split()
    return len(pieces) in (2, 3) and not _CODE.search(pieces[0]) and not _JOINED.search(topic)


def identifiers_of(material: Material) -> list[str]:
    """Return the identifiers and acronyms of the golden that one can type from memory, the most telling first."""
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
    """Tell texts that share no word, parts of identifiers included, a plural taken for its singular."""
    return not _parts(text) & _parts(other)


def _parts(text: str) -> set[str]:
    cut = _CAMEL.sub(" ", text.replace("_", " ").replace("-", " "))
    return {_PLURAL.sub("", word) for word in (*words(cut), *words(text))}


_PLURAL = regex.compile(r"(?:ies|y|s)$")
_CAMEL = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")


def _fitting(parts: Sequence[str], task: Task, query_type: str) -> str:
    """Return the first of some parts that a query of a type has room for."""
    _, most = task.limits.bounds(query_type)
    fitting: list[str] = []
    for part in filter(None, parts):
        if len(tokens(" ".join((*fitting, part)))) <= most:
            fitting.append(part)
    return " ".join(fitting)
