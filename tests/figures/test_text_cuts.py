"""What an encoder cuts is said in the terminal, in reports, in MLflow and in the record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.figures.logged import prepare_store, read_figures, run_logged
from tests.figures.planted import write_lines

LIMIT = 256  # tokens that all-MiniLM-L6-v2 reads; "ship" is one token, and a text has one before and one after it
DOCUMENTS, QUERIES = (10, 300, 400), (3, 258, 4, 300)
EXPECTED = {
    "documents_cut": 2,
    "documents_tokens": 12 + 302 + 402,
    "documents_tokens_unread": 302 + 402 - 2 * LIMIT,
    "queries_cut": 2,
    "queries_tokens": 5 + 260 + 6 + 302,
    "queries_tokens_unread": 260 + 302 - 2 * LIMIT,
}
WARNINGS = [
    "the model cut 2 of 3 documents, which are longer than it reads: 26.8% of the tokens of all documents were not read"
    "; split documents (chunking=tokens), or choose a model that reads more",
    "the model cut 2 of 4 queries, which are longer than it reads: 8.7% of the tokens of all queries were not read"
    "; shorten the queries, or choose a model that reads more",
]


def test_an_evaluation_says_what_the_encoder_cut(
    migrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare_store(migrated, tmp_path)
    write_lines(tmp_path / "d.jsonl", ({"id": f"d{n}", "text": "ship " * n} for n in DOCUMENTS))
    write_lines(tmp_path / "q.jsonl", ({"id": f"q{n}", "text": "ship " * n, "gold": ["d10"]} for n in QUERIES))
    run_logged(
        tmp_path, "retriever=dense", "encoder=minilm", "dataset=jsonl", "dataset.documents=d.jsonl",
        "dataset.queries=q.jsonl",
    )  # fmt: skip
    figures = read_figures(tmp_path)["dense"]
    assert {name: figures[name] for name in EXPECTED} == EXPECTED
    shown = " ".join(capsys.readouterr().out.split())
    (record,) = tmp_path.rglob("result.json")
    (report,) = tmp_path.rglob("report.md")
    for warning in WARNINGS:
        assert warning in shown
        assert warning in json.loads(record.read_text())["warnings"]
        assert warning in report.read_text()
