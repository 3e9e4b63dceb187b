"""Write questions that a heading or a sentence answers: "A tide window is a ..." answers what a tide window is."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from runner.features.synthesize.topics import Material, lower_plain

_LONGEST = 9
"""The number of words of the longest instruction that people type as a question."""

_DEFINITION = regex.compile(
    r"^(?P<article>(?:An?|The) )?(?P<subject>[^,;:()]{3,50}?) (?P<be>is|are) (?:an?|the|one of) "
)
_INSTRUCTION = regex.compile(
    r"^(?:To|In order to|If you (?:want|need|wish|would like) to|When you (?:want|need) to) (?P<rest>[^,;:()]+), "
)
_NOT_ASKED = regex.compile(
    r"\b(?:this|that|these|those|it|its|they|their|them|we|our|us|same|above|below|following|here|there|so|do|see|"
    r"learn|read|avoid|make)\b|[`*|<>{}\\$=\"]",
    regex.IGNORECASE,
)
"""Words that refer to other sentences, or that lead to questions that nobody asks."""


def iter_questions(material: Material) -> Iterator[str]:
    """Yield questions, without a question mark, in English only; in other languages, headings that are questions."""
    if material.is_question or (material.topic.endswith("?") and not material.is_english):
        yield material.topic.rstrip("?")
    if not material.is_english:
        return
    if material.action and not material.is_question:
        yield _ask_how(material.action)
    for sentence in material.prose.statements:
        if (match := _DEFINITION.match(sentence)) and _is_subject(match["subject"], material):
            article = (match["article"] or "").lower().replace("the ", "")
            yield f"what {match['be']} {article}{' '.join(map(lower_plain, match['subject'].split()))}"
        if (match := _INSTRUCTION.match(sentence)) and _is_asked(match["rest"], material):
            yield _ask_how(match["rest"])


def _is_subject(subject: str, material: Material) -> bool:
    """Return whether the headings name what a sentence defines."""
    terms = material.terms.analyzer.tokens
    own = terms(subject)
    has_only_content = len(material.content_words(subject)) == len(subject.split())
    return bool(own) and has_only_content and set(own) <= set(terms(" ".join(material.headings)))


def _is_asked(rest: str, material: Material) -> bool:
    """Return whether a purpose can be asked for by itself: an action with an object."""
    words = rest.split()
    return (
        2 < len(words) <= _LONGEST
        and material.is_content(words[0])
        and material.usage.is_verb(words[0])
        and material.is_telling(rest)
        and not _NOT_ASKED.search(rest)
    )


def _ask_how(action: str) -> str:
    """Return the question for an action of the reader, in the first person."""
    own = regex.sub(r"\byour\b", "my", regex.sub(r"\byourself\b", "myself", regex.sub(r"\byou\b", "I", action)))
    return f"how do I {own}"
