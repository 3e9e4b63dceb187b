"""A regular expression in a setting cannot keep a command busy for years."""

from __future__ import annotations

import pytest

from retrievers.base import Corpus
from runner.config import patterns
from runner.config.objects import ConfigError
from runner.config.patterns import match_pattern
from runner.datasets.own_documents import OwnIdRule
from runner.evaluation.grading import Grading, _Chunks
from tests.evaluation.chats import always

SLOW = "(a|a)+$"
TEXT = "a" * 60 + "!"


@pytest.mark.parametrize("place", ["exclude_self", "grading.document_pattern"])
def test_a_pattern_that_takes_too_long_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)
    with pytest.raises(ConfigError, match=r"pattern \(a\|a\)\+\$: takes more than 0\.05 s to match a{60}\.\.\.; write"):
        if place == "exclude_self":
            OwnIdRule(pattern=SLOW).shorten(TEXT)
        else:
            chunks = _Chunks(Corpus(["d1"], ["text"]), Grading(llm=always(""), document_pattern=SLOW))
            chunks.document(TEXT)


def test_patterns_match_as_those_of_python_do() -> None:
    match = match_pattern(r"(.+)_chunk(?P<n>\d+)", "ä b_chunk12", whole=True)
    assert match is not None
    assert (match[1], match["n"]) == ("ä b", "12")
    assert match_pattern("b", "ab", whole=True) is None
    assert OwnIdRule(pattern="-q(uery)?$").shorten("d7-query") == "uery"
    assert OwnIdRule(pattern="-query$").shorten("d7-query") == "d7"
