"""Name what a chunk is about: the topic or action of its headings, its identifiers, or its characteristic words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import regex

from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.language import ENGLISH, detect_languages, function_words
from runner.features.synthesize.markdown import plain_text
from runner.features.synthesize.prose import Prose, parse_prose
from runner.features.synthesize.terms import Terms
from runner.features.synthesize.usage import EDGES, WordUsage, count_usage, is_identifier, iter_identifiers

LONGEST = 7
"""The number of words of the longest heading that people type in full."""

_TELLING = 0.6
"""The words of a specific topic have together at least this share of the largest possible IDF."""

_ASIDE = regex.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_LABEL = regex.compile(
    r"^(?:\p{L}+ )?\d[\d.]*\p{Ll}?(?:[.):]|\s*[–—-](?=\s))\s+|^\d+(?:\.\d+)+\s+|^\p{L}+:\s+(?=\S+\s\S)"
)
"""The number of a section, a label such as "Step 2:", or one such as "Example:"."""

_VERSION = regex.compile(r"^v?\d+\.\d", regex.IGNORECASE)
_MARKS = regex.compile(r"[,:;\"“”«»…–—✨\p{So}]+|\s-\s|(?<=\w)[.!]+(?=\s|$)")
_CODE = regex.compile(r"[{}<>=|\\$^~]")
_POINTING = regex.compile(
    r"\b(?:this|that|these|those|here|there|above|below|following|it|its|they|them|we|us|our|you|etc)\b",
    regex.IGNORECASE,
)
"""Words that refer to something outside the heading or sentence."""

_QUESTION = regex.compile(
    r"^(?:(?:how|what|why|when|where|which|who) (?:to|is|are|do|does|did|can|could|should|must|will|was|i)\b"
    r"|(?:is|are|do|does|can|should)\b.*\?$)",
    regex.IGNORECASE,
)
_DETERMINERS = frozenset({"a", "an", "the", "your", "my", "our"})


@dataclass(frozen=True, eq=False)
class Material:
    """What queries about a bundle are written from; they are about its first golden."""

    chunks: Chunks
    bundle: Bundle
    terms: Terms

    @property
    def text(self) -> str:
        """Return the text of the first golden."""
        return self.chunks.texts[self.bundle.goldens[0]]

    @cached_property
    def prose(self) -> Prose:
        """Return the prose of the first golden."""
        at = self.bundle.goldens[0]
        return parse_prose(self.text, self.chunks.titles[at] if self.chunks.titles else "")

    @cached_property
    def usage(self) -> WordUsage:
        """Return the use of words in all chunks."""
        return count_usage(self.chunks)

    @property
    def language(self) -> str:
        """Return the language of the first golden."""
        return detect_languages(self.chunks)[self.bundle.goldens[0]]

    @property
    def is_english(self) -> bool:
        """Return whether the first golden is in English, the language of the rules for questions."""
        return self.language == ENGLISH

    @cached_property
    def headings(self) -> tuple[str, ...]:
        """Return the headings above and in the first golden, without numbering, asides and code, outermost first."""
        return tuple(dict.fromkeys(filter(None, map(clean_heading, self.prose.headings))))

    @cached_property
    def topic(self) -> str:
        """Return the innermost heading, or the title of the page if several documents have that heading; "" for none.

        A heading of one word, such as "Options", names a topic only on a page without a title.
        """
        if not self.headings:
            return ""
        title = clean_heading(plain_text(self.usage.titles.get(self.chunks.doc_ids[self.bundle.goldens[0]], "")))
        title = "" if self.usage.is_common(title) else title
        inner = self.headings[-1]
        if self.usage.is_common(inner) or inner == title:
            return title
        return inner if self.is_telling(inner) and (self.is_complete(inner) or not (title or " " in inner)) else ""

    @cached_property
    def action(self) -> str:
        """Return the topic as an action, "configure a probe", "" if it is none; "Configuring a probe" is one."""
        first, _, rest = self.topic.partition(" ")
        second, verb = rest.partition(" ")[0].lower(), first.lower()
        if not self.is_english or not rest or self.is_question or self.topic not in self.headings:
            return ""
        if verb.endswith("ing"):
            stem = verb[:-3]
            bases = [stem, f"{stem}e", *([stem[:-1]] if stem[-1:] == stem[-2:-1] else [])]
            verb = max(bases, key=lambda base: self.usage.verbs[base])
            return f"{verb} {rest}" if self.usage.is_verb(verb) and second in _DETERMINERS else ""
        is_verb = self.usage.is_verb(verb) or (second in _DETERMINERS and self.usage.verbs[verb] > 0)
        return (
            f"{verb} {rest}" if is_verb and self.is_content(verb) and not regex.search(r"(?:[^s]s|ed)$", verb) else ""
        )

    @property
    def is_question(self) -> bool:
        """Return whether the topic is a question."""
        return bool(_QUESTION.match(self.topic))

    @cached_property
    def identifiers(self) -> list[str]:
        """Return the names from code that are in a heading, or repeated here and in other documents, rarest first."""
        headings = set(iter_identifiers(" ".join(self.headings)))
        counts = Counter(iter_identifiers(" ".join(self.prose.sentences)))
        repeated = {name for name, count in counts.items() if count > 1 and self.usage.is_shared(name)}
        names = filter(self.is_telling, headings | repeated)
        return sorted(names, key=lambda name: (-self.terms.weight(name), name))

    @cached_property
    def characteristic(self) -> list[str]:
        """Return what a golden repeats, if no chunk has headings: its best pairs of words, else three words."""
        if self.usage.headings:
            return []
        counts, pairs = Counter[str](), Counter[tuple[str, str]]()
        for sentence in self.prose.sentences:
            pieces = [piece.strip(EDGES) for piece in sentence.split()]
            words = [piece.lower() if self.is_content(piece) else "" for piece in pieces]
            counts.update(filter(None, words))
            pairs.update((a, b) for a, b in pairwise(words) if a and b and a != b)
        weights = {word: count * self.terms.weight(word) for word, count in counts.items()}
        repeated = [pair for pair, count in pairs.items() if count > 1]
        repeated.sort(key=lambda pair: -(weights[pair[0]] + weights[pair[1]]))
        best = sorted(sorted(counts, key=lambda word: -weights[word])[:3], key=list(counts).index)
        return [" ".join(pair) for pair in repeated[:3]] or list(filter(None, [" ".join(best)]))

    def is_content(self, word: str) -> bool:
        """Return whether a word is in Latin or a similar script, and is neither a function word nor a number."""
        is_word = regex.fullmatch(r"[\p{L}\p{M}][\w.'’-]+", word)
        return bool(is_word and word.lower() not in function_words(self.language) and self.terms.analyzer.terms(word))

    def content_words(self, text: str) -> list[str]:
        """Return the words of a text without function words."""
        idle = function_words(self.language)
        return [word for word in text.split() if word.lower() not in idle and word.lower() not in _DETERMINERS]

    def is_complete(self, heading: str) -> bool:
        """Return whether a heading is a question, a name from code, or several words that begin with a content word."""
        if heading.endswith("?") or _QUESTION.match(heading):
            return bool(_QUESTION.match(heading))
        words = self.content_words(heading)
        if len(words) < 2:
            return any(is_identifier(word) for word in heading.split())
        return heading.startswith(words[0])

    def is_telling(self, text: str) -> bool:
        """Return whether the words of a text are together rare enough in the chunks, and refer to nothing outside."""
        weight = math.fsum(self.terms.weight(word) for word in dict.fromkeys(self.content_words(text)))
        return weight >= _TELLING * math.log1p(len(self.chunks)) and not _POINTING.search(text)


def clean_heading(heading: str) -> str:
    """Return a heading as people type it, "" for code, for one that is too long, or that needs what comes before it."""
    text = _ASIDE.sub("", _LABEL.sub("", heading)).partition(": ")[0]
    if _CODE.search(text) or _VERSION.match(text) or _POINTING.search(text) or "," in text:
        return ""
    text = _MARKS.sub(" ", text)
    text = " ".join(lower_plain(word) for word in text.strip(" .!-").split())
    return text if regex.search(r"\p{L}{2}", text) and len(text.split()) <= LONGEST else ""


def lower_plain(word: str) -> str:
    """Return a word in lower case unless it has a capital after its first letter, as names from code have."""
    return word.lower() if word[1:] == word[1:].lower() else word


def drop_determiners(text: str) -> str:
    """Return a text without articles, as people type it into a search box."""
    return " ".join(word for word in text.split() if word.lower() not in _DETERMINERS)
