from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.lexical.analyzer import Analyzer
from runner.config.objects import ConfigError
from runner.features.synthesize.base import COMPARISON, QUERY_TYPES, Bundle, Chunks, Draft, Request, check_types
from runner.features.synthesize.generators import Deterministic
from runner.features.synthesize.limits import QueryLimits, measure_copying, tokens, words
from runner.features.synthesize.terms import compute_share
from tests.features.synthesize.pages import TEXTS, create_request, harbour_chunks

CHUNKS = harbour_chunks()
BOILERPLATE = ("frontmatterword", "commentword", "fencedword", "tableword", "shortcodeword", "htmlword")


def _draft(query_type: str, seed: int = 0, goldens: tuple[int, ...] = (0,), made: Deterministic | None = None) -> Draft:
    return next(iter((made or Deterministic()).drafts(CHUNKS, [create_request(query_type, seed, goldens)])))[1]


@pytest.mark.parametrize("query_type", QUERY_TYPES)
def test_every_type_can_be_made_of_ordinary_pages(query_type: str) -> None:
    goldens = [(0, 1)] if query_type == COMPARISON else [(0,), (1,), (2,), (3,)]
    drafts = [_draft(query_type, seed, golden) for golden in goldens for seed in range(5)]
    assert any(draft.query for draft in drafts), {draft.reason for draft in drafts}


@given(st.sampled_from(QUERY_TYPES), st.integers(0, 2**63), st.permutations(range(4)))
def test_every_query_keeps_to_the_limits_and_says_nothing_of_boilerplate(
    query_type: str, seed: int, order: list[int]
) -> None:
    want = create_request(query_type, seed, tuple(order[:2]) if query_type == COMPARISON else (order[0],))
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


def test_a_query_depends_on_its_seed_and_not_on_those_before_it() -> None:
    wants = [create_request(query_type, seed, (1,)) for query_type in QUERY_TYPES for seed in range(3)]
    forth = dict(Deterministic().drafts(CHUNKS, wants))
    back = dict(Deterministic().drafts(harbour_chunks(), wants[::-1]))
    assert [forth[at] for at in range(len(wants))] == [back[len(wants) - 1 - at] for at in range(len(wants))]
    assert len({_draft("keyword", seed).query for seed in range(20)}) > 1


def test_keywords_are_words_of_the_golden_that_others_do_not_have() -> None:
    for seed in range(10):
        said = words(_draft("keyword", seed).query)
        assert set(said) <= set(words(f"{CHUNKS.titles[0]} {TEXTS[0]}"))
        assert not set(said) & {"the", "every", "that", "with"}


def test_misspellings_have_words_that_no_chunk_has() -> None:
    known = set(words(" ".join((*TEXTS, *CHUNKS.titles))))
    queries = [_draft("misspellings", seed).query for seed in range(8)]
    assert all(set(words(query)) - known - {"how", "to", "what", "is"} for query in queries)


def test_a_web_query_is_in_small_letters_without_punctuation_and_about_the_subject() -> None:
    queries = [_draft("web_search_like", seed).query for seed in range(8)]
    assert all(query == query.lower() and "?" not in query for query in queries)
    assert all({"tide", "mooring", "scheduler"} & set(query.split()) for query in queries)


def test_a_fact_is_asked_for_as_a_question_about_its_golden() -> None:
    asked = {_draft("fact_seeking", seed).query.lower().rstrip("?") for seed in range(12)}
    assert "what is a tide window" in asked
    assert all(query.split()[0] in {"what", "how", "when", "why", "does", "is", "can"} for query in asked)


def test_low_overlap_shares_no_more_terms_than_allowed() -> None:
    analyzer = Analyzer()
    for most in (0.0, 0.3, 0.5):
        made = Deterministic(most_overlap=most)
        drafts = [_draft("low_overlap", seed, (golden,), made) for seed in range(6) for golden in range(4)]
        for at, draft in enumerate(drafts):
            golden = analyzer.tokens(f"{CHUNKS.titles[at % 4]} {TEXTS[at % 4]}")
            assert compute_share(analyzer.tokens(draft.query), golden) <= most
    assert any(draft.query for draft in drafts)


def test_without_a_lexicon_low_overlap_is_refused_with_what_can_be_made() -> None:
    made = Deterministic(lexicon=None)
    assert "low_overlap" not in made.possible_types
    with pytest.raises(
        ConfigError, match=r"cannot generate low_overlap queries; choose from concept_seeking, exact_snip"
    ):
        check_types(made, ["keyword", "low_overlap"])
    with pytest.raises(ConfigError, match="did you mean keyword"):
        check_types(made, ["keywords"])


def test_a_lexicon_that_is_not_there_is_refused_before_any_work() -> None:
    with pytest.raises(ValidationError, match="no such file or folder"):
        Deterministic(lexicon="nowhere")


def test_a_comparison_needs_two_goldens_and_names_both() -> None:
    assert _draft(COMPARISON) == Draft("", "needs two goldens")
    query = _draft(COMPARISON, 3, (0, 2)).query
    assert set(words(query)) & set(words(TEXTS[0])) and set(words(query)) & set(words(TEXTS[2]))


def test_a_chunk_without_prose_gives_no_query_and_says_so() -> None:
    chunks = Chunks(["a", "b"], ["0", "0"], ["```\ncode only here\n```\n", "Boats lie at the long quay in the north."])
    drafts = dict(
        Deterministic().drafts(chunks, [Request(Bundle((0,), (1,)), name, 0) for name in ("short", "medium")])
    )
    assert {draft.reason for draft in drafts.values()} == {"no prose"}


def test_a_query_never_names_its_document() -> None:
    chunks = Chunks(
        ["tide-window"], ["0"], ["# Tide window\n\nA tide window is when a deep vessel can reach its berth."]
    )
    for query_type in ("short", "web_search_like", "concept_seeking", "exact_snippet"):
        for seed in range(5):
            draft = next(iter(Deterministic().drafts(chunks, [Request(Bundle((0,), ()), query_type, seed)])))[1]
            assert "tide window" not in " ".join(words(draft.query))


def test_a_query_copies_no_more_than_allowed() -> None:
    made = Deterministic(limits=QueryLimits(copied=0.5))
    for seed in range(10):
        query = _draft("fact_seeking", seed, (1,), made).query
        assert measure_copying(query, TEXTS[1]) <= 0.5


def test_other_languages_have_queries_too() -> None:
    text = "Die Schleuse öffnet um sechs Uhr. Jedes Schiff zahlt eine Gebühr von 40 Talern an die Hafenmeisterei."
    chunks = Chunks(["x1y", "z2w"], ["0", "0"], [text, "Der Leuchtturm steht am nördlichen Ende der Mole."])
    made = Deterministic(analyzer=Analyzer(stemmer="german", stopwords="german"), lexicon=None)
    query = next(iter(made.drafts(chunks, [Request(Bundle((0,), (1,)), "keyword", 1)])))[1].query
    assert set(query.split()) & {"schleuse", "gebühr", "hafenmeisterei", "talern", "schiff", "öffnet", "zahlt", "uhr"}


def test_text_in_another_language_has_queries_without_english_around_them() -> None:
    english = {"what", "how", "is", "the", "and", "to", "do", "with", "can", "about", "explain", "understanding"}
    german = (
        "Die alte Schleuse öffnet um sechs Uhr. Jedes Schiff zahlt eine Gebühr von 40 Talern an die Hafenmeisterei. "
        "Wer ohne Gebühr durch die Schleuse fährt, verliert sein Schiff und die Ladung an den Hafen der Stadt."
    )
    chinese = "港口每天接待很多船只和旅客。码头旁边有一座古老的灯塔。灯塔的历史和港口的历史一样长。"
    for text in (german, chinese):
        chunks = Chunks(["x1y", "z2w"], ["0", "0"], [text, text[: len(text) // 2]])
        wants = [Request(Bundle((0,), (1,)), name, seed) for name in QUERY_TYPES[:-1] for seed in range(4)]
        drafts = [draft for _, draft in Deterministic().drafts(chunks, wants)]
        asked = {want.query_type for want, draft in zip(wants, drafts, strict=True) if draft.query}
        assert {"concept_seeking", "medium", "short", "keyword", "web_search_like", "exact_snippet"} <= asked
        assert not english & set(words(" ".join(draft.query for draft in drafts)))


def test_a_long_query_without_a_frame_is_as_long_as_it_has_to_be() -> None:
    names = ("Nord", "Süd", "Ost", "West", "Alt", "Neu", "Ober", "Unter", "Vor")
    said = "Wir sehen die {0}liche {1}schleuse und das {0}same {1}tor mit der {0}bare {1}lampe."
    text = " ".join(said.format(name.lower(), name) for name in names)
    chunks = Chunks(["x1y", "z2w"], ["0", "0"], [text, "Der Leuchtturm steht am nördlichen Ende der Mole."])
    wants = [Request(Bundle((0,), (1,)), "long", seed) for seed in range(4)]
    lengths = [len(tokens(draft.query)) for _, draft in Deterministic(lexicon=None).drafts(chunks, wants)]
    assert all(21 <= length < 21 + 4 for length in lengths), "no more than a phrase beyond"


def test_a_heading_that_many_documents_have_is_no_concept() -> None:
    texts = [f"# Before you begin\n\nThe {word} gate of the harbour has a lamp." for word in ("old", "red", "tall")]
    chunks = Chunks(["a1", "b2", "c3"], ["0", "0", "0"], texts)
    wants = [Request(Bundle((0,), (1, 2)), "concept_seeking", seed) for seed in range(8)]
    queries = [draft.query for _, draft in Deterministic().drafts(chunks, wants)]
    assert any(queries)
    assert not any("begin" in query for query in queries)


def test_a_longer_query_has_as_much_of_its_golden_as_overlap_allows() -> None:
    analyzer = Analyzer()

    def mean_share(bounds: tuple[float, float]) -> float:
        drafts = [(_draft("medium", seed, (0,), Deterministic(overlap=bounds)).query) for seed in range(20)]
        golden = analyzer.tokens(f"{CHUNKS.titles[0]} {TEXTS[0]}")
        return sum(compute_share(analyzer.tokens(query), golden) for query in drafts) / len(drafts)

    assert mean_share((0.0, 0.1)) < mean_share((0.8, 0.9))


def test_shares_that_are_none_are_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        Deterministic(overlap=(0.2, 1.2))
    with pytest.raises(ValidationError, match=r"overlap=\[0.7, 0.3\]: put the lower bound first"):
        Deterministic(overlap=(0.7, 0.3))
