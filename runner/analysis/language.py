"""Detect the language of a collection of texts, and choose the analyzer that fits it.

Languages are detected by py3langid (Lui and Baldwin 2012, "langid.py"); texts are sampled evenly, so that the result is
reproducible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

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
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    step = max(len(texts) // SAMPLE, 1)
    sample = [text[:CHARACTERS] for text in texts[::step] if len(text) >= FEWEST_CHARACTERS]
    if not sample:
        return None
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    counts = Counter(str(identifier.classify(text)[0]) for text in sample)
    code, count = counts.most_common(1)[0]
    return Language(code, count / len(sample), len(sample)) if count > MAJORITY * len(sample) else None
