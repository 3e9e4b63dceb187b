"""The steps that lose gold: arithmetic on ranks, and planted losses in whole pipelines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, Retriever, build_rankings, list_filters, list_ids
from retrievers.capabilities import Capabilities
from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.composed.reranked import Reranked
from retrievers.filters import parse_filter
from retrievers.llm.chat import Reply
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.store import NoStore, Store
from runner.api.results import with_run
from runner.comparison.comparability import reorder_queries
from runner.comparison.insights import find_insights
from runner.datasets.anchoring import Anchor
from runner.datasets.base import Queries, Raw
from runner.datasets.chunking import Tokens
from runner.datasets.dataset import Dataset
from runner.datasets.overlap import attach_spans
from runner.datasets.source import DatasetSource
from runner.datasets.spans import AnchoredSpan, GoldSpan
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.losses import (
    BEFORE_SEARCH,
    CANDIDATES,
    CUTOFF,
    NOT_OBSERVABLE,
    NOT_RETRIEVED,
    Losses,
    StageRanks,
    attribute_losses,
    find_unreachable,
)
from runner.evaluation.records import load_record, save_record
from runner.evaluation.report.sections import result_markdown
from runner.evaluation.report.tables import describe_losses, losses_table
from runner.evaluation.result import Result, ResultError
from runner.metrics.scores import UNRANKED
from runner.metrics.settings import MetricSettings
from runner.store import disk
from runner.store.disk import DiskStore
from runner.tracking.packing import pack_result, unpack_result
from runner.tracking.record import metrics_of
from tests.strategies.stages import GOLD, GOLD_FLAGS, GOLD_RANKS, STAGE_TREES, UNREACHABLE

K = 3


def ranks(*values: int) -> Any:
    return np.array([value or UNRANKED for value in values], dtype=np.int32)


def attribute(final: StageRanks, cutoff: int = K) -> list[str]:
    n = len(final.ranks)  # type: ignore[arg-type]  # the last ranking is known
    losses = attribute_losses(final, cutoff, np.ones(n, dtype=np.bool_), np.full(n, -1, dtype=np.int8))
    return [losses.steps[code] if code >= 0 else "" for code in losses.codes.tolist()]


def name_step(stage: StageRanks, gold: int, cutoff: int) -> str:
    """Return the step that lost a gold document, one at a time, as the documentation describes it."""
    at = [None if part.ranks is None else int(part.ranks[gold]) for part in stage.inputs]
    if stage.complete and not stage.inputs:
        return NOT_RETRIEVED if stage.ranks is None or stage.ranks[gold] == UNRANKED else CUTOFF
    if stage.step and any(rank is not None and rank <= cutoff for rank in at):
        return stage.step
    if not stage.complete or None in at:
        return NOT_OBSERVABLE
    before = [name_step(part, gold, cutoff) for part in stage.inputs]
    before = [CANDIDATES if (step, rank) == (CUTOFF, UNRANKED) else step for step, rank in zip(before, at, strict=True)]
    composed = [part.step for part in stage.walk() if part.step]
    order = [NOT_RETRIEVED, CUTOFF, CANDIDATES, *dict.fromkeys(composed), NOT_OBSERVABLE]
    return max(before, key=order.index)


@given(STAGE_TREES, GOLD_RANKS, GOLD_FLAGS, UNREACHABLE)
def test_each_missed_gold_document_is_lost_by_one_step(
    tree: StageRanks, final: Any, counted: Any, unreachable: Any
) -> None:
    tree = replace(tree, ranks=final)
    losses = attribute_losses(tree, K, counted, unreachable)
    assert sum(losses.counts.values()) == losses.missed == int(((final > K) & counted).sum())
    assert losses.gold == int(counted.sum())
    for gold in range(GOLD):
        code = int(losses.codes[gold])
        if not counted[gold] or final[gold] <= K:
            assert code == (-1 if counted[gold] else -2)
            continue
        returned = any(s.ranks is not None and s.ranks[gold] != UNRANKED for s in tree.walk())
        early = unreachable[gold] >= 0 and not returned
        expected = BEFORE_SEARCH[unreachable[gold]] if early else name_step(tree, gold, K)
        assert losses.steps[code] == expected


def test_a_plain_retriever_loses_gold_in_its_search_or_by_the_cutoff() -> None:
    assert attribute(StageRanks("", ranks(1, 4, 0))) == ["", CUTOFF, NOT_RETRIEVED]


def test_a_fusion_loses_what_a_part_has_among_its_first_hits() -> None:
    parts = [StageRanks("lexical", ranks(2, 9, 0)), StageRanks("semantic", ranks(0, 5, 0))]
    assert attribute(StageRanks("", ranks(4, 4, 0), "fusion", parts)) == ["fusion", CUTOFF, NOT_RETRIEVED]


def test_of_nested_stages_the_last_that_had_gold_among_its_first_hits_counts() -> None:
    parts = [StageRanks("base.lexical", ranks(1, 1, 9)), StageRanks("base.semantic", ranks(1, 9, 8))]
    base = StageRanks("base", ranks(2, 7, 0), "fusion", parts)
    assert attribute(StageRanks("", ranks(5, 5, 0), "reranker", [base])) == ["reranker", "fusion", CANDIDATES]


def test_a_reranked_part_of_a_hybrid_names_its_reranker() -> None:
    reranked = StageRanks("lexical", ranks(8), "reranker", [StageRanks("lexical.base", ranks(1))])
    semantic = StageRanks("semantic", ranks(0))
    assert attribute(StageRanks("", ranks(6), "fusion", [reranked, semantic])) == ["reranker"]


def test_what_depends_on_unknown_rankings_is_not_observable() -> None:
    parts = [StageRanks("lexical", ranks(2, 9)), StageRanks("semantic", None)]
    final = StageRanks("", ranks(4, 4), "fusion", parts)
    losses = attribute_losses(final, K, np.ones(2, dtype=np.bool_), np.full(2, -1, dtype=np.int8))
    assert [losses.steps[code] for code in losses.codes] == ["fusion", NOT_OBSERVABLE]
    assert losses.unobserved == ["semantic"]


@dataclass(frozen=True)
class Listed:
    """Returns the documents of `plant_all` for each query, without those that its filter excludes."""

    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)

    part: int
    requested: list[int] = field(repr=False, compare=False)

    def index(self, corpus: Corpus, store: Store) -> ListedSearcher:
        return ListedSearcher(self, corpus)


@dataclass(frozen=True)
class ListedSearcher:
    settings: Listed
    corpus: Corpus

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        self.settings.requested.append(k * len(queries))
        hits = []
        for query, own in zip(list_ids(queries), list_filters(queries), strict=True):
            passing = None if own is None else self.corpus.fields.select(own)
            listed = [place for place in plant_all()[query][self.settings.part] if passing is None or passing[place]]
            hits.append([(place, 1 / (1 + rank)) for rank, place in enumerate(listed)])
        seconds = np.zeros(len(queries), dtype=np.float32)
        return replace(build_rankings(hits, self.corpus.tie_order, k), seconds=seconds)


@dataclass(frozen=True)
class Burying:
    """Keeps the order of candidates, but puts those whose text has a word of the query last. Takes its time."""

    def open(self, store: Store) -> Rerank:
        def rerank(queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store) -> list[CandidateScores]:
            Clock.now += 1.0
            return [
                CandidateScores(
                    np.array([-place - 99.0 * (query in text.split()) for place, text in enumerate(texts)], np.float32)
                )
                for query, texts in zip(queries, candidates, strict=True)
            ]

        return rerank


class Clock:
    """The time, in seconds, that work is measured by."""

    now = 0.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)


N, PLANTS = 60, 20
STEPS = (
    "not in the corpus", "filter", "not retrieved", "fusion", "candidates", "reranker", "cutoff", "threshold", "",
)  # fmt: skip


@settings(frozen=True, kw_only=True)
class Planted(DatasetSource):
    """A query for each plant, whose gold is document 0, or not in the corpus."""

    def read(self) -> Raw:
        names = [f"{step}#{n}" for step in STEPS for n in range(PLANTS)]
        texts = ["gold " + " ".join(f"reranker#{n}" for n in range(PLANTS)), *(f"text {n}" for n in range(1, N))]
        metadata = [{"kind": "old" if place == 0 else "new"} for place in range(N)]
        corpus = Corpus([f"d{place:02}" for place in range(N)], texts, (), metadata, ["kind"])
        filters = [parse_filter({"kind": "new"}) if name.startswith("filter") else None for name in names]
        queries = Queries(names, names, [""] * len(names), filters=filters)
        gold = [(name, "gone" if name.startswith("not in") else "d00", 1) for name in names]
        return Raw(corpus, queries, gold)


PLACES = {"candidates": (12, 29), "reranker": (0, 5), "cutoff": (5, 12), "threshold": (3, 5)}
"""Where both parts have document 0, from 0, by the step that then loses it; elsewhere, it is among the first three."""


def plant(step: str, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return the hits of two parts, so that a fusion of both, reranked, loses document 0 by a step."""
    others = rng.permutation(np.arange(1, N)).tolist()[:30]
    place = int(rng.integers(*PLACES.get(step, (0, 3))))
    if step == "not retrieved":
        return others, others
    with_gold = [*others[:place], 0, *others[place:]]
    return with_gold, others if step == "fusion" else with_gold  # documents of both parts are before those of one


@cache
def plant_all() -> dict[str, tuple[list[int], list[int]]]:
    rng = np.random.default_rng(7)
    return {f"{step}#{n}": plant(step, rng) for step in STEPS for n in range(PLANTS)}


def build_pipeline(requested: list[int]) -> Reranked:
    parts = {"lexical": Listed(0, requested), "semantic": Listed(1, requested)}
    return Reranked(base=Hybrid(parts=parts, method="rrf", depth=30), reranker=Burying(), depth=12)


METRICS = MetricSettings(measures=("nDCG",), k_values=(5,), primary="nDCG@5", depth=30, thresholds=(-2.5,))


def evaluate(retriever: Retriever, folder: Path, metrics: MetricSettings = METRICS) -> Result:
    own = Experiment("planted", "planted", retriever, Planted(unknown_judged="keep"), metrics, {"choices": {}}, {})
    return Bench(DiskStore(folder)).evaluate(own)


def read_losses(result: Result) -> Losses:
    assert result.losses is not None
    return result.losses


def list_steps(losses: Losses) -> list[str]:
    return [losses.steps[code] if code >= 0 else "" for code in losses.codes.tolist()]


def test_planted_losses_are_named(tmp_path: Path) -> None:
    result = evaluate(build_pipeline([]), tmp_path)
    losses = read_losses(result)
    planted = [name.partition("#")[0] for name in result.queries.ids]
    assert list_steps(losses) == ["" if step == "threshold" else step for step in planted]
    assert losses.dropped == {"-2.5": PLANTS}
    assert losses.missed == sum(losses.counts.values()) == 7 * PLANTS
    assert not losses.unobserved


def test_gold_below_a_threshold_is_lost_by_it(tmp_path: Path) -> None:
    result = evaluate(build_pipeline([]), tmp_path)
    assert result.hits is not None
    hits = result.hits.rankings.documents == 0
    scores = np.where(hits.any(axis=1), result.hits.rankings.scores[np.arange(len(hits)), hits.argmax(axis=1)], -np.inf)
    losses = read_losses(result).drop_below(-2.5, scores.astype(np.float32))
    assert list_steps(losses) == [name.partition("#")[0] for name in result.queries.ids]


def test_losses_request_no_further_hits(tmp_path: Path) -> None:
    requested: list[int] = []
    pipeline = build_pipeline(requested)
    n = len(STEPS) * PLANTS
    evaluate(pipeline, tmp_path)
    assert requested == [30 * n, 30 * n]  # each part once
    evaluate(pipeline, tmp_path)
    assert requested == [30 * n, 30 * n]


def test_losses_are_equal_if_all_rankings_come_from_the_store(tmp_path: Path) -> None:
    one, other = (read_losses(evaluate(build_pipeline([]), tmp_path)) for _ in range(2))
    assert (one.counts, one.stages, other.unobserved) == (other.counts, other.stages, [])
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.ranks, other.ranks)


def test_losses_are_not_observable_if_the_rankings_of_parts_were_removed(tmp_path: Path) -> None:
    before = read_losses(evaluate(build_pipeline([]), tmp_path))
    store = DiskStore(tmp_path)
    for entry in store.list_entries():
        if entry.parts.get("retriever", "").startswith(("Listed", "Hybrid")):
            store.remove(entry)
    requested: list[int] = []
    losses = read_losses(evaluate(build_pipeline(requested), tmp_path))
    assert requested == []
    assert losses.unobserved == ["base.lexical", "base.semantic", "base"]
    early = {step: n for step, n in before.counts.items() if step in BEFORE_SEARCH}
    assert {step: n for step, n in losses.counts.items() if n} == early | {NOT_OBSERVABLE: 5 * PLANTS}
    assert losses.missed == before.missed


@dataclass(frozen=True)
class Silent:
    """Writes no variant of a query."""

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        return Reply("")


def test_gold_that_a_stored_ranking_has_below_the_depth_of_the_last_step_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    requested: list[int] = []
    pipeline = build_pipeline(requested)
    evaluate(pipeline.base, tmp_path)
    searched, losses = list(requested), read_losses(evaluate(pipeline, tmp_path))
    assert requested == searched
    (deeper,) = (name for name in losses.stages if "@" in name)
    beyond = losses.find_beyond()
    assert (deeper, set(beyond.values())) == ("base@30", {30})
    lost_by = [losses.steps[losses.codes[gold]] for gold in beyond]
    assert (lost_by.count(CANDIDATES), lost_by.count("fusion"), len(lost_by)) == (PLANTS, PLANTS, 2 * PLANTS)
    assert read_losses(evaluate(replace(pipeline, depth=30), tmp_path)).counts.get(CANDIDATES, 0) == 0


def test_what_an_expansion_did_not_find_is_not_observable(tmp_path: Path) -> None:
    pipeline = build_pipeline([])
    losses = read_losses(evaluate(Expanded(base=pipeline.base, llm=Silent(), depth=30), tmp_path))
    assert losses.counts["not retrieved"] == 0
    assert losses.counts[NOT_OBSERVABLE] > 2 * PLANTS
    assert losses.unobserved == [""]


def test_a_part_is_not_used_for_queries_in_which_its_weight_is_zero(tmp_path: Path) -> None:
    whole = build_pipeline([]).base
    assert isinstance(whole, Hybrid)
    typed = replace(whole, weights=[0.0, 1.0], weights_by_type={"other": [1.0, 1.0]})
    losses = read_losses(evaluate(typed, tmp_path))
    steps = list_steps(losses)
    start = STEPS.index("fusion") * PLANTS
    assert steps[start : start + PLANTS] == [NOT_RETRIEVED] * PLANTS  # only the part without weight returned it


def test_losses_survive_records_and_messages(tmp_path: Path) -> None:
    result = evaluate(build_pipeline([]), tmp_path / "store")
    save_record(result, tmp_path / "record")
    for again in (load_record(tmp_path / "record"), unpack_result(pack_result(result))[0]):
        one, other = read_losses(result), read_losses(again)
        assert one.describe() == other.describe()
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.ranks, other.ranks)


def test_selected_queries_have_their_own_losses(tmp_path: Path) -> None:
    result = evaluate(build_pipeline([]), tmp_path)
    some = reorder_queries(result, ["reranker#3", "fusion#1", "#2"])
    assert list_steps(read_losses(some)) == ["reranker", "fusion", ""]


def test_a_sentence_and_the_metrics_of_a_run_name_the_losses(tmp_path: Path) -> None:
    result = evaluate(build_pipeline([]), tmp_path)
    assert describe_losses(result) == (
        "Of 140 gold documents missed in the first 5: 20 not in the corpus, 20 by the filter, 20 by no part, "
        "20 by the depth of the candidates, 20 by fusion, 20 by the reranker, 20 by the cutoff."
    )
    metrics = {name: value for name, value, _ in metrics_of(result) if "lost_at" in name}
    assert sum(metrics.values()) == 7 * PLANTS + metrics["threshold_-2.5/lost_at_5"]
    assert (metrics["lost_at_5/fusion"], metrics["lost_at_5/not_in_the_corpus"]) == (PLANTS, PLANTS)


def test_a_table_lists_the_queries_of_each_step(tmp_path: Path) -> None:
    result = evaluate(build_pipeline([]), tmp_path)
    rows = losses_table(result, most=2).texts()
    assert [row[:3] for row in rows] == [[step, "20", "14.3%"] for step in result.losses.counts]  # type: ignore[union-attr]
    assert all(row[4].endswith(f" and {int(row[3]) - 2} more") for row in rows)
    report = result_markdown(result, find_insights(result))
    assert f"| fusion | 20 | 14.3% | {rows[4][3]} |" in report


def test_a_data_frame_lists_the_lost_gold_with_its_ranks(tmp_path: Path) -> None:
    result = evaluate(build_pipeline([]), tmp_path)
    frame = with_run(result, None).lost_gold
    assert len(frame) == 7 * PLANTS
    row = frame.set_index("query_id").loc["reranker#3"]
    assert (row["document_id"], row["step"], row["rank"]) == ("d00", "reranker", 12)
    assert row["rank.base.lexical"] == row["rank.base.semantic"] == row["rank.base"] <= 5
    with pytest.raises(ResultError, match="the losses by step are not available"):
        _ = with_run(result.light(), None).lost_gold


def test_a_span_that_no_chunk_contains_is_lost_in_chunking() -> None:
    corpus = Corpus(["a", "b"], ["one two three four five six", "seven eight"])
    whole = Dataset.of(corpus, {"q": "one"}, {"q": ["a", "b"]})
    anchors = [Anchor(8, 18, "exact"), Anchor(0, 3, "exact"), Anchor(0, 0, "lost")]
    spans = [AnchoredSpan(GoldSpan("q", "a", offsets=(at.start, at.end)), at) for at in anchors]
    chunks = attach_spans(whole, spans, ["a[0:0]"], 1.0).split_documents(Tokens(3))  # "three four" is in two chunks
    codes = find_unreachable(chunks, chunks.judgments)
    names = [*chunks.corpus.ids, *chunks.judgments.unknown_documents]
    gold = [names[place] for place in chunks.judgments.documents[chunks.judgments.gold_order].tolist()]
    assert dict(zip(gold, [BEFORE_SEARCH[code] if code >= 0 else "" for code in codes], strict=True)) == {
        "a#0": "", "a[8:18]": "chunking", "a[0:0]": "not in the corpus",
    }  # fmt: skip


def test_a_document_without_a_chunk_is_lost_in_chunking() -> None:
    whole = Dataset.of({"a": "one two", "b": "three"}, {"q": "one"}, {"q": ["a", "b"]})
    chunks = whole.split_documents(Tokens(1))
    kept = Corpus(chunks.corpus.ids[:2], chunks.corpus.texts[:2], (), chunks.corpus.metadata[:2])
    assert find_unreachable(replace(chunks, corpus=kept), chunks.judgments).tolist() == [-1, 2]
