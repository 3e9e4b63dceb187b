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
    is_telling,
    needs_its_page,
    topics_of,
)
from runner.generation.synthesis.language import ENGLISH
from runner.generation.synthesis.limits import tokens, words
from runner.generation.synthesis.material import Material
from runner.generation.synthesis.misspelling import misspelt
from runner.generation.synthesis.rewording import Task, early

TRIES = 12
"""How many candidates a writer offers at most."""

_LONGEST_SNIPPET = 18
"""Of a longer sentence nobody pastes all."""

_SPEAKS_OF_PAGE = regex.compile(
    r"\b(?:page|section|document|chapter|tutorial|guide|article|paper|example|diagram|figure|table|above|below|"
    r"following|preceding|corresponding|here|see|e\.g|i\.e|this|these|those|please)\b|:$",
    regex.IGNORECASE,
)
_REFERS_BACK = regex.compile(
    r"^(?:this|that|these|those|it|they|them|he|she|there|here|such|however|therefore|thus|hence|also|then|instead|"
    r"otherwise|moreover|furthermore|finally|additionally|similarly|note|in this|in that|for example|for instance|"
    r"and|or|but|so|both|either|neither|each|another|one|other|others|all|some|any|your|you|we|if you|as a result|"
    r"typically|in general|by default)\b",
    regex.IGNORECASE,
)
_CODE = regex.compile(r"\p{Ll}\p{Lu}|\p{L}[-_.]\p{L}")
"""A name out of code; acronyms and numbered names say too little by themselves."""

_NO_KEYWORD = regex.compile(
    r"[/\\=<>{}$@%&#^~]|:.|\.{2}|^v?\d|[-_.:]$|^[a-z]+\.[a-z]{2,3}$"
    r"|\.(?:ya?ml|json|toml|sh|ps1|go|py|js|ts|txt|md|exe|conf|html?)$"
    r"|(?:^|-)(?:to|in|not|and|or|per|of|on|by|the|a|as|is|like|specific|based|related|level|only|wide|free|time)(?:-|$)",
    regex.IGNORECASE,
)
"""Paths, versions, files and hyphenated English are no names that one types from memory."""

_LONGEST_IDENTIFIER = 32


def exact_snippet(task: Task) -> Iterator[str]:
    """Yield whole sentences of a golden word for word: no long ones, none that only makes sense on its page."""
    least, most = task.limits.bounds("exact_snippet")
    chunks, bundle = task.material.chunks, task.material.bundle
    others = [chunks.texts[at] for at in bundle.distractors]
    passages = [passage for passage in task.material.prose.passages if _can_be_quoted(passage, task.material)]
    drawn = early(passages, len(passages), task.chance)
    for passage in sorted(drawn, key=lambda passage: any(passage in other for other in others)):
        if least <= len(tokens(passage)) <= min(most, _LONGEST_SNIPPET):
            yield passage


def _can_be_quoted(passage: str, material: Material) -> bool:
    """Tell a sentence that says something by itself: it points at nothing outside it, and has words few chunks have."""
    if material.phrasing.language != ENGLISH:
        return True
    if _SPEAKS_OF_PAGE.search(passage) or _REFERS_BACK.match(passage):
        return False
    first = passage.split(" ", 1)[0].lower()
    return not material.usage.is_verb(first) and is_telling(passage, material)


def keyword(task: Task) -> Iterator[str]:
    """Yield a topic with an identifier or a term of the golden, as one types what one remembers of it."""
    material = task.material
    topics = telling_topics(material)
    remembered = [*identifiers_of(material)[:4], *terms_of_prose(material)[:4]]
    for _ in range(TRIES):
        topic = next(iter(early(topics[:4], 1, task.chance)), "")
        added = [text for text in early(remembered, 2, task.chance) if is_apart(text, topic)]
        is_whole = not _JOINED.search(topic)
        yield _fitting([topic, *(added[:1] if is_whole else [])], task, "keyword")
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
    for term in (*terms_of_prose(material)[:3], *identifiers_of(material)[:2]):
        yield from (f"{topic} {term}" for topic in topics[:2] if is_apart(term, topic) and not _JOINED.search(topic))
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
                if outer and is_apart(outer, topic) and not _JOINED.search(outer):
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
        if is_telling(topic, material) and (_CODE.search(topic) or not needs_its_page(topic, material))
    ]
    terms = terms_of_prose(material) if material.phrasing.language == ENGLISH else list(material.phrases)
    return list(dict.fromkeys(topics)) or terms[:3]


def terms_of_prose(material: Material) -> list[str]:
    """Return phrases of two words or more that several chunks have, those that say most of the golden first."""
    phrases = (phrase for phrase in material.phrases if " " in phrase)
    terms = [phrase for phrase in phrases if material.usage.is_term(phrase.split()) and is_telling(phrase, material)]
    return [material.phrasing.spelt(term) for term in terms]


def identifiers_of(material: Material) -> list[str]:
    """Return the identifiers and acronyms of the golden that one can type from memory, the most telling first."""
    return [
        word
        for word in material.keywords
        if _CODE.search(word)
        and not _NO_KEYWORD.search(word)
        and len(word) <= _LONGEST_IDENTIFIER
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
