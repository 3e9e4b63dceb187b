"""What a heading names, and what it tells to do: topics and actions, as somebody types them.

The parts of speech are those that the chunks show. The module knows nothing of the types of queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import regex

from runner.generation.synthesis.language import ENGLISH
from runner.generation.synthesis.material import Material
from runner.generation.synthesis.phrases import LONGEST_PHRASE, is_identifier
from runner.generation.synthesis.usage import BEFORE_NOUN, BEFORE_VERB, Usage

LONGEST_HEADING = 9
"""A heading of more words is a sentence: nobody types all of it."""

QUESTION = regex.compile(
    r"^(?:how|what|why|when|where|which|who|is|are|does|do|can|should)\b(?! to know\b)", regex.IGNORECASE
)

_ACTIONS_WORDS = """
access add adjust allow apply assign attach authenticate authorize avoid backup bind bootstrap build change check
choose clean collect compare compile compute configure connect control convert copy create customize debug declare
define delete deploy determine diagnose disable distribute download drain enable encrypt ensure estimate evaluate
expose extend filter find fix generate get handle identify implement import improve inspect install integrate
investigate join limit list load manage measure migrate modify monitor mount move optimize organize override perform
prepare prevent protect provide provision publish pull push query reduce remove rename replace request reset resize
resolve restart restore restrict retrieve rotate run scale schedule secure select send separate set share specify
start stop store submit switch test track troubleshoot turn uninstall update upgrade use validate verify view watch
write
"""
_ACTIONS = frozenset(_ACTIONS_WORDS.split())
_ALSO_NOUNS_WORDS = """
access backup change check control copy debug filter import limit list load mount move query request reset restart
schedule share start stop store switch test track turn update upgrade use view watch
"""
_ALSO_NOUNS = frozenset(_ALSO_NOUNS_WORDS.split())
_MAKES_ACTION_WORDS = """
a all an another between existing from into multiple new one the to up with your
"""
_MAKES_ACTION = frozenset(_MAKES_ACTION_WORDS.split())
_PARTICLES = frozenset({"in", "out", "off", "down"})
"""What follows a verb that might as well be a noun: "update the index" is told to do, "update strategy" is not."""

_TELLING = 0.5
"""The share of the largest IDF that the words of a topic have together."""

_PAIR_TELLING = 0.65
"""The same of two ordinary words, such as "raw data"."""

_JOINS = frozenset({"of", "for", "in", "on", "with", "by", "to", "from", "and"})
_GENERIC_WORDS = """
about additional advanced advice algorithm appendix approach background basics behavior behaviour best caveats
changes checklist comparison concepts conclusion conclusions considerations content contents context conventions
current data definition definitions description design details discussion error errors example examples experiments
explanation faq feature features field fields files final format future general getting goal goals guide guidelines
history implementation important information instructions interpretation introduction issue issues items known
limitation limitations list main method methods methodology migration mode modes motivation names new next note
notes notice object objectives objects option options other others overview parameters part parts practices
prerequisites problem problems procedure process properties purpose questions quick quickstart reason reasons
recommendations reference references related remarks requirement requirements resource resources result results
risks rules scope section settings setup sources specific standard started state status step steps strategy
structure summary support syntax system table task tasks template terminology terms test tips tool tools topics
troubleshooting tutorial type types updates usage use values version versions walkthrough workflow
"""
_GENERIC = frozenset(_GENERIC_WORDS.split())
"""Words that headings of any text have, which name nothing without the topic of their page."""

_OPENINGS = frozenset(
    {"overview", "introduction", "guide", "reference", "collection", "list", "summary", "examples", "example", "use"}
)
_ARTICLES = frozenset({"a", "an", "the", "your"})
_VERSION = regex.compile(r"v?\d[\d.]*(?:(?:alpha|beta|rc)\d*)?$", regex.IGNORECASE)
_PIECE = regex.compile(r"[^\s]+")
_EDGES = " \t,;:.!?()[]{}\"'“”‘’«»…*`"
_CUT = regex.compile(r"[,;:!?()\"“”«»…|–—]|\s-\s|\.(?=\s|$)")


def action_in(heading: str, usage: Usage) -> str:
    """Return what an English heading tells to do, as in "configure a probe", "" for one that names a thing.

    A gerund becomes the verb that it is of: "Configuring a probe" is the same.
    """
    if usage.language == ENGLISH:
        heading = without_label(heading)
    first, _, rest = heading.partition(" ")
    if usage.language != ENGLISH or not rest or len(heading.split()) > LONGEST_HEADING or _CUT.search(heading):
        return ""
    small = first.lower()
    if _POINTS_ELSEWHERE.search(rest) or _is_action(rest.split()[0].lower()):
        return ""
    if small.endswith("ing"):
        verb = base_of(small, usage)
        return f"{verb} {rest}" if verb in _ACTIONS or usage.is_verb(verb) else ""
    is_verb = usage.is_verb(small) and not regex.search(r"(?:ed|s|ing)$", small)
    if (small in _ALSO_NOUNS or (is_verb and small not in _ACTIONS)) and rest.split()[
        0
    ].lower() not in _MAKES_ACTION | _PARTICLES:
        return ""
    return f"{small} {rest}" if is_verb or small in _ACTIONS else ""


def _is_action(word: str) -> bool:
    return word in _ACTIONS and word not in _ALSO_NOUNS


def without_label(heading: str) -> str:
    """Return an English heading without the name of an operation at its start, where a description follows.

    "deletecollection delete collection of Pods" and "get read the specified Pod" are labels with descriptions.
    """
    pieces = heading.split()
    small = [piece.lower() for piece in pieces]
    for end in (2, 3, 4):
        if end < len(pieces) and small[0] == "".join(small[1:end]):
            return " ".join(pieces[1:])
    verb = 2 if len(small) > 3 and small[1].endswith("ly") else 1
    if (
        len(small) > verb + 1
        and (verb == 2 or small[0] in _ACTIONS)
        and (_is_action(small[verb]) or small[verb] in _OPERATIONS)
    ):
        return " ".join(pieces[verb:])
    return heading


_OPERATIONS = frozenset({"read", "replace", "update", "watch", "list"})
"""Verbs that describe the operations of an interface."""

_POINTS_ELSEWHERE = regex.compile(r"\b(?:this|these|the (?:specified|given|following|same|above))\b", regex.IGNORECASE)
"""What one says to somebody who sees the rest of the page."""


def base_of(form: str, usage: Usage) -> str:
    """Return the base of an English verb in -ing, -ed or -s: of the possible ones, that which chunks say most often."""
    ending = regex.search(r"(?:ing|ied|ies|ed|es|s)$", form)
    if not ending:
        return form
    stem = form[: ending.start()]
    if ending[0] in ("ied", "ies"):
        bases = [f"{stem}y"]
    elif ending[0] == "s":
        bases = [stem]
    else:
        bases = [stem, f"{stem}e", *([stem[:-1]] if len(stem) > 2 and stem[-1] == stem[-2] else [])]
    said = [base for base in bases if usage.frequencies[base]] or [base for base in bases if base in _ACTIONS]
    return max(said, key=lambda base: (usage.frequencies[base], base), default="")


def topics_of(heading: str, material: Material) -> Iterator[str]:
    """Yield the things that a heading names, the longest first, with the words that join them but for articles.

    "Assign Memory Resources to Containers and Pods" names "memory resources to containers", then "memory resources".
    """
    phrasing = material.phrasing
    if phrasing.language == ENGLISH:
        heading = without_label(heading)
    if "," in heading:
        listed = phrasing.content_words(heading)
        yield from [" ".join(listed)] if len(listed) <= LONGEST_PHRASE + 1 else []
        return
    for part in _CUT.split(heading):
        pieces = [piece.strip(_EDGES) for piece in _PIECE.findall(part)]
        pieces = [piece for piece in pieces if piece and piece.lower() not in _ARTICLES and not _VERSION.match(piece)]
        action = action_in(" ".join(pieces), material.usage)
        if action:
            pieces = _object_of(action.split()[1:])
        known = set(" ".join(" ".join(phrase) for phrase in phrasing.phrases(" ".join(pieces))).lower().split())
        kinds = ["n" if p.lower() in known else "j" if p.lower() in _JOINS else "-" for p in pieces]
        if phrasing.language == ENGLISH:
            pieces, kinds = _without_remnants(pieces, kinds, phrasing.idle)
        topics = _joined(pieces, kinds, phrasing.idle)
        if action:  # what comes after its object says where or what for
            topics = islice(topics, 1)
        yield from (topic for topic in topics if not is_cut(topic, material))


def _without_remnants(pieces: Sequence[str], kinds: Sequence[str], idle: frozenset[str]) -> tuple[list[str], list[str]]:
    """Mark what a word belongs to that no phrase has: "party tools" of "third party tools" names something else."""
    marked = list(kinds)
    for at, piece in enumerate(pieces):
        word = piece.lower()
        if kinds[at] != "-":
            continue
        if word in idle and word not in BEFORE_NOUN | BEFORE_VERB and word not in _CONNECTS:
            after = at + 1
            while after < len(pieces) and kinds[after] == "n":
                marked[after], after = "-", after + 1
        elif word not in idle:
            after = at + 1
            while not at and after < len(pieces) and kinds[after] == "n":
                marked[after], after = "-", after + 1
            before = at - 1
            while before >= 0 and kinds[before] == "n":
                marked[before], before = "-", before - 1
    return list(pieces), marked


_CONNECTS = frozenset({
    "or", "but", "if", "when", "while", "as", "than", "so", "because", "is", "are", "was", "were", "be", "how", "what",
    "why", "where",
})  # fmt: skip


def _object_of(pieces: list[str]) -> list[str]:
    """Return what an action is done to: "components from compromise", which are protected, are just components."""
    end = next((at for at, piece in enumerate(pieces) if at and piece.lower() in _AFTER_OBJECT), len(pieces))
    return pieces[:end]


_AFTER_OBJECT = frozenset({"from", "to", "with", "by", "into", "using", "without", "via", "as"})


def is_cut(topic: str, material: Material) -> bool:
    """Tell an English topic that was cut at a verb: it begins with an action, or ends with no noun.

    "assigning memory" and "polling to the interface" lack who does it, "node agent impersonating" lacks whom.
    """
    if material.phrasing.language != ENGLISH:
        return False
    pieces, usage = topic.split(), material.usage
    first, last = pieces[0], pieces[-1]
    if _HYPHENATED.match(last) or any(piece.endswith(("'s", "’s")) for piece in (first, last)):
        return True
    if _VERB_FORM.search(last) and not is_identifier(last) and usage.nouns[last.lower()] < _SEEN_AS_NOUN:
        return True
    if len(pieces) == 1:
        return False
    if not regex.search(r"\p{Ll}ing$", first) or usage.nouns[first.lower()] >= _SEEN_AS_NOUN:
        return False
    return pieces[1].lower() in _JOINS or base_of(first.lower(), usage) in _ACTIONS


_SEEN_AS_NOUN = 3
"""How often a form of a verb stands where only a noun can stand, if it is one."""

_VERB_FORM = regex.compile(r"\p{Ll}(?:ed|ing)$")
_HYPHENATED = regex.compile(
    r"(?:in|on|out|per|pre|post|non|self|multi|un|end-to|up-to)-|.+-(?:ed|ing|\p{Ll}+(?:ed|ing)|only|level|wide|based)$"
)
"""What only stands before a noun."""


def _joined(pieces: Sequence[str], kinds: Sequence[str], idle: frozenset[str]) -> Iterator[str]:
    """Yield rows of pieces that begin and end with a noun phrase, of at most so many telling words."""
    at = 0
    rows: list[list[list[str]]] = []  # of noun phrases and the words that join them
    while at < len(pieces):
        if kinds[at] != "n":
            at += 1
            continue
        row: list[list[str]] = []
        while True:
            phrase = []
            while at < len(pieces) and kinds[at] == "n":
                phrase.append(pieces[at])
                at += 1
            row.append(phrase)
            if at + 1 < len(pieces) and kinds[at] == "j" and kinds[at + 1] == "n":
                row.append([pieces[at]])
                at += 1
            else:
                break
        rows.append(row)
    for row in rows:
        if len(row) > 1 and len(row[0]) == 1 and row[0][0].lower() in _OPENINGS:
            row = row[2:]
        for end in range(len(row), 0, -2):
            words = [word for part in row[:end] for word in part]
            if sum(word.lower() not in idle for word in words) <= LONGEST_PHRASE:
                yield " ".join(words)
                break
        yield from (" ".join(part) for part in row[2::2] if len(part) > 1)


def is_telling(topic: str, material: Material) -> bool:
    """Tell a topic that says what it is about: several words, or a name or an identifier, that few chunks have."""
    said = list(dict.fromkeys(material.phrasing.content_words(topic)))
    most = math.log1p(len(material.chunks))
    if len(said) == 1:
        is_name = is_identifier(said[0]) or material.usage.is_name(said[0])
        return is_name and material.terms.weight(said[0]) >= _TELLING * most
    own = [word for word in said if word.lower() not in _GENERIC]
    least = _TELLING if len(said) > 2 or any(map(is_identifier, said)) else _PAIR_TELLING
    return bool(own) and sum(map(material.terms.weight, own)) >= least * most


def is_defined(topic: str) -> bool:
    """Tell a topic whose last word names a kind of thing, not a part of a text or of a program's setup."""
    last = topic.rsplit(" ", 1)[-1].lower()
    return last not in _GENERIC and last not in _NOT_DEFINED and not last.isdigit()


_NOT_DEFINED = frozenset(
    {"configuration", "configurations", "design", "pattern", "patterns", "usage", "spec", "user", "users"}
)


def has_own_words(topic: str) -> bool:
    """Tell a topic with a word that is neither generic nor an action."""
    return any(word not in _GENERIC and word not in _ACTIONS for word in topic.lower().split())


def needs_its_page(topic: str, material: Material) -> bool:
    """Tell a topic of generic words, as "algorithm details", which only the topic of its page makes clear."""
    said = material.phrasing.content_words(topic)
    return len(said) < 2 or sum(word.lower() not in _GENERIC for word in said) < 2
