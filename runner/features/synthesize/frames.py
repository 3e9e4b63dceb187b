"""Turn phrases into questions with English frames; phrases in other languages are used as they are."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from runner.features.synthesize.rewording import Task, draw_early, fill_frame, has_synonym
from runner.features.synthesize.usage import BEFORE_NOUN

AT_ONCE = 3
"""The number of phrases in a question."""

RELATIONS: tuple[str, ...] = (
    "what is the connection between {} and {} in {}",
    "can you tell me how {} and {} influence {}",
    "is it known whether {} can change {} in {}",
    "what evidence is there that {} and {} play a part in {}",
    "why would {} depend on {} or on {}",
    "how are {}, {} and {} related to each other",
)

UNSURE: tuple[str, ...] = (
    "does anybody know whether {} might have anything to do with {} or {}",
    "how might {} come about, and could {} or {} have something to do with it",
    "I wonder what difference {} can make when it comes to {} and {}",
    "is there anything to be said about {} where {} and {} are concerned",
)

TOLD: tuple[str, ...] = (
    "I am trying to understand {}. As far as I know, that has to do with {} and {}, but I am not sure how. "
    "Can someone explain?",
    "Can someone explain {}? I came across it while reading about {}, and I would like to know what {} might have to "
    "do with it",
    "I am looking for an overview of {}, above all of what that means for {} and how {} might come into it",
    "While working on {} I ran into {} and {}. What do I have to know about them, and how do they fit together?",
)

COMPARED: tuple[str, ...] = (
    "what is the difference between {a} and {b}",
    "{a} vs {b}",
    "how does {a} compare with {b}",
    "when to choose {a} over {b}",
)

_CONCEPTS: tuple[str, ...] = (
    "what {is_} {}",
    "what is meant by {}",
    "what should I know about {}",
    "can someone explain {}",
    "what {has} {a} to do with {}",
    "what is the role of {a} in {}",
    "why does one need {} for {a}",
)
_ACTIONS: tuple[str, ...] = (
    "how to {}",
    "how can I {}",
    "when should I {}",
    "what does it take to {}",
)
_DOINGS: tuple[str, ...] = (
    "guide to {}",
    "what should I know about {}",
    "what is the right way of {}",
)
_ADDED = regex.compile(rf"(?<=\S)(?: (?:{'|'.join(sorted(BEFORE_NOUN))})\b|,).*")
"""The words after a noun that describe it further."""

_INFLECTED = regex.compile(r"[^su]s$|[^be]ed$")
"""An inflected verb, which does not fit into "how to ..."."""

LONGEST_SUBJECT = 6
"""A longer heading is a sentence rather than a name."""

ASKS = regex.compile(r"^(?:how|what|why|when|where|which|who|is|are|does|do|can|should)\b", regex.IGNORECASE)


def ask_relation(task: Task, statement: str, frames: Sequence[str], most: float, anew: bool = False) -> str:
    """Return a question about the relation between phrases of a statement, in their order.

    If the statement has too few phrases, the best phrases of the chunk are added; the question is "" if there are none.
    With `anew`, the first phrase drawn has a word with a synonym.
    """
    material = task.material
    there = list(dict.fromkeys(" ".join(phrase) for phrase in material.phrasing.phrases(statement)))
    ranked = sorted(there, key=lambda phrase: -material.score(phrase.split()))
    drawn = [material.topic] if material.is_headed and material.topic else []
    if anew:
        others = exclude_words(ranked, " ".join(drawn), len(ranked))
        drawn += draw_early([phrase for phrase in others if has_synonym(phrase, task)], 1, task.chance)
        if not any(has_synonym(phrase, task) for phrase in drawn):
            return ""
    for phrases in (ranked, ranked, ranked, material.phrases, material.phrases):
        if len(drawn) < AT_ONCE:
            drawn += draw_early(exclude_words(phrases, " ".join(drawn)), 1, task.chance)
    if len(drawn) < AT_ONCE:
        return ""
    drawn.sort(key=lambda phrase: there.index(phrase) if phrase in there else len(there))
    if not task.is_english:
        return material.phrasing.restore_case(" ".join(drawn))
    return fill_frame(task, task.chance.choice(frames), drawn, most, fewest=1 if anew else 2)


def about(task: Task, subject: str) -> str:
    """Return a question about a subject, "" if its frame needs another phrase and there is none."""
    first, head = subject.split(" ", 1)[0].lower(), _ADDED.sub("", subject).rsplit(" ", 1)[-1]
    usage = task.material.usage
    if " " in subject and usage.is_verb(first) and not _INFLECTED.search(first):
        return task.chance.choice(_ACTIONS).format(subject)
    if " " in subject and first.endswith("ing") and not usage.is_noun(first):
        return task.chance.choice(_DOINGS).format(subject)
    frame = task.chance.choice(_CONCEPTS)
    phrase = next(iter(draw_early(exclude_words(task.material.phrases, subject.lower()), 1, task.chance)), "")
    if "{a}" in frame and not phrase:
        return ""
    return frame.format(
        subject,
        a=task.material.phrasing.restore_case(phrase),
        is_="are" if _is_plural(head) else "is",
        has="have" if _is_plural(phrase) else "has",
    )


def _is_plural(name: str) -> bool:
    return bool(regex.search(r"\p{Ll}{2}[^sui]s$", name))


def exclude_words(phrases: Sequence[str], text: str, n: int = 8) -> list[str]:
    """Return the first `n` phrases that share no word with a text."""
    words = set(text.lower().split())
    return [phrase for phrase in phrases if not set(phrase.lower().split()) & words][:n]
