"""Chunkings are ranked by measures of words if gold is spans, because each has other gold chunks."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from retrievers.lexical.bm25 import BM25
from runner.__main__ import main
from runner.comparison.comparability import NotComparable
from runner.comparison.compare import TableStatistics, compare_results
from runner.datasets.beir import Beir
from runner.datasets.chunking import Chunking, Tokens
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore

DOCUMENTS = {
    "d1": "The tower is old. It shines for ships at night. It is open on Sundays.",
    "d2": "Ferries leave for the islands every hour. None leaves on Sundays at night.",
    "d3": "A museum of ships and ferries. The entry is free on Sundays.",
}
SPANS = [
    ("q1", "ships at night", "d1", "It shines for ships at night."),
    ("q2", "islands ferry", "d2", "Ferries leave for the islands every hour."),
    ("q3", "free on Sundays", "d3", "The entry is free on Sundays."),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, a dataset of three documents with a gold span each."""
    folder = tmp_path / "made"
    folder.mkdir()
    monkeypatch.chdir(folder)
    tables = {
        "corpus": [{"_id": name, "text": text} for name, text in DOCUMENTS.items()],
        "queries": [{"_id": query, "text": text} for query, text, *_ in SPANS],
        "spans": [{"query_id": query, "doc_id": document, "quote": quote} for query, _, document, quote in SPANS],
    }
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return folder


def evaluate(folder: Path, chunking: Chunking, **settings: object) -> Result:
    source = Beir(path=str(folder), gold="spans", spans=str(folder / "spans.jsonl"))
    metrics = MetricSettings(**{"k_values": (1, 10), **settings}).add_token_measures()  # type: ignore[arg-type]  # its settings
    config = {"dataset": {"gold": "spans", "chunking": {"_target_": "x.Tokens", "size": chunking.size}}}  # type: ignore[attr-defined]  # Tokens
    experiment = Experiment(str(chunking), "bm25", BM25(), source, metrics, config, {}, chunking=chunking)
    return Bench(DiskStore(folder / "cache")).evaluate(experiment)


COMMAND = [
    "-m", "dataset=beir", "dataset.path=../made", "dataset.gold=spans", "dataset.spans=spans.jsonl", "retriever=bm25",
    "chunking=tokens", "chunking.size=4,12", "chunking.overlap=0", "tracking=none", "sweep.backend=sequential",
]  # fmt: skip


def test_a_sweep_refuses_to_rank_chunkings_by_their_chunks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "metrics.token_budgets=[12,24]"]) != 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "metrics.primary: nDCG@10 cannot rank chunkings with gold=spans" in shown
    assert "(Tokens(size=4, overlap=0), Tokens(size=12, overlap=0))" in shown
    assert """'metrics.primary="TokenR@tokens=24"'""" in shown


def test_a_sweep_ranks_chunkings_by_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "metrics.token_budgets=[8]", 'metrics.primary="TokenR@tokens=8"']) == 0
    shown = capsys.readouterr().out
    small, large = (evaluate(folder, Tokens(size=size, overlap=0), token_budgets=(8,)) for size in (4, 12))
    means = [result.means["TokenR@tokens=8"] for result in (small, large)]
    assert 0 < means[0] != means[1] < 1
    assert all(f"{mean:.4f}" in shown for mean in means)


def test_one_chunking_may_be_ranked_by_chunks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = [*(argument for argument in COMMAND if "size" not in argument), "chunking.size=4", "retriever.k1=0.9,1.2"]
    assert main(one) == 0
    assert "nDCG@10" in capsys.readouterr().out


def test_results_of_two_chunkings_are_compared_by_words_only(folder: Path) -> None:
    results = [evaluate(folder, Tokens(size=size, overlap=0), token_budgets=(8,)) for size in (4, 12)]
    refused = r"nDCG@10 cannot rank chunkings with gold=spans.*\(Tokens size=4, Tokens size=12\)"
    with pytest.raises(NotComparable, match=refused):
        compare_results(results, TableStatistics())
    compared = compare_results(results, TableStatistics(), primary="TokenR@tokens=8")
    assert {name.partition("@")[0] for name in compared.table} == {"TokenR", "TokenP", "TokenIoU"}
    assert any("because each chunking has other gold chunks" in note for note in compared.notes)
    assert compare_results(results[:1] * 2, TableStatistics()).primary == "nDCG@10"


def test_a_budget_beyond_the_search_depth_is_a_warning_with_the_cause_and_a_depth(folder: Path) -> None:
    """Two hits return 5 to 8 words: of 30 words, 12 hits of the shortest kind."""
    (warning,) = evaluate(
        folder, Tokens(size=4, overlap=0), token_budgets=(30,), depth=2, primary="nDCG@2", k_values=(1, 2)
    ).warnings
    assert warning.startswith("3 of 3 queries return fewer than 30 words within the search depth of 2, because their")
    assert warning.endswith("hits have 3.5 words on average, so measures @tokens=30 end early; set metrics.depth=12")
