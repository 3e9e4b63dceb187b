from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.lexical.analyzer import Analyzer
from runner.config.objects import ConfigError
from runner.features.synthesize.base import QUERY_TYPES, Bundle, Chunks, Draft, Request, check_types
from runner.features.synthesize.generators import Deterministic
from runner.features.synthesize.limits import QueryLimits, measure_copying, tokens, words
from tests.features.synthesize.pages import TEXTS, create_request, harbour_chunks

CHUNKS = harbour_chunks()
TYPES = sorted(Deterministic().possible_types)
BOILERPLATE = ("frontmatterword", "commentword", "fencedword", "tableword", "shortcodeword", "htmlword")


def _draft(
    query_type: str, seed: int = 0, goldens: tuple[int, ...] = (0,), generator: Deterministic | None = None
) -> Draft:
    return next(iter((generator or Deterministic()).drafts(CHUNKS, [create_request(query_type, seed, goldens)])))[1]


@pytest.mark.parametrize("query_type", TYPES)
def test_every_possible_type_is_generated_from_ordinary_pages(query_type: str) -> None:
    drafts = [_draft(query_type, seed, (golden,)) for golden in range(4) for seed in range(5)]
    assert any(draft.query for draft in drafts), {draft.reason for draft in drafts}


@given(st.sampled_from(TYPES), st.integers(0, 2**63), st.integers(0, 3))
def test_queries_respect_the_limits_and_leave_out_boilerplate(query_type: str, seed: int, golden: int) -> None:
    want = create_request(query_type, seed, (golden,))
    draft = _draft(query_type, seed, want.bundle.goldens)
    assert bool(draft.query) != bool(draft.reason)
    if draft.query:
        least, most = QueryLimits().bounds(query_type)
        assert least <= len(tokens(draft.query)) <= most
        assert QueryLimits().fault(draft.query, CHUNKS, want) == ""
        assert not any(word in draft.query.lower() for word in BOILERPLATE)
        assert "\n" not in draft.query


@given(st.integers(0, 2**63), st.sampled_from((0, 1, 2, 3)))
def test_an_exact_snippet_is_a_true_substring_of_its_golden(seed: int, golden: int) -> None:
    query = _draft("exact_snippet", seed, (golden,)).query
    assert query in TEXTS[golden]
    assert not query or (query[0].isupper() and query[-1] == "." and 5 <= len(query.split()) <= 18)


def test_a_query_depends_on_its_seed_and_not_on_earlier_queries() -> None:
    wants = [create_request(query_type, seed, (1,)) for query_type in TYPES for seed in range(3)]
    forth = dict(Deterministic().drafts(CHUNKS, wants))
    back = dict(Deterministic().drafts(harbour_chunks(), wants[::-1]))
    assert [forth[at] for at in range(len(wants))] == [back[len(wants) - 1 - at] for at in range(len(wants))]
    assert len({_draft("misspellings", seed).query for seed in range(20)}) > 1


def test_keywords_are_content_words_of_the_golden() -> None:
    for seed in range(10):
        query_words = words(_draft("keyword", seed).query)
        assert set(query_words) <= set(words(f"{CHUNKS.titles[0]} {TEXTS[0]}"))
        assert not set(query_words) & {"the", "every", "that", "with"}


def test_misspellings_have_words_that_no_chunk_has() -> None:
    known = set(words(" ".join((*TEXTS, *CHUNKS.titles))))
    queries = [_draft("misspellings", seed).query for seed in range(8)]
    assert all(set(words(query)) - known - {"how", "to", "what", "is"} for query in queries)


def test_a_web_query_is_in_lower_case_and_about_the_subject() -> None:
    queries = [_draft("web_search_like", seed).query for seed in range(8)]
    assert all(query == query.lower() and "?" not in query for query in queries)
    assert all({"tide", "mooring", "scheduler"} & set(query.split()) for query in queries)


def test_a_fact_question_is_answered_by_its_golden() -> None:
    queries = {_draft("fact_seeking", seed).query.lower().rstrip("?") for seed in range(12)}
    assert queries == {"what is a tide window"}


@pytest.mark.parametrize("query_type", sorted(set(QUERY_TYPES) - set(TYPES)))
def test_a_type_that_needs_a_model_is_refused_with_the_setting_to_use(query_type: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot generate {query_type} queries; choose from exact_.*generator=llm"):
        check_types(Deterministic(), ["keyword", query_type])


def test_an_unknown_type_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean keyword"):
        check_types(Deterministic(), ["keywords"])


def test_a_misspelt_query_has_the_intended_one() -> None:
    draft = _draft("misspellings", 3)
    assert draft.intended in {_draft(name, seed).query for name in ("keyword", "web_search_like") for seed in range(20)}
    assert draft.query != draft.intended


def test_a_chunk_without_prose_gives_a_reason_instead_of_a_query() -> None:
    chunks = Chunks(["a", "b"], ["0", "0"], ["```\ncode only here\n```\n", "Boats lie at the long quay in the north."])
    drafts = dict(
        Deterministic().drafts(chunks, [Request(Bundle((0,), (1,)), name, 0) for name in ("short", "keyword")])
    )
    assert {draft.reason for draft in drafts.values()} == {"no prose"}


def test_a_query_never_names_its_document() -> None:
    chunks = Chunks(
        ["tide-window"], ["0"], ["# Tide window\n\nA tide window is when a deep vessel can reach its berth."]
    )
    for query_type in ("short", "web_search_like", "fact_seeking", "exact_snippet"):
        for seed in range(5):
            draft = next(iter(Deterministic().drafts(chunks, [Request(Bundle((0,), ()), query_type, seed)])))[1]
            assert "tide window" not in " ".join(words(draft.query))


def test_a_query_copies_at_most_the_allowed_share() -> None:
    deterministic = Deterministic(limits=QueryLimits(copied=0.5))
    for seed in range(10):
        query = _draft("fact_seeking", seed, (0,), deterministic).query
        assert measure_copying(query, TEXTS[0]) <= 0.5


def test_other_languages_have_queries_without_english_around_them() -> None:
    english = {"what", "how", "is", "the", "and", "to", "do", "with", "can"}
    german = (
        "Die alte Schleuse öffnet um sechs Uhr. Jedes Schiff zahlt eine Gebühr von 40 Talern an die Hafenmeisterei. "
        "Wer ohne Gebühr durch die alte Schleuse fährt, verliert sein Schiff und die Ladung an den Hafen der Stadt."
    )
    chinese = "# 港口灯塔\n\n港口每天接待很多船只和旅客。码头旁边有一座古老的灯塔。灯塔的历史和港口的历史一样长。"
    for text in (german, chinese):
        chunks = Chunks(["x1y", "z2w"], ["0", "0"], [text, text[len(text) // 2 :]])
        wants = [Request(Bundle((0,), (1,)), name, seed) for name in TYPES for seed in range(4)]
        drafts = [
            draft for _, draft in Deterministic(analyzer=Analyzer(stemmer=None, stopwords=None)).drafts(chunks, wants)
        ]
        written = {want.query_type for want, draft in zip(wants, drafts, strict=True) if draft.query}
        assert {"keyword", "web_search_like", "exact_snippet"} <= written
        assert not english & set(words(" ".join(draft.query for draft in drafts)))
