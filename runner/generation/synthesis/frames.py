"""The frames that phrases are put into, so that they ask something; they are English.

Phrases of a text in another language stand by themselves. It knows nothing of the types of queries.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

from runner.generation.synthesis.rewording import Task, early, framed, has_other_word
from runner.generation.synthesis.usage import BEFORE_NOUN

AT_ONCE = 3
"""How many phrases a question brings together."""

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
"""What stands behind a noun and tells more of it."""

_INFLECTED = regex.compile(r"[^su]s$|[^be]ed$")
"""What is done is put without an ending, as in "how to embed"."""

LONGEST_SUBJECT = 6
"""A longer heading is a sentence rather than a name for something."""

ASKS = regex.compile(r"^(?:how|what|why|when|where|which|who|is|are|does|do|can|should)\b", regex.IGNORECASE)


def related(task: Task, statement: str, frames: Sequence[str], most: float, anew: bool = False) -> str:
    """Return a question for what phrases of a statement have to do with each other, in their order.

    Where the statement has too few, the others are such as say much; "" where there are none. With `anew`, the first
    that is chosen has a word for which there is another.
    """
    material = task.material
    there = list(dict.fromkeys(" ".join(phrase) for phrase in material.phrasing.phrases(statement)))
    ranked = sorted(there, key=lambda phrase: -material.score(phrase.split()))
    drawn = [material.topic] if material.is_headed and material.topic else []
    if anew:
        others = apart(ranked, " ".join(drawn), len(ranked))
        drawn += early([each for each in others if has_other_word(each, task)], 1, task.chance)
        if not any(has_other_word(each, task) for each in drawn):
            return ""
    for phrases in (ranked, ranked, ranked, material.phrases, material.phrases):
        if len(drawn) < AT_ONCE:
            drawn += early(apart(phrases, " ".join(drawn)), 1, task.chance)
    if len(drawn) < AT_ONCE:
        return ""
    drawn.sort(key=lambda phrase: there.index(phrase) if phrase in there else len(there))
    if not task.is_english:
        return material.phrasing.spelt(" ".join(drawn))
    return framed(task, task.chance.choice(frames), drawn, most, fewest=1 if anew else 2)


def about(task: Task, subject: str) -> str:
    """Return a question about a subject, "" where its frame has a gap for a phrase and there is none beside it."""
    first, head = subject.split(" ", 1)[0].lower(), _ADDED.sub("", subject).rsplit(" ", 1)[-1]
    usage = task.material.usage
    if " " in subject and usage.is_verb(first) and not _INFLECTED.search(first):
        return task.chance.choice(_ACTIONS).format(subject)
    if " " in subject and first.endswith("ing") and not usage.is_noun(first):
        return task.chance.choice(_DOINGS).format(subject)
    frame = task.chance.choice(_CONCEPTS)
    phrase = next(iter(early(apart(task.material.phrases, subject.lower()), 1, task.chance)), "")
    if "{a}" in frame and not phrase:
        return ""
    return frame.format(
        subject,
        a=task.material.phrasing.spelt(phrase),
        is_="are" if _is_plural(head) else "is",
        has="have" if _is_plural(phrase) else "has",
    )


def _is_plural(name: str) -> bool:
    return bool(regex.search(r"\p{Ll}{2}[^sui]s$", name))


def apart(phrases: Sequence[str], said: str, n: int = 8) -> list[str]:
    """Return the first phrases that have no word of what is said."""
    words = set(said.lower().split())
    return [phrase for phrase in phrases if not set(phrase.lower().split()) & words][:n]
