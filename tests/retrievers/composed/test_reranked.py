"""Reranking: the first stage and the second, a cross-encoder against transformers, and windows that a model orders."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import Corpus, Rankings, RetrieverError
from retrievers.composed.reranked import Reranked
from retrievers.encoders.pretrained import find_folder
from retrievers.lexical.bm25 import BM25
from retrievers.llm.chat import ChatError, Reply
from retrievers.rerankers import cross_encoder
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.rerankers.listwise import ListwiseReranker, list_windows, parse_permutation
from retrievers.search import plan_rankings, search_cached
from retrievers.store import MemoryStore, NoStore
from runner.evaluation.text_cuts import describe_cuts
from tests.retrievers.encoders.test_encoders import Disk
from tests.retrievers.scripted import FAILS, Overlap, Said
from tests.retrievers.test_contract import ids_of, search

CONF = Path(__file__).parents[3] / "conf"


def test_the_reranker_only_reorders_the_best_hits_of_the_base(harbour: Corpus) -> None:
    queries = ["lighthouse ships and ferries", "market"]
    base = ids_of(search(BM25(), harbour, queries, 3), harbour)
    rankings = search(Reranked(BM25(), Overlap(), depth=3), harbour, queries, 5)
    found = ids_of(rankings, harbour)
    assert [sorted(row) for row in found] == [sorted(row) for row in base]
    assert found[0] != base[0]
    assert rankings.scores[0].tolist() == [3, 3, 2]


# Cross-encoders


def saved(folder: Path, labels: int = 1, weight: float | None = None) -> str:
    """Save a small random cross-encoder that reads 64 tokens, and return its folder."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(find_folder("all-MiniLM-L6-v2")))
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(str(folder))
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.5, num_labels=labels,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    if weight is not None:
        torch.nn.init.constant_(model.classifier.weight, weight)
    model.save_pretrained(str(folder))
    return str(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("cross-encoder"))


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return the pairs that a model scores from now on, without those that it is opened with."""
    pairs: list[tuple[str, str]] = []
    score = cross_encoder._LoadedCrossEncoder.score

    def noted(self: Any, new: Sequence[tuple[str, str]], batch_tokens: int | None) -> Any:
        pairs.extend(pair for pair in new if pair != ("word", "word"))
        return score(self, new, batch_tokens)

    monkeypatch.setattr(cross_encoder._LoadedCrossEncoder, "score", noted)
    return pairs


QUERIES = ["ships and ferries", "lighthouse café", "zeppelin"]


def test_a_pair_has_the_same_bytes_whatever_is_scored_before_it_or_with_it(model: str, harbour: Corpus) -> None:
    ready = CrossEncoderReranker(model).open(MemoryStore())
    texts = list(harbour.contents())
    together = ready(QUERIES[:1], [texts], NoStore())[0].scores
    alone = [ready(QUERIES[:1], [[text]], NoStore())[0].scores for text in reversed(texts)]
    assert np.concatenate(alone[::-1]).tobytes() == together.tobytes()


def test_scores_are_the_logits_of_query_and_document(model: str, harbour: Corpus) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    rankings = search_cached(Reranked(BM25(), CrossEncoderReranker(model)), harbour, QUERIES, 6, MemoryStore())
    tokenizer, oracle = (cls.from_pretrained(model) for cls in (AutoTokenizer, AutoModelForSequenceClassification))
    contents = dict(zip(harbour.ids, harbour.contents(), strict=True))
    found = ids_of(rankings, harbour)
    assert [len(row) for row in found] == [3, 2, 0]
    for row, (query, names) in enumerate(zip(QUERIES, found, strict=True)):
        for place, name in enumerate(names):
            with torch.no_grad():
                tokens = tokenizer(query, contents[name], truncation=True, return_tensors="pt")
                assert rankings.scores[row, place] == pytest.approx(float(oracle(**tokens).logits), abs=1e-5)
    assert rankings.seconds is not None
    assert (rankings.seconds[:2] > 0).all()


def test_a_pair_is_scored_once_for_all_depths_and_bases(
    model: str, harbour: Corpus, scored: list[tuple[str, str]]
) -> None:
    store, reranker = MemoryStore(), CrossEncoderReranker(model)
    for depth in (2, 3, 1):
        for base in (BM25(), BM25(k1=3.0, b=0.0)):
            search_cached(Reranked(base, reranker, depth), harbour, QUERIES, 6, store)
    assert len(scored) == len(set(scored)) == 3 + 2
    search_cached(Reranked(BM25(), CrossEncoderReranker(model, max_length=12)), harbour, QUERIES[:1], 6, store)
    assert len(scored) == 5 + 3


def test_without_a_store_all_is_scored_again(model: str, harbour: Corpus, scored: list[tuple[str, str]]) -> None:
    searcher = Reranked(BM25(), CrossEncoderReranker(model)).index(harbour, MemoryStore())
    first, second = (searcher.search(QUERIES[:1], 6, NoStore()) for _ in range(2))
    assert len(scored) == 3 + 3
    assert first.scores.tobytes() == second.scores.tobytes()


def test_nothing_is_opened_when_all_is_stored(model: str, harbour: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, how = Disk(), Reranked(BM25(), CrossEncoderReranker(model))
    first = how.index(harbour, disk).search(QUERIES, 3, disk)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # importing it is an error
    second = how.index(harbour, disk).search(QUERIES, 3, disk)
    assert first.scores.tobytes() == second.scores.tobytes()
    assert first.seconds is not None
    assert second.seconds is not None
    with pytest.raises(ImportError):
        how.index(harbour, disk).search(["islands"], 3, disk)


def test_threads_may_share_a_model(model: str, harbour: Corpus) -> None:
    searcher = Reranked(BM25(), CrossEncoderReranker(model)).index(harbour, MemoryStore())
    expected = [searcher.search([query], 3).documents.tobytes() for query in QUERIES * 4]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda query: searcher.search([query], 3).documents.tobytes(), QUERIES * 4)) == expected


def test_equal_texts_have_equal_scores(model: str) -> None:
    corpus = Corpus(["a", "b", "c", "d"], ["red boat", "a red boat on a wide blue sea", "red boat", "red boat"])
    rankings = search(Reranked(BM25(), CrossEncoderReranker(model)), corpus, ["boat \ud800"], 4)
    assert [name for name in ids_of(rankings, corpus)[0] if name != "b"] == ["d", "c", "a"]


def test_the_pairs_that_are_cut_are_counted_with_their_tokens(model: str) -> None:
    texts = ["ships one two three", "ships one two three four five six", "ships one two three four five"]
    corpus = Corpus(["short", "long", "longish"], texts)
    settings = Reranked(BM25(), CrossEncoderReranker(model, max_length=8))  # 3 more tokens separate the texts
    figures = search_cached(settings, corpus, ["ships", "ships five"], 3, MemoryStore()).diagnostics
    lengths = [1 + 3 + 4, 1 + 3 + 7, 1 + 3 + 6, 2 + 3 + 4, 2 + 3 + 7, 2 + 3 + 6]
    assert figures["pairs_cut"] == sum(length > 8 for length in lengths)
    assert figures["pairs_tokens"] == sum(lengths)
    assert figures["pairs_tokens_unread"] == sum(max(length - 8, 0) for length in lengths)


def test_a_pair_is_cut_at_max_length(model: str, harbour: Corpus) -> None:
    corpus = Corpus(["short", "long"], ["ships one two three", "ships one two three four five six"])
    scores = search(Reranked(BM25(), CrossEncoderReranker(model, max_length=8)), corpus, ["ships"], 2).scores
    assert scores[0, 0] == pytest.approx(scores[0, 1], abs=1e-6)
    with pytest.raises(RetrieverError, match=r"max_length=65: .* reads at most 64 tokens"):
        search(Reranked(BM25(), CrossEncoderReranker(model, max_length=65)), harbour, ["ships"], 3)


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [({"labels": 3}, "returns 3 scores for each pair"), ({"weight": float("nan")}, "returned NaN or infinite scores")],
)
def test_a_model_without_one_finite_score_per_pair_is_refused(
    tmp_path: Path, harbour: Corpus, spoilt: dict[str, Any], said: str
) -> None:
    folder = saved(tmp_path, **spoilt)
    with pytest.raises(RetrieverError, match=said):
        search(Reranked(BM25(), CrossEncoderReranker(folder)), harbour, ["ships"], 3)


def test_a_model_that_is_not_there_is_refused_when_the_settings_are_read() -> None:
    with pytest.raises(RetrieverError, match=r"model=\./nowhere: no such folder"):
        repr(CrossEncoderReranker("./nowhere"))


def test_a_model_is_known_by_its_files_and_not_by_where_it_runs(model: str) -> None:
    assert repr(CrossEncoderReranker(model, device="cpu", batch_tokens=8)) == repr(CrossEncoderReranker(model))
    assert "identity='" in repr(CrossEncoderReranker(model))
    assert repr(CrossEncoderReranker(model, max_length=8)) != repr(CrossEncoderReranker(model))


# Listwise


@given(n=st.integers(0, 200), window=st.integers(2, 30), data=st.data())
def test_windows_slide_from_the_end_to_the_start_and_leave_nothing_out(
    n: int, window: int, data: st.DataObject
) -> None:
    step = data.draw(st.integers(1, window))
    slid = list_windows(n, window, step)
    assert {place for start, end in slid for place in range(start, end)} == (set(range(n)) if n > 1 else set())
    assert all(end - start == min(window, n) for start, end in slid)
    if n > 1:
        assert (slid[0][1], slid[-1][0]) == (n, 0)
    for (start, end), (next_start, next_end) in pairwise(slid):
        assert 0 < start - next_start <= step
        assert 0 < end - next_end <= step


@given(reply=st.text("[]0123456789 >,\n"), n=st.integers(0, 12))
def test_whatever_a_reply_says_the_order_is_of_all_candidates(reply: str, n: int) -> None:
    assert sorted(parse_permutation(reply, n)) == list(range(n))


@pytest.mark.parametrize(
    ("reply", "order"),
    [
        ("[3] > [1] > [2] > [4]", [2, 0, 1, 3]),
        ("[4]", [3, 0, 1, 2]),
        ("[2] > [2] > [9] > [0] > [1]", [1, 0, 2, 3]),
        ("Of the 4 passages, the best are [2] and [4].", [1, 3, 0, 2]),
        ("3, 1, 4", [2, 0, 3, 1]),
        ("I cannot say.", [0, 1, 2, 3]),
        ("[99999999999999999999] > [2]", [1, 0, 2, 3]),
    ],
)
def test_an_order_is_read_from_a_reply(reply: str, order: list[int]) -> None:
    assert parse_permutation(reply, 4) == order


@dataclass(frozen=True)
class Judge:
    """Orders passages by the number in them, the largest first, until it has answered `replies` times."""

    replies: int = 1000
    log: list[str] = field(default_factory=list, repr=False, compare=False)

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        self.log.append(question)
        if len(self.log) > self.replies:
            raise ChatError("no budget is left")
        passages = re.findall(r"^\[(\d+)\] boat (\d+)", question, re.MULTILINE)
        best = sorted(passages, key=lambda passage: -int(passage[1]))
        return Reply(" > ".join(f"[{number}]" for number, _ in best))


BOATS = Corpus([f"d{n:02}" for n in range(30)], [f"boat {n}" for n in range(30)])
"""Documents that BM25 finds equal, and so returns with the highest number first."""


def listwise(llm: Any, **settings: Any) -> Reranked:
    return Reranked(BM25(), ListwiseReranker(llm, **settings), depth=30)


def test_the_best_climb_to_the_top_window_by_window() -> None:
    corpus = Corpus(list(reversed(BOATS.ids)), BOATS.texts)  # the best is found last
    judge = Judge()
    rankings = search(listwise(judge, window=10, step=5), corpus, ["boat"], 30)
    texts = [int(corpus.texts[document].split()[1]) for document in rankings.documents[0]]
    assert texts[:5] == [29, 28, 27, 26, 25]
    assert sorted(texts) == list(range(30))
    assert len(judge.log) == 5
    np.testing.assert_allclose(rankings.scores[0], 1 / np.arange(1, 31), rtol=1e-6)
    assert rankings.diagnostics["llm_calls"] == 5
    steps = rankings.notes[0].values["calls"]
    assert [step["ranks"] for step in steps] == [[21, 30], [16, 25], [11, 20], [6, 15], [1, 10]]


def test_the_model_sees_the_candidates_by_number_and_only_their_first_words(harbour: Corpus) -> None:
    llm = Said({"ferries": ["[2] > [1]"]})
    rankings = search(listwise(llm, max_words=4), harbour, ["ferries"], 3)
    assert ids_of(rankings, harbour) == [["d3", "d2"]]
    assert "[1] Ferry Ferries leave the\n[2] A small museum shows\n" in llm.log[0]
    assert "all 2 passages" in llm.log[0]


@pytest.mark.parametrize("window", [3, 2])
def test_passages_cut_by_a_prompt_are_counted_once_with_their_words(window: int) -> None:
    corpus = Corpus(["a", "b", "c"], ["boat 1", "boat 2 on a wide sea", "boat 3 on sea"])
    rankings = search(listwise(Judge(), window=window, step=1, max_words=3), corpus, ["boat"], 3)
    cuts = {name: n for name, n in rankings.diagnostics.items() if name.startswith("passages")}
    assert cuts == {"passages_cut": 2, "passages_words": 2 + 6 + 4, "passages_words_unread": 3 + 1}
    assert describe_cuts(rankings.diagnostics, {}, "documents") == [
        "the model was shown only the beginning of 2 passages, which are longer than max_words: 33.3% of the words of "
        "all passages were not read; split documents (chunking=tokens), or raise max_words of the reranker"
    ]


@pytest.mark.parametrize("replies", [0, 2])
def test_when_the_model_fails_the_base_ranking_stands(replies: int) -> None:
    rankings = search(listwise(Judge(replies), window=10, step=5, threads=1), BOATS, ["boat"], 30)
    assert ids_of(rankings, BOATS) == ids_of(search(BM25(), BOATS, ["boat"], 30), BOATS)
    np.testing.assert_allclose(rankings.scores[0], 1 / np.arange(1, 31), rtol=1e-6)
    calls = rankings.notes[0].values["calls"]
    assert [call.get("error") for call in calls] == [None] * replies + ["no budget is left"]
    assert rankings.errors is None
    assert not rankings.settled


def test_only_failed_requests_are_sent_again(harbour: Corpus) -> None:
    store = MemoryStore()
    for reply, calls in ((FAILS, 2), ("[2] > [1]", 1)):
        llm = Said({"ferries": [reply]})
        for _ in range(2):
            search_cached(listwise(llm), harbour, ["ferries"], 3, store)
        assert len(llm.log) == calls


def test_one_candidate_needs_no_order(harbour: Corpus) -> None:
    rankings = search(listwise(Said({})), harbour, ["market", "zeppelin"], 3)
    assert ids_of(rankings, harbour) == [["d4"], []]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ListwiseReranker(Judge(), window=4, step=5), "step=5: should be at most window=4"),
        (lambda: ListwiseReranker(Judge(), prompt="{query}"), r"prompt: the placeholder \{passages\} is missing"),
        (lambda: Reranked("bm25", Overlap()), "'bm25' is not a retriever"),  # type: ignore[arg-type]  # may be written
        (lambda: Reranked(BM25(), "llm"), "should be an instance of Reranker"),  # type: ignore[arg-type]  # so may this
    ],
)
def test_settings_that_cannot_be_are_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        make()


def test_a_plan_needs_what_the_base_finds(harbour: Corpus) -> None:
    store = MemoryStore()
    work = plan_rankings(Reranked(BM25(), Overlap(), depth=7), harbour, ["ships"], 3, store)
    assert work.needs == (plan_rankings(BM25(), harbour, ["ships"], 7, store),)


def test_a_reranking_of_a_reranking_is_a_reranking(harbour: Corpus) -> None:
    inner = listwise(Said({"ferries": ["[2] > [1]"]}))
    rankings: Rankings = search(Reranked(inner, Overlap()), harbour, ["ferries"], 3)
    assert rankings.notes[0].values["base"][0]["calls"][0]["reply"] == "[2] > [1]"
    assert rankings.diagnostics["base.llm_calls"] == 1


@pytest.mark.parametrize(
    ("name", "made"), [("cross_encoder", CrossEncoderReranker()), ("llm", ListwiseReranker(Judge()))]
)
def test_the_shipped_settings_are_those_of_the_class(name: str, made: Any) -> None:
    shipped = yaml.safe_load((CONF / "reranker" / f"{name}.yaml").read_text())
    kept = {key: value for key, value in shipped.items() if key not in ("_target_", "llm")}
    assert replace(made, **kept) == made
