"""Detect the language of a collection of texts, or of each text, and choose the analyzer that fits it.

Languages are detected by py3langid (Lui and Baldwin 2012, "langid.py"); texts are sampled evenly, so that the result is
reproducible.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

SAMPLE, CHARACTERS = 200, 1000
"""How many texts are sampled, and how many characters of each."""

FEWEST_CHARACTERS = 20
"""Shorter texts say too little about their language."""

MAJORITY = 0.5
"""The share of the sampled texts that must be in a language."""

ANALYZERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho",
    "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""The analyzer of each language (ISO 639-1) that has a Snowball stemmer. Other languages use `plain`."""


@dataclass(frozen=True)
class Language:
    """A language (ISO 639 code), the share of the sampled texts that are in it, and the analyzer that fits."""

    code: str
    share: float
    texts: int

    @property
    def analyzer(self) -> str:
        """Return the name of the analyzer for this language; `plain` if none stems it."""
        return ANALYZERS.get(self.code, "plain")


def detect_language(texts: Sequence[str]) -> Language | None:
    """Return the language of most of the texts; None if they are too short or too mixed."""
    step = max(len(texts) // SAMPLE, 1)
    sample = [text[:CHARACTERS] for text in texts[::step] if len(text) >= FEWEST_CHARACTERS]
    if not sample:
        return None
    identifier = _load_identifier(norm_probs=False)
    counts = Counter(str(identifier.classify(text)[0]) for text in sample)
    code, count = counts.most_common(1)[0]
    return Language(code, count / len(sample), len(sample)) if count > MAJORITY * len(sample) else None


@cache
def _load_identifier(norm_probs: bool) -> Any:  # noqa: ANN401 (py3langid has no types)
    """Return the model, which takes half a second to load, once in a process."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=norm_probs)


FEWEST_TEXTS, LEAST_SHARE = 5, 0.02
"""The fewest texts in a language, and their least share, so that it counts as a language of the collection."""

LEAST_PROBABILITY = 0.8
"""The least probability with which a text is said to be in a language."""

MIXED_SAMPLE = 500
"""Of how many texts it is estimated whether they are in several languages."""

_COMMON = ("english", "german", "french", "spanish", "italian", "portuguese", "dutch", "polish", "swedish", "turkish")


def label_languages(texts: Sequence[str]) -> list[str]:
    """Return the language of each text (ISO 639-1, "" if unclear); [] if all texts seem to be in one language.

    Whether they do is estimated from scripts and from stop words of common languages, since the model takes a second to
    load. Only languages of several texts are told apart, because short texts alone say little.
    """
    if not _seem_mixed(texts):
        return []
    identifier = _load_identifier(norm_probs=True)
    counts: Counter[str] = Counter()
    for text in texts:
        code, probability = identifier.classify(text[:CHARACTERS])
        if len(text) >= FEWEST_CHARACTERS and probability >= LEAST_PROBABILITY:
            counts[str(code)] += 1
    common = _list_frequent(counts, len(texts))
    if len(common) < 2:
        return []
    identifier.set_languages(common)
    labels = [identifier.classify(text[:CHARACTERS]) for text in texts]
    identifier.set_languages(None)  # otherwise the next collection could only be in the languages of this one
    return [str(code) if probability >= LEAST_PROBABILITY else "" for code, probability in labels]


def _seem_mixed(texts: Sequence[str]) -> bool:
    """Return whether several scripts, or stop words of several languages, occur in enough texts."""
    from stop_words import get_stop_words

    stop_words = {name: frozenset(get_stop_words(name)) for name in _COMMON}
    counts: Counter[str] = Counter()
    sample = texts[:: max(len(texts) // MIXED_SAMPLE, 1)]
    for text in sample:
        letter = next(filter(str.isalpha, text), "")
        script = unicodedata.name(letter, "").partition(" ")[0] if letter else ""
        if script and script != "LATIN":
            counts[script] += 1
            continue
        words = re.findall(r"\w+", text.lower())
        (best, first), (_, second) = Counter(
            {name: sum(word in known for word in words) for name, known in stop_words.items()}
        ).most_common(2)
        if first >= 2 and first > second:
            counts[best] += 1
    return len(_list_frequent(counts, len(sample))) > 1


def _list_frequent(counts: Counter[str], texts: int) -> list[str]:
    least = max(FEWEST_TEXTS, LEAST_SHARE * texts)
    return sorted(name for name, count in counts.items() if count >= least)
