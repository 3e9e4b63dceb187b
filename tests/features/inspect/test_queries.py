"""Generated queries that do not look like searches are listed with the first sign of it."""

from __future__ import annotations

import pytest

from runner.datasets.base import Queries
from runner.features.inspect.queries import (
    COPIED,
    FRAGMENT,
    LONG,
    ONE_WORD,
    RANDOM,
    REPEATED_WORD,
    SAME_WORDS,
    is_generated,
    unlike_searches,
)

GOLD = "The keeper replaces the lamp of the lighthouse every nine hundred hours and writes this down."


def queries(*texts: str, kind: str = "keyword", generated: bool = True) -> Queries:
    """Return queries of one type, as `synthesize` writes them."""
    known = [{"query_type": kind, "evaluation": "nonllm"} if generated else {} for _ in texts]
    return Queries([str(at) for at in range(len(texts))], texts, [kind] * len(texts), known)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("replace the lamp of the", FRAGMENT),
        ("lamp", ONE_WORD),
        (" ".join(f"word{at}" for at in range(21)), LONG),
        (GOLD, COPIED),
        ("Mzk1MjgkdmRnN0pi token", RANDOM),
        ("lamp of the lamp", REPEATED_WORD),
    ],
)
def test_a_query_unlike_a_search_has_a_sign(text: str, sign: str) -> None:
    assert unlike_searches(queries(text), [[GOLD]]) == {0: sign}


@pytest.mark.parametrize("text", ["how do I replace the lamp", "lighthouse lamp", "spec.lampHours", "what is it for"])
def test_an_ordinary_search_has_no_sign(text: str) -> None:
    assert unlike_searches(queries(text), [[GOLD]]) == {}


def test_the_second_query_in_the_same_words_has_a_sign() -> None:
    assert unlike_searches(queries("lighthouse lamps", "lamp lighthouse"), [[GOLD], [GOLD]]) == {1: SAME_WORDS}


def test_a_quotation_may_be_copied() -> None:
    assert unlike_searches(queries(GOLD, kind="exact_snippet"), [[GOLD]]) == {}


def test_only_queries_with_a_validation_are_generated() -> None:
    assert is_generated(queries("lighthouse lamp"))
    assert not is_generated(queries("lighthouse lamp", generated=False))
