"""Find the topics and actions in headings, as people type them into a search box.

Parts of speech are derived from the use of words in the chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import regex

from runner.features.synthesize.language import ENGLISH, word_set
from runner.features.synthesize.material import Material
from runner.features.synthesize.phrases import LONGEST_PHRASE, is_identifier
from runner.features.synthesize.usage import BEFORE_NOUN, BEFORE_VERB, WordUsage

LONGEST_HEADING = 9
"""A longer heading is a sentence that nobody types in full."""

QUESTION = regex.compile(
    r"^(?:how|what|why|when|where|which|who|is|are|does|do|can|should)\b(?! to know\b)", regex.IGNORECASE
)

_ACTIONS = word_set("""
access add adjust allow apply assign attach authenticate authorize avoid backup bind bootstrap build change check
choose clean collect compare compile compute configure connect control convert copy create customize debug declare
define delete deploy determine diagnose disable distribute download drain enable encrypt ensure estimate evaluate
expose extend filter find fix generate get handle identify implement import improve inspect install integrate
investigate join limit list load manage measure migrate modify monitor mount move optimize organize override perform
prepare prevent protect provide provision publish pull push query reduce remove rename replace request reset resize
resolve restart restore restrict retrieve rotate run scale schedule secure select send separate set share specify
start stop store submit switch test track troubleshoot turn uninstall update upgrade use validate verify view watch
write
""")
_ALSO_NOUNS = word_set("""
access backup change check control copy debug filter import limit list load mount move query request reset restart
schedule share start stop store switch test track turn update upgrade use view watch
""")
_MAKES_ACTION = word_set("a all an another between existing from into multiple new one the to up with your")
_PARTICLES = frozenset({"in", "out", "off", "down"})
"""The words after a verb that may be a noun too: "update the index" is an action, "update strategy" is not."""

_TELLING = 0.5
"""The words of a specific topic together have at least this share of the largest IDF."""

_PAIR_TELLING = 0.65
"""The same for two ordinary words, such as "raw data"."""

_JOINS = frozenset({"of", "for", "in", "on", "with", "by", "to", "from", "and"})
JOINED = regex.compile(r" (?:of|for|in|on|with|by|to|from|and) ")
"""Matches a topic of several joined phrases, to which no term can be added."""
_GENERIC = word_set("""
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
""")
"""Words of headings in any text, which name nothing without the topic of their page."""

_OPENINGS = frozenset(
    {"overview", "introduction", "guide", "reference", "collection", "list", "summary", "examples", "example", "use"}
)
_ARTICLES = frozenset({"a", "an", "the", "your"})
_VERSION = regex.compile(r"v?\d[\d.]*(?:(?:alpha|beta|rc)\d*)?$", regex.IGNORECASE)
_PIECE = regex.compile(r"[^\s]+")
_EDGES = " \t,;:.!?()[]{}\"'“”‘’«»…*`"
_CUT = regex.compile(r"[,;:!?()\"“”«»…|–—]|\s-\s|\.(?=\s|$)")


def find_action(heading: str, usage: WordUsage) -> str:
    """Return the action in an English heading, as in "configure a probe"; "" for a heading that names a thing.

    A gerund becomes its verb: "Configuring a probe" gives the same action.
    """
    if usage.language == ENGLISH:
        heading = drop_label(heading)
    first, _, rest = heading.partition(" ")
    if usage.language != ENGLISH or not rest or len(heading.split()) > LONGEST_HEADING or _CUT.search(heading):
        return ""
    small = first.lower()
    if _POINTS_ELSEWHERE.search(rest) or _is_action(rest.split()[0].lower()):
        return ""
    if small.endswith("ing"):
        verb = find_base(small, usage)
        return f"{verb} {rest}" if verb in _ACTIONS or usage.is_verb(verb) else ""
    is_verb = usage.is_verb(small) and not regex.search(r"(?:ed|s|ing)$", small)
    if (small in _ALSO_NOUNS or (is_verb and small not in _ACTIONS)) and rest.split()[
        0
    ].lower() not in _MAKES_ACTION | _PARTICLES:
        return ""
    return f"{small} {rest}" if is_verb or small in _ACTIONS else ""


def _is_action(word: str) -> bool:
    return word in _ACTIONS and word not in _ALSO_NOUNS


def drop_label(heading: str) -> str:
    """Return an English heading without an operation's name before its description.

    Examples of such labels are "deletecollection delete collection of Pods" and "get read the specified Pod".
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
"""Verbs that describe operations of an interface."""

_POINTS_ELSEWHERE = regex.compile(r"\b(?:this|these|the (?:specified|given|following|same|above))\b", regex.IGNORECASE)
"""Words that refer to the rest of the page."""


def find_base(form: str, usage: WordUsage) -> str:
    """Return the base of an English verb in -ing, -ed or -s: the candidate that is most frequent in the chunks."""
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
    known = [base for base in bases if usage.frequencies[base]] or [base for base in bases if base in _ACTIONS]
    return max(known, key=lambda base: (usage.frequencies[base], base), default="")


def iter_topics(heading: str, material: Material) -> Iterator[str]:
    """Yield the topics of a heading, the longest first, including joining words but not articles.

    "Assign Memory Resources to Containers and Pods" gives "memory resources to containers", then "memory resources".
    """
    phrasing = material.phrasing
    if phrasing.language == ENGLISH:
        heading = drop_label(heading)
    if "," in heading:
        listed = phrasing.content_words(heading)
        yield from [" ".join(listed)] if len(listed) <= LONGEST_PHRASE + 1 else []
        return
    for part in _CUT.split(heading):
        pieces = [piece.strip(_EDGES) for piece in _PIECE.findall(part)]
        pieces = [piece for piece in pieces if piece and piece.lower() not in _ARTICLES and not _VERSION.match(piece)]
        action = find_action(" ".join(pieces), material.usage)
        if action:
            pieces = _object_of(action.split()[1:])
        known = set(" ".join(" ".join(phrase) for phrase in phrasing.phrases(" ".join(pieces))).lower().split())
        kinds = "".join("n" if p.lower() in known else "j" if p.lower() in _JOINS else "-" for p in pieces)
        if phrasing.language == ENGLISH:
            kinds = _unmark_remnants(pieces, kinds, phrasing.idle)
        topics = _join_phrases(pieces, kinds, phrasing.idle)
        if action:  # the words after its object say where or what for
            topics = islice(topics, 1)
        yield from (topic for topic in topics if not is_cut(topic, material))


def _unmark_remnants(pieces: Sequence[str], kinds: str, idle: frozenset[str]) -> str:
    """Return the kinds of words, with nouns unmarked if a word that belongs to them is next to them but in no phrase.

    "party tools" of "third party tools" names something else. Kinds are "n" for a noun phrase and "j" for a joining
    word; here, "a" marks a word that belongs to the nouns after it, and "b" one that belongs to those before it.
    """
    marks = ""
    for at, (piece, kind) in enumerate(zip(pieces, kinds, strict=True)):
        word = piece.lower()
        if kind != "-":
            marks += kind
        elif word not in idle:
            marks += "b" if at else "a"
        else:
            marks += "-" if word in BEFORE_NOUN | BEFORE_VERB | _CONNECTS else "a"
    return str(regex.sub(r"(?<=a)n+|n+(?=b)", lambda match: "-" * len(match[0]), marks))


_CONNECTS = frozenset({
    "or", "but", "if", "when", "while", "as", "than", "so", "because", "is", "are", "was", "were", "be", "how", "what",
    "why", "where",
})  # fmt: skip


def _object_of(pieces: list[str]) -> list[str]:
    """Return the object of an action without what follows: "components from compromise" is reduced to "components"."""
    end = next((at for at, piece in enumerate(pieces) if at and piece.lower() in _AFTER_OBJECT), len(pieces))
    return pieces[:end]


_AFTER_OBJECT = frozenset({"from", "to", "with", "by", "into", "using", "without", "via", "as"})


def is_cut(topic: str, material: Material) -> bool:
    """Return whether an English topic was cut at a verb: it starts with an action or does not end with a noun.

    "assigning memory" and "polling to the interface" lack a subject, "node agent impersonating" lacks an object.
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
    return pieces[1].lower() in _JOINS or find_base(first.lower(), usage) in _ACTIONS


_SEEN_AS_NOUN = 3
"""A verb form that occurs at least this often where only a noun can be is a noun."""

_VERB_FORM = regex.compile(r"\p{Ll}(?:ed|ing)$")
_HYPHENATED = regex.compile(
    r"(?:in|on|out|per|pre|post|non|self|multi|un|end-to|up-to)-|.+-(?:ed|ing|\p{Ll}+(?:ed|ing)|only|level|wide|based)$"
)
"""A word that only occurs before a noun."""


def _join_phrases(pieces: Sequence[str], kinds: str, idle: frozenset[str]) -> Iterator[str]:
    """Yield sequences of pieces that start and end with a noun phrase, with at most `LONGEST_PHRASE` content words."""
    for match in regex.finditer("n+(?:jn+)*", kinds):
        parts = regex.finditer("n+|j", kinds, pos=match.start(), endpos=match.end())
        row = [list(pieces[part.start() : part.end()]) for part in parts]  # noun phrases and the words that join them
        if len(row) > 1 and len(row[0]) == 1 and row[0][0].lower() in _OPENINGS:
            row = row[2:]
        for end in range(len(row), 0, -2):
            words = [word for part in row[:end] for word in part]
            if sum(word.lower() not in idle for word in words) <= LONGEST_PHRASE:
                yield " ".join(words)
                break
        yield from (" ".join(part) for part in row[2::2] if len(part) > 1)


def is_telling(topic: str, material: Material) -> bool:
    """Return whether a topic is specific: several words, or a name or an identifier, that are rare in the chunks."""
    words = list(dict.fromkeys(material.phrasing.content_words(topic)))
    most = math.log1p(len(material.chunks))
    if len(words) == 1:
        is_name = is_identifier(words[0]) or material.usage.is_name(words[0])
        return is_name and material.terms.weight(words[0]) >= _TELLING * most
    own = [word for word in words if word.lower() not in _GENERIC]
    least = _TELLING if len(words) > 2 or any(map(is_identifier, words)) else _PAIR_TELLING
    return bool(own) and sum(map(material.terms.weight, own)) >= least * most


def is_defined(topic: str) -> bool:
    """Return whether the last word of a topic names a kind of thing, not a part of a text or of a program's setup."""
    last = topic.rsplit(" ", 1)[-1].lower()
    return last not in _GENERIC and last not in _NOT_DEFINED and not last.isdigit()


_NOT_DEFINED = frozenset(
    {"configuration", "configurations", "design", "pattern", "patterns", "usage", "spec", "user", "users"}
)


def has_own_words(topic: str) -> bool:
    """Return whether a topic has a word that is neither generic nor an action."""
    return any(word not in _GENERIC and word not in _ACTIONS for word in topic.lower().split())


def needs_its_page(topic: str, material: Material) -> bool:
    """Return whether a topic, such as "algorithm details", is too generic without the topic of its page."""
    words = material.phrasing.content_words(topic)
    return len(words) < 2 or sum(word.lower() not in _GENERIC for word in words) < 2
