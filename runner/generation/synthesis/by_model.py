"""Queries that a language model writes, with a prompt for each type.

It keeps to the same limits as whoever writes queries otherwise. A query depends on its bundle and its type, never on
those made before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Self

import regex
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.analyzer import Analyzer
from retrievers.chat import Chat, Reply
from retrievers.store import fingerprint
from runner.generation.synthesis.asking import heard
from runner.generation.synthesis.base import COMPARISON, NO_SECOND, QUERY_TYPES, Chunks, Draft, Wanted, check_types
from runner.generation.synthesis.limits import Limits
from runner.generation.synthesis.terms import content, shares
from runner.llm.journal import Journal

BUNDLED_PROMPTS = Path(__file__).parent / "prompts"

GAPS = {"goldens", "distractors", "least", "most"}
"""What a prompt may have after a dollar sign: the texts that answer and those that do not, and the bounds in words."""

FEEDBACK = "\n\nYour last reply was:\n$query\n\nIt cannot be used: $fault. Write another one."

_AROUND = " *`\t"
_THOUGHT = "</think>"
_MARK = regex.compile(r"^(?:[-*•>]|\d{1,2}[.)])\s+")
_PREAMBLE = regex.compile(
    r"^(?:(?:sure|certainly|of course|okay|ok|absolutely|great)[!.,:]+\s*)?(?:here(?:['’]s| is| are)\b[^:]*:\s*)?",
    regex.IGNORECASE,
)
_NAME = regex.compile(
    r"^(?:(?:search|test|user|possible|new) )?(?:query|question|snippet|answer)(?: \d+)?[ *]*:[ *]*", regex.IGNORECASE
)
_QUOTED = regex.compile(r"""^["“'‘«]([^"“”«»]+)["”'’»][.?!]?$""")
_OF_PASSAGES = regex.compile(
    r"\b(?:the|this|these|both|first|second|given|provided|each) passages?\b(?! (?:of|to|through|from|time)\b)"
    r"|\bpassage \d",
    regex.IGNORECASE,
)

OF_PASSAGES = "speaks of passages"

OVERLAPS = "overlaps"
"""Why a `low_overlap` query is dropped that says too much in the words of its answer."""

_SAYS: Mapping[str, str] = {
    "empty": "there was no query in it",
    "too short": "it has fewer words than asked for",
    "too long": "it has more words than asked for",
    "names its document": "it names the document by its identifier",
    "not verbatim": "it does not stand in a passage word for word",
    "copied": "it repeats a passage word for word",
    OVERLAPS: "too many of its words are in the passages; say it in other words, as somebody who has not read them",
    OF_PASSAGES: "it speaks of the passages, which nobody who asks has seen",
}


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ByModel:
    """Settings of queries that a language model writes.

    `types` are those that are asked for, null for all that there is a prompt for. `prompts` is a folder with a text
    file for each type, null for those that come with this program; types without a file are not made. A query that
    breaks a limit is asked for again, with what is wrong with it, `retries` times, and then dropped. At most
    `most_overlap` of the terms of a `low_overlap` query, as the `analyzer` makes them, are in a golden.
    """

    llm: Chat
    analyzer: Analyzer = Analyzer()
    most_overlap: float = Field(default=0.35, ge=0, le=1)
    prompts: str | None = None
    retries: int = Field(default=2, ge=0)
    limits: Limits = Limits()
    types: tuple[str, ...] | None = Field(default=None, repr=False)  # a query does not depend on the others

    @model_validator(mode="after")
    def _readable(self) -> Self:
        _ = self.templates
        return self

    @cached_property
    def templates(self) -> Mapping[str, str]:
        """Return the prompts by type."""
        folder = Path(self.prompts).expanduser() if self.prompts else BUNDLED_PROMPTS
        files = {name: folder / f"{name}.txt" for name in QUERY_TYPES}
        try:
            found = {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.exists()}
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"prompts={folder}: cannot be read ({error})") from None
        if not found:
            raise ValueError(f"prompts={folder}: has no prompt; it takes files as {', '.join(QUERY_TYPES[:2])}.txt")
        for name, text in found.items():
            gaps = Template(text).get_identifiers() if Template(text).is_valid() else [""]
            if "goldens" not in gaps or not set(gaps) <= GAPS:
                known = ", ".join(f"${gap}" for gap in sorted(GAPS))
                raise ValueError(f"{files[name]}: a prompt has $goldens, and of {known} no other; a dollar sign is $$")
        return found

    @property
    def possible_types(self) -> frozenset[str]:
        """Return the types that it has a prompt for."""
        return frozenset(self.templates)

    @property
    def identity(self) -> str:
        """Return a hash of all that decides queries: settings, the model's, and the prompts."""
        return fingerprint(repr(self), *(f"{name}\0{text}" for name, text in sorted(self.templates.items())))

    def drafts(self, chunks: Chunks, wanted: Iterable[Wanted], journal: Journal) -> Iterator[tuple[int, Draft]]:
        """Yield each wanted query's position with its draft, as replies come.

        Raises `ConfigError`, or the `ChatError` that left some without an answer.
        """
        wants = list(wanted)
        check_types(self, [want.query_type for want in wants])
        waiting: dict[int, str] = {}
        for position, want in enumerate(wants):
            if want.query_type == COMPARISON and len(want.bundle.goldens) < 2:
                yield position, Draft("", NO_SECOND)
            else:
                waiting[position] = self._question(chunks, want)
        for attempt in range(self.retries + 1):
            asked, waiting = waiting, {}
            for position, reply in heard(self.llm, asked, "synthesis", journal):
                draft, said = self._read(reply, chunks, wants[position])
                if draft.query or reply is None or attempt == self.retries:
                    yield position, draft
                else:
                    feedback = Template(FEEDBACK).substitute(query=said, fault=_SAYS.get(draft.reason, draft.reason))
                    waiting[position] = asked[position] + feedback

    def _question(self, chunks: Chunks, want: Wanted) -> str:
        least, most = self.limits.bounds(want.query_type)
        gaps = {"least": str(least), "most": str(most)}
        return Template(self.templates[want.query_type]).substitute(
            goldens=_shown(chunks, want.bundle.goldens),
            distractors=_shown(chunks, want.bundle.distractors) or "(none)",
            **gaps,
        )

    def _read(self, reply: Reply | None, chunks: Chunks, want: Wanted) -> tuple[Draft, str]:
        """Return the draft in a reply, and the query as it was written, whatever is wrong with it."""
        if reply is None:
            return Draft("", "refused"), ""
        query = query_in(reply.text)
        fault = self.limits.fault(query, chunks, want)
        if not fault and want.query_type != "exact_snippet" and _OF_PASSAGES.search(query):
            fault = OF_PASSAGES
        if not fault and want.query_type == "low_overlap" and self._overlap(query, chunks, want) > self.most_overlap:
            fault = OVERLAPS
        return (Draft("", fault) if fault else Draft(query)), query

    def _overlap(self, query: str, chunks: Chunks, want: Wanted) -> float:
        """Return the largest share of the query's terms that one of its goldens has."""
        terms = self.analyzer.tokens
        asked = terms(query)
        return max(shares(asked, terms(content(chunks, golden))) for golden in want.bundle.goldens)


def query_in(reply: str) -> str:
    """Return the query in a reply, without a name before it, and quotes, marks of a list or fences around; "" for none.

    Small models say more than they are asked for: what they think, "Sure! Here is a query:", and what they made of it.
    So a line that is named a query is one, the last of several; else the first that announces nothing.
    """
    lines = [line.strip() for line in reply.rpartition(_THOUGHT)[2].splitlines() if not line.strip().startswith("```")]
    said = [_PREAMBLE.sub("", _MARK.sub("", line).strip(_AROUND)) for line in lines]
    said = [line for line in said if line.strip("\"'") and (_NAME.match(line) or not line.endswith(":"))]
    named = [rest for line in said if (name := _NAME.match(line)) and (rest := line[name.end() :])]
    query = (named[-1:] or [line for line in said if not _NAME.match(line)][:1] or [""])[0].strip(_AROUND)
    quoted = _QUOTED.match(query)
    return str(quoted[1] if quoted else query).strip()


def _shown(chunks: Chunks, positions: Sequence[int]) -> str:
    return "\n\n".join(f"[Passage {place}]\n{chunks.texts[at]}" for place, at in enumerate(positions, start=1))
