from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from retrievers.encoders.lsa import LSAEncoder
from retrievers.llm.chat import ChatError
from retrievers.store import Store
from runner.config.objects import ConfigError
from runner.datasets.chunking import Whole
from runner.features.synthesize import pipeline
from runner.features.synthesize.base import Chunks, Draft, Generator, Request
from runner.features.synthesize.by_model import ByModel
from runner.features.synthesize.checks import Checks
from runner.features.synthesize.generators import Deterministic
from runner.features.synthesize.loading import ChunkSource
from runner.features.synthesize.pipeline import Caching, Synthesis, synthesize
from runner.features.synthesize.sampling import Sampling
from runner.features.synthesize.selection import BundleSelection
from runner.features.synthesize.validation import Validation
from runner.llm.journal import Journal
from runner.store.disk import DiskStore
from tests.evaluation.chats import Scripted
from tests.features.synthesize.worlds import StubGenerator, list_rows, scatter_chunks, write_chunks


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store on disk that keeps even what is quick to make."""
    monkeypatch.setattr("runner.store.disk.WORTH_KEEPING_S", 0.0)
    return DiskStore(tmp_path / "store")


@pytest.fixture
def create_synthesis(tmp_path: Path) -> Callable[..., Synthesis]:
    """Return a function that creates settings, by default for 60 chunks of 20 documents."""
    path = write_chunks(tmp_path / "chunks.jsonl", list_rows(scatter_chunks(60, 20)))

    def create(generator: Generator, **more: Any) -> Synthesis:
        given: dict[str, Any] = {
            "source": ChunkSource(path=path, encoder=LSAEncoder(), chunking=Whole()),
            "checks": Checks(),
            "selection": BundleSelection(),
            "sampling": Sampling(),
            "validation": Validation(mode="none"),
            "count": 50,
        }
        return Synthesis(generator=generator, **{**given, **more})

    return create


def test_the_requested_number_of_queries_is_returned_in_order(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    generator = StubGenerator(barren=frozenset(range(0, 60, 2)))
    outcome = synthesize(create_synthesis(generator), store, journal)
    assert len(outcome.accepted) == 50
    assert not outcome.exhausted
    assert {candidate.verdict.reason for candidate in outcome.candidates} <= {"", "barren", "beyond count"}
    assert all(f" w{candidate.request.bundle.goldens[0]} " in candidate.draft.query for candidate in outcome.accepted)
    more = synthesize(create_synthesis(StubGenerator(barren=frozenset(range(0, 60, 2))), count=60), store, journal)
    assert more.accepted[:50] == outcome.accepted


def test_exhausted_input_gives_all_its_queries(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    outcome = synthesize(create_synthesis(StubGenerator(barren=frozenset(range(30))), count=500), store, journal)
    assert outcome.exhausted
    assert len(outcome.candidates) == 60 * 2  # two types of each chunk: no bundle has two goldens to compare
    assert len(outcome.accepted) == 30 * 2


def test_without_a_count_each_bundle_has_one_turn(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    one_each = Sampling(min_types=1, max_types=1)
    outcome = synthesize(create_synthesis(StubGenerator(), count=None, sampling=one_each), store, journal)
    assert len(outcome.accepted) == 60
    assert not outcome.exhausted


def test_a_repeated_query_is_rejected(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    class Same(StubGenerator):
        def drafts(self, chunks: Chunks, requests: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
            return ((i, Draft("The  SAME" if i else "the same")) for i, _ in super().drafts(chunks, requests, journal))

    outcome = synthesize(create_synthesis(Same()), store, journal)
    assert [candidate.draft.query for candidate in outcome.accepted] == ["the same"]
    assert {candidate.verdict.reason for candidate in outcome.candidates[1:]} == {"repeated"}


def test_a_snippet_of_several_chunks_is_rejected(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    class Snippets(StubGenerator):
        def drafts(self, chunks: Chunks, requests: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
            for position, request in enumerate(requests):
                own = chunks.texts[request.bundle.goldens[0]]
                yield position, Draft(own if position % 2 else own[: len("chunk number 1")])

    outcome = synthesize(
        create_synthesis(Snippets(possible_types=frozenset({"exact_snippet"})), count=10), store, journal
    )
    assert {len(candidate.draft.query) > 20 for candidate in outcome.accepted} == {True}
    assert "also elsewhere" in {candidate.verdict.reason for candidate in outcome.candidates}


def test_finished_batches_are_reused_after_a_kill(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BATCH", 16)
    generator = StubGenerator(patience=40)
    with pytest.raises(KeyboardInterrupt):
        synthesize(create_synthesis(generator), store, journal)
    again = StubGenerator()
    outcome = synthesize(create_synthesis(again), store, journal)
    assert not set(again.calls) & set(generator.calls[:32])
    fresh = synthesize(
        create_synthesis(StubGenerator(), cache=Caching(generation=False, validation=False)), store, journal
    )
    assert outcome.candidates == fresh.candidates


def test_queries_are_generated_again_without_the_cache(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    synthesize(create_synthesis(StubGenerator()), store, journal)
    synthesize(create_synthesis(cached := StubGenerator()), store, journal)
    synthesize(create_synthesis(uncached := StubGenerator(), cache=Caching(generation=False)), store, journal)
    assert (len(cached.calls), len(uncached.calls) >= 50) == (0, True)


def test_no_query_is_paid_for_twice_after_a_budget_ends(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal, tmp_path: Path
) -> None:
    def chat(budget: int) -> Scripted:
        return Scripted(lambda question, before: f"what is it about {abs(hash(question)) % 10**9}", budget=budget)

    few, medium = {"count": 30}, ("medium",)
    poor, rich, alone = chat(11), chat(1000), chat(1000)
    with pytest.raises(ChatError, match="all have been made"):
        synthesize(create_synthesis(ByModel(llm=poor, types=medium), **few), store, journal)
    outcome = synthesize(create_synthesis(ByModel(llm=rich, types=medium), **few), store, Journal(journal.file))
    afresh = Journal(tmp_path / "another.jsonl")
    uncached = create_synthesis(ByModel(llm=alone, types=medium), cache=Caching(generation=False), **few)
    uninterrupted = synthesize(uncached, store, afresh)
    assert outcome.candidates == uninterrupted.candidates
    assert len(poor.asked) + len(rich.asked) == len(alone.asked)
    assert not set(poor.asked) & set(rich.asked)


def test_bad_input_is_refused_before_any_work(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal, tmp_path: Path
) -> None:
    def refused(message: str, generator: Generator, **more: Any) -> None:
        with pytest.raises(ConfigError, match=message):
            synthesize(create_synthesis(generator, **more), store, journal)

    def of(rows: list[dict[str, Any]]) -> ChunkSource:
        path = write_chunks(tmp_path / "bad.jsonl", rows)
        return ChunkSource(path=path, encoder=LSAEncoder(), chunking=Whole())

    rows = list_rows(scatter_chunks(6, 3))
    alone = [{**row, "doc_id": "d", "chunk_id": str(i)} for i, row in enumerate(rows)]
    alike = [{**row, "embedding": [1, i / 20]} for i, row in enumerate(rows)]
    refused("all 6 chunks are from one document", StubGenerator(), source=of(alone))
    laxer = {"checks": Checks(duplicate_similarity=1.0), "selection": BundleSelection(golden_similarity=0.9)}
    refused("no chunk has a distractor", StubGenerator(), source=of(alike), **laxer)
    refused(r"0 of 60 chunks pass \(too short 60\), but chunks", StubGenerator(), checks=Checks(min_tokens=500))
    twins = [{**row, "embedding": [1, 2]} for row in rows]
    refused(r"1 of 6 chunks pass \(near-duplicate 5\), but chunks of at least two", StubGenerator(), source=of(twins))
    no_words = Deterministic(types=("low_overlap",))
    refused("Deterministic cannot generate low_overlap queries; choose from", no_words)
    refused("types: 'lengthy' is not a query type", StubGenerator(types=("lengthy",)))
