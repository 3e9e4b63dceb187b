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
from runner.features.synthesize.pipeline import Caching, Candidate, Synthesis, synthesize
from runner.features.synthesize.sampling import Sampling
from runner.features.synthesize.selection import BundleSelection
from runner.features.synthesize.validation import Validation
from runner.llm.journal import Journal
from runner.store.disk import DiskStore
from tests.evaluation.chats import Scripted
from tests.features.synthesize.worlds import Teller, rows_of, scattered, write_chunks


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store on disk that keeps even what is quick to make."""
    monkeypatch.setattr("runner.store.disk.WORTH_KEEPING_S", 0.0)
    return DiskStore(tmp_path / "store")


@pytest.fixture
def create_synthesis(tmp_path: Path) -> Callable[..., Synthesis]:
    """Return a function that creates settings, by default for 60 chunks of 20 documents."""
    path = write_chunks(tmp_path / "chunks.jsonl", rows_of(scattered(60, 20)))

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


def describe_candidate(made: Candidate) -> tuple[Any, ...]:
    return made.request, made.draft, made.verdict


def test_there_are_as_many_queries_as_asked_for_in_the_order_in_which_they_were_wanted(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    teller = Teller(barren=frozenset(range(0, 60, 2)))
    outcome = synthesize(create_synthesis(teller), store, journal)
    assert len(outcome.accepted) == 50
    assert not outcome.exhausted
    assert {made.verdict.reason for made in outcome.candidates} <= {"", "barren", "beyond count"}
    assert all(f" w{made.request.bundle.goldens[0]} " in made.draft.query for made in outcome.accepted)
    more = synthesize(create_synthesis(Teller(barren=frozenset(range(0, 60, 2))), count=60), store, journal)
    assert [describe_candidate(made) for made in more.accepted[:50]] == [
        describe_candidate(made) for made in outcome.accepted
    ]


def test_where_the_input_is_exhausted_all_it_gives_is_kept_and_that_is_said(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    outcome = synthesize(create_synthesis(Teller(barren=frozenset(range(30))), count=500), store, journal)
    assert outcome.exhausted
    assert len(outcome.candidates) == 60 * 2  # two types of each chunk: no bundle has two goldens to compare
    assert len(outcome.accepted) == 30 * 2


def test_without_a_count_each_bundle_has_one_turn(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    one_each = Sampling(min_types=1, max_types=1)
    outcome = synthesize(create_synthesis(Teller(), count=None, sampling=one_each), store, journal)
    assert len(outcome.accepted) == 60
    assert not outcome.exhausted


def test_a_query_that_was_there_before_is_rejected(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    class Same(Teller):
        def drafts(self, chunks: Chunks, wanted: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
            return ((i, Draft("The  SAME" if i else "the same")) for i, _ in super().drafts(chunks, wanted, journal))

    outcome = synthesize(create_synthesis(Same()), store, journal)
    assert [made.draft.query for made in outcome.accepted] == ["the same"]
    assert {made.verdict.reason for made in outcome.candidates[1:]} == {"repeated"}


def test_a_snippet_that_other_chunks_have_too_is_rejected(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    class Snippets(Teller):
        def drafts(self, chunks: Chunks, wanted: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
            for position, want in enumerate(wanted):
                own = chunks.texts[want.bundle.goldens[0]]
                yield position, Draft(own if position % 2 else own[: len("chunk number 1")])

    outcome = synthesize(
        create_synthesis(Snippets(possible_types=frozenset({"exact_snippet"})), count=10), store, journal
    )
    assert {len(made.draft.query) > 20 for made in outcome.accepted} == {True}
    assert "also elsewhere" in {made.verdict.reason for made in outcome.candidates}


def test_a_kill_in_the_middle_changes_nothing_and_finished_batches_are_not_made_again(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BATCH", 16)
    teller = Teller(patience=40)
    with pytest.raises(KeyboardInterrupt):
        synthesize(create_synthesis(teller), store, journal)
    again = Teller()
    outcome = synthesize(create_synthesis(again), store, journal)
    assert not set(again.asked) & set(teller.asked[:32])
    fresh = synthesize(create_synthesis(Teller(), cache=Caching(generation=False, validation=False)), store, journal)
    assert [describe_candidate(made) for made in outcome.candidates] == [
        describe_candidate(made) for made in fresh.candidates
    ]


def test_what_was_made_is_made_again_where_its_switch_is_off(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal
) -> None:
    synthesize(create_synthesis(Teller()), store, journal)
    synthesize(create_synthesis(kept := Teller()), store, journal)
    synthesize(create_synthesis(anew := Teller(), cache=Caching(generation=False)), store, journal)
    assert (len(kept.asked), len(anew.asked) >= 50) == (0, True)


def test_a_budget_that_ends_pays_for_no_query_twice(
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
    assert [describe_candidate(made) for made in outcome.candidates] == [
        describe_candidate(made) for made in uninterrupted.candidates
    ]
    assert len(poor.asked) + len(rich.asked) == len(alone.asked)
    assert not set(poor.asked) & set(rich.asked)


def test_bad_input_is_refused_before_anything_is_made(
    create_synthesis: Callable[..., Synthesis], store: Store, journal: Journal, tmp_path: Path
) -> None:
    def refused(message: str, generator: Generator, **more: Any) -> None:
        with pytest.raises(ConfigError, match=message):
            synthesize(create_synthesis(generator, **more), store, journal)

    def of(rows: list[dict[str, Any]]) -> ChunkSource:
        path = write_chunks(tmp_path / "bad.jsonl", rows)
        return ChunkSource(path=path, encoder=LSAEncoder(), chunking=Whole())

    rows = rows_of(scattered(6, 3))
    alone = [{**row, "doc_id": "d", "chunk_id": str(i)} for i, row in enumerate(rows)]
    alike = [{**row, "embedding": [1, i / 20]} for i, row in enumerate(rows)]
    refused("all 6 chunks are from one document", Teller(), source=of(alone))
    laxer = {"checks": Checks(duplicate_similarity=1.0), "selection": BundleSelection(golden_similarity=0.9)}
    refused("no chunk has a distractor", Teller(), source=of(alike), **laxer)
    refused(r"0 of 60 chunks pass \(too short 60\), but chunks", Teller(), checks=Checks(min_tokens=500))
    twins = [{**row, "embedding": [1, 2]} for row in rows]
    refused(r"1 of 6 chunks pass \(near-duplicate 5\), but chunks of at least two", Teller(), source=of(twins))
    no_words = Deterministic(types=("low_overlap",))
    refused("Deterministic cannot generate low_overlap queries; choose from", no_words)
    refused("types: 'lengthy' is not a query type", Teller(types=("lengthy",)))
