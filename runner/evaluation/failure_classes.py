"""The classes of failure: what each means, and what to try first. Pages, terminal and Python read them from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

FailureClass = Literal[
    "absent from the corpus", "vocabulary mismatch", "specificity gap", "distractor overlap", "unjudged above gold"
]

FailureLabel = FailureClass | Literal["unclassified"]

UNCLASSIFIED: Final = "unclassified"
"""The label of a failure without a class."""


@dataclass(frozen=True)
class FailureAdvice:
    """What a class of failure means, what to try first, and where the documentation says how."""

    meaning: str
    remedy: str
    page: str

    @property
    def first_step(self) -> str:
        """Return what to try first, with the page of the documentation."""
        return f"{self.remedy} See {self.page}"


ADVICE: Mapping[FailureLabel, FailureAdvice] = {
    "absent from the corpus": FailureAdvice(
        "The corpus lacks a gold document, so no search can return it.",
        "Index the document, or correct the judgments.",
        "docs/inspect.md#findings",
    ),
    "vocabulary mismatch": FailureAdvice(
        "The gold answers in other words than the query's.",
        "Add vectors (retriever=hybrid), or those of another encoder.",
        "docs/fusion.md",
    ),
    "specificity gap": FailureAdvice(
        "The query has only common words, and many documents score alike.",
        "Expand the query: retriever=expanded.",
        "docs/llm_retrievers.md#expanded",
    ),
    "distractor overlap": FailureAdvice(
        "A document above the gold has more of the query's words, or was judged irrelevant.",
        "Rerank the hits: retriever=reranked.",
        "docs/llm_retrievers.md#reranked",
    ),
    "unjudged above gold": FailureAdvice(
        "A document above the gold resembles it but has no judgment; it may be relevant.",
        "Judge it: python -m runner judge run=latest by=hand.",
        "docs/judging.md",
    ),
    UNCLASSIFIED: FailureAdvice(
        "The evidence suggests none of the classes.",
        "Compare the hits of the query with its gold, in the report.",
        "docs/explorer.md",
    ),
}
