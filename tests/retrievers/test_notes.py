"""Notes are values until they are saved as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.composed.fusion import Hybrid
from retrievers.composed.multistage import complete_rankings
from retrievers.lexical.bm25 import BM25
from retrievers.notes import QueryLog, QueryNote
from retrievers.store import NoStore, Store
from runner.evaluation.bench import Bench
from runner.evaluation.records import load_record, save_record
from runner.store import disk
from runner.store.disk import DiskStore
from tests.evaluation.test_bench import experiment

STEP = {"query": "caf\u00e9", "found": ["b", "a"], "reply": None, "tokens_in": 7, "cost": 1e-07, "seconds": 0.1}
JSON = '{"query": "caf\\u00e9", "found": ["b", "a"], "reply": null, "tokens_in": 7, "cost": 1e-07, "seconds": 0.1}'
"""The step as it is saved in records, also by earlier versions."""


@dataclass(frozen=True)
class Stepping:
    """Finds nothing, and notes a step for each query but the second, with the note of its base."""

    def index(self, corpus: Corpus, store: Store) -> Stepping:
        return self

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        base = replace(create_empty_rankings(len(queries), k), notes={0: QueryNote({"llm": STEP})})
        logs = [QueryLog() if row == 1 else QueryLog(note=QueryNote({"steps": [STEP]})) for row in range(len(queries))]
        return complete_rankings(create_empty_rankings(len(queries), k), [base, base], logs)


def test_a_record_has_the_notes_of_all_stages_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = Hybrid({"bm25": BM25(), "steps": Stepping()})
    both = f'{{"steps": {{"steps": [{JSON}], "base": [{{"llm": {JSON}}}, {{"llm": {JSON}}}]}}}}'
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", -1)  # nothing is too cheap
    for _ in range(2):  # then from the store
        result = Bench(DiskStore(tmp_path / "store")).evaluate(experiment(retriever))
        assert result.queries.notes == [both, "", *[f'{{"steps": {{"steps": [{JSON}]}}}}'] * 2]
    save_record(result, tmp_path / "record")
    assert list(load_record(tmp_path / "record").queries.notes) == list(result.queries.notes)


def test_a_note_without_a_base_stays_as_it_is() -> None:
    assert QueryNote({"a": 1}).with_base([]) == QueryNote({"a": 1})
    assert not QueryNote().with_base([])
    assert QueryNote({"a": 1}) and not QueryNote()
    assert QueryNote().with_base([QueryNote()]).to_json() == '{"base": [{}]}'
