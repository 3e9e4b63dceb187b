from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.features.synthesize.base import Bundle, Chunks, Request
from runner.features.synthesize.limits import (
    QueryLimits,
    find_ordinary_ids,
    measure_copying,
    names_document,
    tokens,
    words,
)

TEXT = "The keeper replaces the lamp of the lighthouse every 900 hours and writes this down."


def _fault(query: str, query_type: str, limits: QueryLimits = QueryLimits()) -> str:  # noqa: B008 (immutable)
    chunks = Chunks(["town_light-house"], ["0"], [TEXT])
    return limits.fault(query, chunks, Request(Bundle((0,), ()), query_type, 0))


def test_tokens_are_words_or_characters_of_scripts_without_spaces() -> None:
    assert tokens(" kube-proxy's  port 8080 ") == ["kube-proxy's", "port", "8080"]
    assert tokens("港口 map") == ["港", "口", "map"]


@pytest.mark.parametrize(
    ("query_type", "n", "fault"),
    [
        ("short", 4, ""), ("short", 5, "too long"), ("medium", 4, "too short"), ("medium", 20, ""),
        ("medium", 21, "too long"), ("long", 20, "too short"), ("long", 64, ""), ("long", 65, "too long"),
        ("keyword", 8, ""), ("keyword", 9, "too long"), ("keyword", 0, "empty"),
    ],
)  # fmt: skip
def test_length_is_within_the_target_and_the_cap(query_type: str, n: int, fault: str) -> None:
    assert _fault(" ".join(f"w{at}" for at in range(n)), query_type) == fault


def test_own_limits_replace_the_defaults() -> None:
    limits = QueryLimits(caps={"keyword": 2}, lengths={"short": (2, 3)})
    assert limits.bounds("keyword") == (1, 2)
    assert limits.bounds("short") == (2, 3)
    assert limits.bounds("web_search_like") == (1, 16)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"caps": {"keywords": 3}}, "did you mean keyword"),
        ({"lengths": {"short": (5, 2)}}, r"the minimum \(5 tokens\) must not exceed the maximum \(2\)"),
        ({"caps": {"short": 0}}, "greater than or equal to 1"),
    ],
)
def test_impossible_limits_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        QueryLimits(**settings)


def test_an_exact_snippet_is_a_true_substring() -> None:
    assert _fault("the lamp of the lighthouse every 900 hours", "exact_snippet") == ""
    assert _fault("The lamp of the lighthouse every 900 hours", "exact_snippet") == "not verbatim"


def test_a_copy_is_refused_and_a_term_is_allowed() -> None:
    assert _fault("the keeper replaces the lamp of the lighthouse", "medium") == "copied"
    assert _fault("who replaces the lamp of the lighthouse, and does he climb", "medium") == ""
    assert _fault("lamp of the lighthouse", "short") == ""


def test_copying_is_the_longest_common_run_of_words() -> None:
    assert measure_copying("often the lamp of the lighthouse, every 900 nights!", TEXT) == pytest.approx(7 / 9)
    assert measure_copying("lamp lighthouse keeper hours down", TEXT) == 0


@given(st.lists(st.sampled_from("abcd"), max_size=9), st.lists(st.sampled_from("abcd"), max_size=12))
def test_copying_agrees_with_a_search_of_all_runs(query: list[str], text: list[str]) -> None:
    runs = [
        end - start
        for end in range(len(query) + 1)
        for start in range(end)
        if any(text[at : at + end - start] == query[start:end] for at in range(len(text)))
    ]
    longest = max(runs, default=0)
    assert measure_copying(" ".join(query), " ".join(text)) == (longest / len(query) if longest > 4 else 0)


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("see ops_customs-office for duty", True), ("OPS customs office", True), ("the customs office", False),
        ("a1 steak", False),
    ],
)  # fmt: skip
def test_a_query_that_names_its_document_is_refused(query: str, named: bool) -> None:
    assert names_document(query, ["ops_customs-office", "a1"]) is named


WORLD = Chunks(
    ["path", "Url", "zephyr", "doc17", "readFile", "sea route", "tar"],
    ["0"] * 7,
    ["a path, a url and a tar", "url path doc17 readFile sea route", "zephyr: path doc17 readFile sea route",
     "path, zephyr", "url", "tar: url", "a tar"],
)  # fmt: skip


def test_a_plain_identifier_that_other_documents_use_is_an_ordinary_word() -> None:
    assert find_ordinary_ids(WORLD) == {"path", "Url", "tar"}


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("join a path", False), ("what does path.md say?", True), ("see `api/Path.TXT`", True), ("path.join", False),
        ("the url of a page", False), ("URL.md", True), ("on zephyr", True), ("of doc17", True),
        ("how does readFile end", True), ("a sea-route", True),
    ],
)  # fmt: skip
def test_an_ordinary_word_names_a_document_only_as_a_file(query: str, named: bool) -> None:
    assert names_document(query, WORLD.doc_ids, find_ordinary_ids(WORLD)) is named
    requests = [Request(Bundle((position,), ()), "keyword", 0) for position in range(len(WORLD))]
    assert ("names its document" in {QueryLimits().fault(query, WORLD, each) for each in requests}) is named


@given(st.from_regex(r"[a-z]{1,4}[0-9_.-][a-z0-9]{1,4}", fullmatch=True), st.integers(0, 9))
def test_an_identifier_with_digits_or_signs_is_never_an_ordinary_word(doc_id: str, n: int) -> None:
    chunks = Chunks([doc_id, *(f"d{at}" for at in range(n))], ["0"] * (n + 1), [f"see {doc_id}"] * (n + 1))
    assert QueryLimits().fault(f"what is {doc_id} about", chunks, Request(Bundle((0,), ()), "keyword", 0))


def test_words_are_without_punctuation() -> None:
    assert words("Don't panic: port-8080!") == ["don't", "panic", "port", "8080"]
