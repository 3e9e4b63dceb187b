"""Judgments of chunks become spans; the export reads back as the same gold, and a report lists what was lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.chunking import Tokens
from runner.datasets.dataset import Dataset
from runner.datasets.exporting import export
from runner.datasets.span_conversion import convert_judgments, read_documents

DOCUMENTS = {
    "tower": "The tower is old.\n\nIt shines for ships at night.",
    "ferry": "Ferries leave every hour.\n\nTickets are sold on board of all ships at night.",
}
CHUNKS = {
    "tower#0": "The tower is old.",
    "tower#1": "It shines for ships at night.",
    "x": "Ferries leave every hour.",
    "ferry#1": "Tickets are sold on board of many ships at night.",
    "ferry#2": "A museum of ships.",
}
QRELS = {"q1": {"tower#1": 2, "x": 1, "tower#0": 0}, "q2": {"ferry#1": 1}, "q3": {"ferry#2": 1}}


@pytest.fixture
def chunks() -> Dataset:
    return Dataset.of(CHUNKS, {query: f"about {query}" for query in QRELS}, QRELS)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "whole.jsonl"
    path.write_text("".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in DOCUMENTS.items()))
    return path


def test_chunk_judgments_become_spans_with_a_report(chunks: Dataset, documents: Path, tmp_path: Path) -> None:
    dataset = convert_judgments(chunks, read_documents(str(documents)), 0.8)
    written = export(dataset, "spans", tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "spans.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["doc_id"], row["grade"], row["quote"]) for row in rows] == [
        ("q1", "tower", 2, "It shines for ships at night."),
        ("q1", "ferry", 1, "Ferries leave every hour."),
        ("q2", "ferry", 1, "Tickets are sold on board of all ships at night."),
    ]
    report = json.loads((tmp_path / "out" / "spans.report.json").read_text())
    assert report["spans"] == 4 and report["methods"] == {"exact": 2, "fuzzy": 1, "lost": 1}
    assert [(row["query_id"], row["method"]) for row in report["lost_or_inexact"]] == [("q3", "lost"), ("q2", "fuzzy")]
    assert any("1 spans were not found" in note and "1 queries that have no other" in note for note in written.notes)
    again = Beir(
        **{key.removeprefix("dataset."): value for key, value in written.settings.items() if "." in key}
    ).load()
    assert list(again.queries.ids) == ["q1", "q2"]
    assert again.judgments.spans is not None and again.judgments.spans.starts.tolist() == [row["start"] for row in rows]
    assert again.split_documents(Tokens(size=5)).judgments.grades.max() == 2


def test_spans_are_exported_only_as_spans(chunks: Dataset, documents: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="format=spans: the gold is documents"):
        export(chunks, "spans", tmp_path / "out")
    with pytest.raises(DatasetError, match=r"format=beir: cannot store the spans .*choose format=spans"):
        export(convert_judgments(chunks, read_documents(str(documents)), 0.8), "beir", tmp_path / "out")
    with pytest.raises(DatasetError, match="documents=missing: no such file or folder"):
        read_documents("missing")


def test_the_command_converts_the_chunks_of_a_dataset(
    chunks: Dataset, documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(chunks, "beir", tmp_path / "chunks")
    words = ["export", "dataset=beir", f"dataset.path={tmp_path / 'chunks'}", f"documents={documents}"]
    assert main([*words, "format=spans", f"output={tmp_path / 'out'}"]) == 0
    shown = capsys.readouterr()
    assert "4 spans: 2 exact, 1 fuzzy, 1 lost" in shown.out + shown.err
    assert "dataset.gold=spans" in shown.out
    assert main([*words, f"output={tmp_path / 'other'}"]) == 2
    assert "used only with format=spans" in capsys.readouterr().err
