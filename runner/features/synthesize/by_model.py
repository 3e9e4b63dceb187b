"""Have queries written by a language model, with a prompt for each type.

They obey the same limits as queries written by rules. A query depends on its bundle and its type, not on earlier
queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from string import Template
from typing import ClassVar, Self

import regex
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.lexical.analyzer import Analyzer
from retrievers.llm.chat import Chat, Reply
from retrievers.store import fingerprint
from runner.config.addresses import LocalPath
from runner.features.synthesize.asking import ask_about_queries
from runner.features.synthesize.base import COMPARISON, NO_SECOND, QUERY_TYPES, Chunks, Draft, Request, check_types
from runner.features.synthesize.limits import QueryLimits
from runner.features.synthesize.terms import compute_share, content
from runner.llm.journal import Journal
from runner.llm.prompts import Prompt, format_passages, load_prompt
from runner.llm.rounds import Rounds

RESULTS_VERSION = "generator by a model 1"

BUNDLED_PROMPTS = Path(__file__).parent / "prompts"

OPTIONAL_GAPS = ("distractors", "least", "most")
"""The gaps that a prompt may have besides `goldens`: texts that do not answer the query, and the bounds in words."""

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

OF_PASSAGES = "mentions the passages"

OVERLAPS = "overlaps"
"""The reason for dropping a `low_overlap` query with too many words of its answer."""

_EXPLANATIONS: Mapping[str, str] = {
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
    """Settings of queries written by a language model.

    `types` are the requested query types, null for all types that have a prompt. `prompts` is a folder with a text file
    for each type, null for the bundled prompts; types without a file are not generated. If a query breaks a limit, the
    model is told why and asked again, up to `retries` times; then the query is dropped. At most a share of
    `most_overlap` of the terms of a `low_overlap` query, as produced by the `analyzer`, may be in a golden.
    """

    access: ClassVar[Access] = Access(paths=("prompts",))

    llm: Chat
    analyzer: Analyzer = Analyzer()
    most_overlap: float = Field(default=0.35, ge=0, le=1)
    prompts: LocalPath | None = None
    retries: int = Field(default=2, ge=0)
    limits: QueryLimits = QueryLimits()
    types: tuple[str, ...] | None = Field(default=None, repr=False)  # a query does not depend on the others

    @model_validator(mode="after")
    def _check_prompts(self) -> Self:
        _ = self.templates
        return self

    @cached_property
    def templates(self) -> Mapping[str, Prompt]:
        """Return the prompts by type."""
        folder = Path(self.prompts).expanduser() if self.prompts else BUNDLED_PROMPTS
        files = {name: folder / f"{name}.txt" for name in QUERY_TYPES}
        prompts = {
            name: load_prompt(file, ("goldens",), OPTIONAL_GAPS) for name, file in files.items() if file.exists()
        }
        if not prompts:
            raise ValueError(
                f"prompts={folder}: the folder contains no prompt; name its files after query types, as in keyword.txt"
            )
        return prompts

    @property
    def possible_types(self) -> frozenset[str]:
        """Return the types with a prompt."""
        return frozenset(self.templates)

    @property
    def identity(self) -> str:
        """Return a hash of everything that determines queries: these settings, those of the model, and the prompts."""
        return fingerprint(repr(self), *(f"{name}\0{self.templates[name].text}" for name in sorted(self.templates)))

    def drafts(self, chunks: Chunks, requests: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
        """Yield the position of each request with its draft, as replies arrive.

        Raises `ConfigError`, or the `ChatError` that left some without an answer.
        """
        requests = list(requests)
        check_types(self, [request.query_type for request in requests])
        questions: dict[int, str] = {}
        for position, request in enumerate(requests):
            if request.query_type == COMPARISON and len(request.bundle.goldens) < 2:
                yield position, Draft("", NO_SECOND)
            else:
                questions[position] = self._question(chunks, request)
        rounds = Rounds(partial(ask_about_queries, self.llm, journal, "synthesis"), questions, self.retries)
        for position, reply in rounds.outcomes():
            draft, query = self._read(reply, chunks, requests[position])
            fault = _EXPLANATIONS.get(draft.reason, draft.reason)
            feedback = Template(FEEDBACK).substitute(query=query, fault=fault)
            if draft.query or reply is None or not rounds.ask_again(position, feedback):
                yield position, draft

    def _question(self, chunks: Chunks, request: Request) -> str:
        least, most = self.limits.bounds(request.query_type)
        return self.templates[request.query_type].fill(
            goldens=format_passages([chunks.texts[at] for at in request.bundle.goldens]),
            distractors=format_passages([chunks.texts[at] for at in request.bundle.distractors]) or "(none)",
            least=str(least),
            most=str(most),
        )

    def _read(self, reply: Reply | None, chunks: Chunks, request: Request) -> tuple[Draft, str]:
        """Return the draft in a reply, and the query as written, even if it breaks a limit."""
        if reply is None:
            return Draft("", "refused"), ""
        query = find_query(reply.text)
        fault = self.limits.fault(query, chunks, request)
        if not fault and request.query_type != "exact_snippet" and _OF_PASSAGES.search(query):
            fault = OF_PASSAGES
        if (
            not fault
            and request.query_type == "low_overlap"
            and self._overlap(query, chunks, request) > self.most_overlap
        ):
            fault = OVERLAPS
        return (Draft("", fault) if fault else Draft(query)), query

    def _overlap(self, query: str, chunks: Chunks, request: Request) -> float:
        """Return the share of the query's terms in the golden that has the most of them."""
        terms = self.analyzer.tokens
        query_terms = terms(query)
        return max(compute_share(query_terms, terms(content(chunks, golden))) for golden in request.bundle.goldens)


def find_query(reply: str) -> str:
    """Return the query in a reply without its label, quotation marks, list markers and code fences; "" for none.

    Small models write more than the query: their reasoning, "Sure! Here is a query:", and comments. So the last line
    labelled as a query is the query; without such a line, the first line that is not an announcement.
    """
    lines = [line.strip() for line in reply.rpartition(_THOUGHT)[2].splitlines() if not line.strip().startswith("```")]
    lines = [_PREAMBLE.sub("", _MARK.sub("", line).strip(_AROUND)) for line in lines]
    lines = [line for line in lines if line.strip("\"'") and (_NAME.match(line) or not line.endswith(":"))]
    named = [rest for line in lines if (name := _NAME.match(line)) and (rest := line[name.end() :])]
    query = (named[-1:] or [line for line in lines if not _NAME.match(line)][:1] or [""])[0].strip(_AROUND)
    quoted = _QUOTED.match(query)
    return str(quoted[1] if quoted else query).strip()
