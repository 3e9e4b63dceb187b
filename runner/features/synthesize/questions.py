"""Write questions that a sentence answers, in its own words: "X is used to Y" answers what X is used for.

Only sentences with plain English patterns become questions: definitions, purposes, instructions, conditions, reasons,
counts, dates, abilities and effects. The approach is a small version of over-generation and filtering in Heilman and
Smith (2010), Good Question! Statistical Ranking for Question Generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import regex

from runner.features.synthesize.headings import (
    JOINED,
    find_action,
    find_base,
    is_defined,
    is_telling,
    iter_topics,
    needs_its_page,
)
from runner.features.synthesize.language import word_set
from runner.features.synthesize.material import Material
from runner.features.synthesize.phrases import is_identifier
from runner.features.synthesize.usage import WordUsage

FEWEST_WORDS, MOST_WORDS = 4, 14
"""The bounds of the words of a question: shorter ones ask nothing, and nobody types longer ones."""

_LONGEST_SUBJECT, _LONGEST_REST = 6, 8

_NO_SUBJECT = word_set("""
additional after all also alternatively although and another any anything as at because before between both but by
certain different during each either even every everything few first following for from further he here how however
i if in individual instead into it last less many more most multiple neither new next not nothing of on once one
only or other others over previous second several she similarly since single some specific such that then there
therefore these they this those though thus to under unless until various we what when where whether which while who
why with within without you
""")
_NOT_IN_SUBJECT = word_set("""
are as be because been being can could did do does had has have if is it may might must not shall should so than
that then there they was we were when where whether which while who whose will would you
""")
_NOT_IN_QUESTION = regex.compile(
    r"\b(?:this|these|those|its|it|they|their|them|he|his|she|her|we|our|us|such|same|above|below|following|here|there|"
    r"former|latter|page|section|document|chapter|tutorial|guide|example|paper|article|note|figure|table|study|"
    r"something|other \p{L}+s|respectively|also|however|therefore|thus|e\.g|i\.e|etc)\b",
    regex.IGNORECASE,
)
_CLAUSE_END = regex.compile(
    r"[,;:()–—]|\s-\s|\s(?:because|so that|such that|if|when|whenever|while|which|that|who|where|but|unless|until|"
    r"whereas|although|though|since|and then|as well as|rather than|in order to|and (?:is|are|was|were|can|has|have))\b"
)
_DANGLING = regex.compile(r"\s+(?:and|or|of|to|in|on|with|for|by|from|as|the|a|an|at|than|only|then|into|about)$")
_CONDITION = regex.compile(r"\s(?:if|when|whenever)\s(?!.*\?)")
_REASON = regex.compile(r",?\s(?:because|so that)\s")
_HEDGE = regex.compile(
    r"\s+(?:typically|usually|generally|normally|often|always|also|only|then|simply|just|now|still)\b"
)

_CAN_BE_ASKED = word_set("""
accelerate accept activate affect allow alter apply avoid block bypass cause change consume contain control count
decrease delay depend disable enable encrypt enforce ensure expire expose extend fail guarantee handle hide honor ignore
impact impair improve include increase induce inhibit influence inherit interfere involve keep limit lower mean modify
need occur override perform persist predict preserve prevent promote protect provide raise reduce regulate reject
replace require restart restrict retain run scale share speed stimulate store suppress support survive trigger update
use validate vary work
""")
"""Verbs of yes-no questions: effects, abilities and needs."""

_STATES = word_set("""
activated allowed associated caused cached deleted deprecated disabled enabled encrypted enforced exposed ignored
included induced inhibited limited needed persisted prevented recommended reduced regulated rejected replaced required
reserved restarted shared supported suppressed
""")

_NOT_ASKED_WHETHER = regex.compile(
    r"\b(?:you|your|either|both|already|slightly|one|some|several|various|each|every|another|other|new|own)\b"
    r"|\b(?!(?:only|apply|supply|reply|family|assembly)\b)\p{Ll}{3,}ly\b|/"
)
"""Words of a statement that do not fit into a yes-no question."""

_SUBJECT = r"(?P<subject>[^,;:()!?]{2,70}?)"
_NUMBER = r"(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)"

_PURPOSE = regex.compile(rf"^{_SUBJECT} (?P<be>is|are) (?:commonly |typically |often )?used (?:to|for|by|as)\b")
_DEFINITION = regex.compile(rf"^{_SUBJECT} (?P<be>is|are) (?:an?|the|one of|any)\s+(?P<rest>.+)")
_DEFAULTS = regex.compile(rf"^{_SUBJECT} defaults? to\b")
_COUNT = regex.compile(
    rf"^{_SUBJECT} (?P<verb>has|have|contains?|supports?|includes?|uses?|requires?|allows?|creates?|provides?|needs?)"
    rf" (?:about|at least|at most|up to|exactly|only|around|approximately)?\s*{_NUMBER} (?P<things>[^,;:.()]+)"
)
_DATE = regex.compile(
    rf"^{_SUBJECT} (?P<be>was|were|is|are|has been|have been) (?P<done>introduced|added|deprecated|removed|released|"
    rf"published|founded|discovered|established|launched|discontinued|built|born) (?:in|on|since|as of|with|at)\b.*\d"
)
_HOW_TO = regex.compile(
    r"^(?:To|In order to|If you (?:want|need|wish|would like) to|When you (?:want|need) to) (?P<rest>[^,;:]+),"
)
_YOU_CAN = regex.compile(
    r"^(?:You|Users|Administrators|Admins|Operators|Developers|Customers) (?:can|may) (?:also )?(?P<rest>.+)"
)
_LETS = regex.compile(
    rf"^{_SUBJECT} (?:lets|let|allows|allow|enables|enable|helps|help) (?:you|users|us|people)(?: to)? (?P<rest>.+)"
)
_MODAL = regex.compile(rf"^{_SUBJECT} (?P<modal>can|could|must|should|may|might|cannot)(?P<not> not)? (?P<rest>.+)")
_PASSIVE = regex.compile(
    rf"^{_SUBJECT} (?P<be>is|are|was|were)(?P<not> not)? (?P<done>\p{{L}}+(?:ed|en|wn|nd|lt)) (?P<rest>.+)"
)
_ACTIVE = regex.compile(rf"^{_SUBJECT} (?P<verb>\p{{Ll}}+(?:s|ed)) (?P<rest>.+)")
_AGENT = regex.compile(r"^(?:by|with|using|through|via)\b")
_PLACE = regex.compile(r"^(?:in|on|under|at|inside|within)\b")
_KEPT_SOMEWHERE = word_set("configured defined found kept located placed recorded saved stored written")
_AFTER_HEAD = regex.compile(r" (?:of|for|in|on|with|to|from|by|at|between|and) ")


class _Subject(NamedTuple):
    text: str
    is_plural: bool


def iter_questions(sentence: str, material: Material) -> Iterator[str]:
    """Yield questions, without a question mark, that a complete English sentence answers, plainer patterns first."""
    plain = _HEDGE.sub("", sentence.rstrip('.!?"”’ '))
    if regex.search(r"[`*|<>{}\\$=]|\.\.\.", plain):
        return
    for pattern, write in _PATTERNS:
        match = pattern.match(plain)
        if match is None:
            continue
        for question in write(match, material):
            text = " ".join(question.split())
            if FEWEST_WORDS <= len(text.split()) <= MOST_WORDS and not _NOT_IN_QUESTION.search(text):
                yield text


def iter_heading_questions(heading: str, material: Material) -> Iterator[str]:
    """Yield questions, without a question mark, that the text under an English heading answers."""
    action = find_action(heading, material.usage)
    if action and is_telling(action.partition(" ")[2], material):
        action = _to_first_person(material.phrasing.restore_case(action))
        yield from (f"how do I {action}", f"how can I {action}")
    topic = "" if action else next(iter(iter_topics(heading, material)), "")
    if not topic or not is_telling(topic, material):
        return
    named = material.phrasing.restore_case(topic)
    if " " not in topic and (
        _PART_OF_TYPE.search(topic)
        or (not is_identifier(topic) and len(material.phrasing.content_words(heading)) > 1)
        or (len(topic) < _LEAST_NAME and material.terms.n_chunks_with(topic) < 2)
    ):
        return
    if " " not in topic:
        yield f"what {'are' if _is_plural(topic) else 'is'} {named}"
        if is_identifier(topic):
            yield f"what is {named} used for"
    elif (
        not needs_its_page(topic, material)
        and not JOINED.search(topic)
        and not _GERUND.match(topic)
        and is_defined(topic)
        and material.usage.is_term(topic.split())
    ):
        is_plural = _is_plural(topic)
        yield f"what {'are' if is_plural else 'is'} {named}"
        yield f"how {'do' if is_plural else 'does'} {named} work"


_LEAST_NAME = 5
"""A shorter name that only one chunk has is an abbreviation local to it."""

_PART_OF_TYPE = regex.compile(r"\p{Ll}(?:List|Spec|Status|Args)$")
"""Types that nobody asks about: lists, specifications and states of other types."""

_GERUND = regex.compile(r"\p{L}+ing\b")


def _purpose(match: regex.Match[str], material: Material) -> Iterator[str]:
    if subject := _subject(match["subject"], material):
        yield f"what {_be(subject)} {subject.text} used for"


def _definition(match: regex.Match[str], material: Material) -> Iterator[str]:
    if (
        (subject := _subject(match["subject"], material))
        and material.is_specific(subject.text)
        and is_defined(subject.text)
    ):
        yield f"what {match['be']} {subject.text}"


def _default(match: regex.Match[str], material: Material) -> Iterator[str]:
    if subject := _subject(match["subject"], material):
        yield f"what {'do' if subject.is_plural else 'does'} {subject.text} default to"


def _count(match: regex.Match[str], material: Material) -> Iterator[str]:
    things = next(material.phrasing.phrases(match["things"]), ())
    subject = _subject(match["subject"], material)
    if subject and things and things[-1].endswith("s") and match["things"].lower().startswith(" ".join(things).lower()):
        verb = "have" if match["verb"] in ("has", "have") else find_base(match["verb"], material.usage)
        yield f"how many {' '.join(things)} {'do' if subject.is_plural else 'does'} {subject.text} {verb}"


def _date(match: regex.Match[str], material: Material) -> Iterator[str]:
    if subject := _subject(match["subject"], material):
        yield f"when {'were' if subject.is_plural else 'was'} {subject.text} {match['done']}"


def _instruction(match: regex.Match[str], material: Material) -> Iterator[str]:
    rest = _to_first_person(_clause(match["rest"]))
    verb, _, object_ = rest.partition(" ")
    if object_ and _is_base(verb, material.usage) and len(rest.split()) > 2:
        yield f"how do I {rest}"
        yield f"how to {_to_impersonal(rest)}"


def _modal(match: regex.Match[str], material: Material) -> Iterator[str]:
    subject, rest = _subject(match["subject"], material), _clause(match["rest"])
    if not subject or not rest:
        return
    if material.usage.is_verb(rest.split()[-1]) or regex.search(r"\bto \p{Ll}+$", rest):
        return
    modal = {"may": "can", "might": "can", "cannot": "can", "could": "can"}.get(match["modal"], match["modal"])
    do = "do" if subject.is_plural else "does"
    before, after = (do, "need to ") if modal == "must" else (modal, "")
    if _REASON.search(match["rest"]):
        yield f"why {before} {subject.text} {after}{rest}"
    elif _CONDITION.search(match["rest"]):
        yield f"when {before} {subject.text} {after}{rest}"
    elif _is_asked_whether(subject, rest, match["rest"], material) and (modal == "can" or rest.startswith("be ")):
        yield f"{before} {subject.text} {after}{rest}"


def _passive(match: regex.Match[str], material: Material) -> Iterator[str]:
    subject, rest, done = _subject(match["subject"], material), _clause(match["rest"]), match["done"]
    if not subject:
        return
    clause = f"{match['be']} {subject.text} {done}"
    if _REASON.search(f" {match['rest']}"):
        yield f"why {clause} {'' if _REASON.match(' ' + match['rest']) else rest}"
    elif _CONDITION.search(f" {match['rest']}"):
        yield f"when {clause} {'' if _CONDITION.match(' ' + match['rest']) else rest}"
    elif _AGENT.match(rest):
        yield f"how {clause}"
    elif _PLACE.match(rest) and done in _KEPT_SOMEWHERE:
        yield f"where {clause}"
    elif done in _STATES and _is_asked_whether(subject, rest, match["rest"], material):
        yield f"{clause} {rest}"


def _active(match: regex.Match[str], material: Material) -> Iterator[str]:
    subject, rest = _subject(match["subject"], material), _clause(match["rest"])
    usage, verb = material.usage, match["verb"]
    base = find_base(verb, usage)
    agrees = verb.endswith("ed") or (subject is not None and not subject.is_plural)
    if not subject or not rest or not agrees or not usage.is_verb(base):
        return
    do = "do" if subject.is_plural else "does"
    if _REASON.search(match["rest"]):
        yield f"why {do} {subject.text} {base} {rest}"
    elif _CONDITION.search(match["rest"]):
        yield f"when {do} {subject.text} {base} {rest}"
    elif regex.search(r"\s(?:by \w+ing|using)\b", match["rest"]):
        yield f"how {do} {subject.text} {base} {regex.split(r' (?:by |using )', rest)[0]}"
    elif base in _CAN_BE_ASKED and _is_asked_whether(subject, rest, match["rest"], material):
        yield f"{do} {subject.text} {base} {rest}"


def _is_asked_whether(subject: _Subject, rest: str, whole: str, material: Material) -> bool:
    """Return whether a statement fits a yes-no question: it is complete, general, and about something named."""
    if not rest or not _AFTER_CLAUSE.match(whole.strip()[len(rest) :]) or _NOT_ASKED_WHETHER.search(rest):
        return False
    if _NOT_ASKED_WHETHER.search(subject.text) or not is_telling(_ARTICLE.sub("", subject.text), material):
        return False
    last = rest.split()[-1]
    is_noun = is_identifier(last) or material.usage.is_noun(last)
    return is_noun and not regex.search(r"-\p{Ll}+(?:ed|ing)$", last)


_AFTER_CLAUSE = regex.compile(
    r"\s*(?:$|,? (?:because|so that|when|if|while|unless|until|although|though|but|whereas|which)\b)"
)
_ARTICLE = regex.compile(r"^(?:an?|the) ")


_Writer = Callable[["regex.Match[str]", Material], Iterator[str]]

_PATTERNS: tuple[tuple[regex.Pattern[str], _Writer], ...] = (
    (_PURPOSE, _purpose),
    (_DEFINITION, _definition),
    (_DEFAULTS, _default),
    (_COUNT, _count),
    (_DATE, _date),
    (_HOW_TO, _instruction),
    (_YOU_CAN, _instruction),
    (_LETS, _instruction),
    (_MODAL, _modal),
    (_PASSIVE, _passive),
    (_ACTIVE, _active),
)


def _subject(text: str, material: Material) -> _Subject | None:
    """Return the subject of a question; None if the text refers to earlier text or names nothing."""
    pieces = text.split()
    small = [piece.lower() for piece in pieces]
    noun = small[0] in ("a", "an", "the")
    telling = small[1:] if noun else small
    if set(pieces[1:]) & {"A", "An", "The"}:  # the first piece is the label of a section
        return None
    if not telling or len(pieces) > _LONGEST_SUBJECT or telling[0] in _NO_SUBJECT or set(small) & _NOT_IN_SUBJECT:
        return None
    head = regex.split(r" (?:of|for|in|on|with|to|from|by|at|between|and) ", " ".join(pieces[int(noun) :]))[0].split()[
        -1
    ]
    usage = material.usage
    if not (is_identifier(pieces[-1]) or usage.is_noun(small[-1])) or any(word.endswith("ly") for word in telling):
        return None
    if any(usage.is_verb(word) and not is_identifier(word) for word in telling) or not _names_something(
        telling, material
    ):
        return None
    first = material.phrasing.restore_case(pieces[0])
    return _Subject(" ".join([first, *pieces[1:]]), " and " in text or _is_plural(head))


def _is_plural(name: str) -> bool:
    last = name.rsplit(" ", 1)[-1]
    return bool(regex.search(r"[^su'i]s$", last)) and not is_identifier(last)


def _names_something(telling: list[str], material: Material) -> bool:
    """Return whether a subject has a word that not every chunk has."""
    return any(material.terms.weight(word) >= _LEAST_WEIGHT for word in telling)


_LEAST_WEIGHT = 1.0
"""A word in more than a third of all chunks names nothing by itself."""


def _be(subject: _Subject) -> str:
    return "are" if subject.is_plural else "is"


def _is_base(word: str, usage: WordUsage) -> bool:
    return word.isalpha() and word.islower() and usage.verbs[word] > 0 and not regex.search(r"(?:ing|ed)$|[^s]s$", word)


def _clause(text: str) -> str:
    """Return the first clause of a text, "" if it is too long for a question."""
    clause = _CLAUSE_END.split(f" {text}", maxsplit=1)[0].strip()
    if regex.match(r"\s*(?:that|whether|how|what|which)\b", text[len(clause) :]):
        return ""
    last = clause.rsplit(" ", 1)[-1]
    if clause != text.strip() and regex.search(
        r"-\p{Ll}+(?:ed|ing)$", last
    ):  # the noun after a list of adjectives is missing
        return ""
    clause = _DANGLING.sub("", clause)
    return clause if len(clause.split()) <= _LONGEST_REST else ""


def _to_first_person(text: str) -> str:
    """Return a text with the second person changed to the first."""
    return str(regex.sub(r"\byou\b", "I", regex.sub(r"\byourself\b", "myself", regex.sub(r"\byour\b", "my", text))))


def _to_impersonal(text: str) -> str:
    """Return a text with the first person made impersonal: "my cluster" becomes "a cluster"."""
    impersonal: str = regex.sub(r"\bmy (?=\w+s\b)", "", text)
    return str(regex.sub(r"\bmy\b", "a", impersonal))
