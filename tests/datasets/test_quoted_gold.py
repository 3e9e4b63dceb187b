"""Quotes and places of a golden set as gold spans: with chunking, the chunks that contain them are the gold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.datasets.base import DatasetError
from runner.datasets.chunking import Sentences
from runner.datasets.dataset import Dataset
from runner.datasets.question_folder import QuestionFolder
from runner.datasets.tabular import Tabular

TOWER = """# Tower

The lighthouse shines for ships at night. It was built in 1875 by the harbour board.

## Visits

Tickets cost two euros. It is open on Sundays from ten to four.
"""
FERRY = "# Ferry\n\nFerries leave every hour. Tickets cost two euros. None leaves on Sundays at night.\n"


def load(folder: Path, golds: list[Any], **settings: Any) -> Dataset:
    """Load a folder with two documents, and a question with each gold."""
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "tower.md").write_text(TOWER)
    (folder / "docs" / "ferry.md").write_text(FERRY)
    rows = [{"question": f"Question {number}?", "reference_contexts": gold} for number, gold in enumerate(golds)]
    (folder / "golden.json").write_text(json.dumps(rows))
    source = QuestionFolder(path=str(folder / "docs"), questions=str(folder / "golden.json"), **settings)
    return source.load()


def list_passages(dataset: Dataset) -> list[list[str]]:
    """Return the text of each gold passage, by query."""
    spans = dataset.judgments.spans
    assert spans is not None
    passages: list[list[str]] = [[] for _ in dataset.queries.ids]
    for query, document, start, end in zip(spans.queries, spans.documents, spans.starts, spans.ends, strict=True):
        passages[query].append(dataset.corpus.texts[document][start:end])
    return passages


@pytest.mark.parametrize(
    ("gold", "passages"),
    [
        (["It was  built in 1875 by the Harbour board"], ["It was built in 1875 by the harbour board"]),
        (["Tickets cost two euros."], ["Tickets cost two euros", "Tickets cost two euros"]),
        ([{"file": "ferry.md", "quote": "Tickets cost two euros."}], ["Tickets cost two euros"]),
        (
            [{"file": "ferry.md", "quote": "None of them leaves on Sundays at night."}],
            ["None leaves on Sundays at night."],
        ),
        (["tower.md:3"], ["The lighthouse shines for ships at night. It was built in 1875 by the harbour board."]),
        (["docs/tower.md#visits"], [TOWER[TOWER.index("## Visits") :]]),
        (["ferry.md"], [FERRY]),
        (["ferry.pdf:3"], [FERRY]),
    ],
)
def test_a_quote_a_line_and_a_heading_are_passages(tmp_path: Path, gold: list[Any], passages: list[str]) -> None:
    assert list_passages(load(tmp_path, [gold], gold="spans")) == [passages]


def test_the_chunk_that_contains_a_quote_is_the_gold(tmp_path: Path) -> None:
    quotes = ["It was built in 1875 by the harbour board.", "It is open on Sundays from ten to four."]
    chunked = load(tmp_path, [quotes[:1], quotes[1:]], gold="spans").split_documents(Sentences(size=12, overlap=0))
    golds = [(query, chunked.corpus.texts[chunk]) for query, chunk, _ in chunked.judgments.list_rows()]
    assert [query for query, _ in golds] == [0, 1] and len(chunked.corpus) > 4
    assert all(quote in text for quote, (_, text) in zip(quotes, golds, strict=True))


def test_grades_of_quotes_are_those_of_their_passages(tmp_path: Path) -> None:
    gold = [{"text": "It was built in 1875", "grade": 3}, {"text": "Ferries leave every hour", "grade": 0}]
    dataset = load(tmp_path, [gold, []], gold="spans")
    assert [(query, grade) for query, _, grade in dataset.judgments.list_rows()] == [(0, 3)]
    assert len(dataset.queries) == 2  # the other has no answer


def test_a_text_in_several_places_is_announced(tmp_path: Path) -> None:
    golds = [["Tickets cost two euros."], ["It was built in 1875"]]
    whole, passages = load(tmp_path, golds).reading, load(tmp_path, golds, gold="spans").reading
    assert "(texts), each text as a whole document (dataset.gold=spans: as a passage), 1 text in several doc" in whole
    assert "(texts), each text as a passage, 1 text in several places, all of them gold" in passages


def test_a_quote_that_no_document_contains_is_refused_with_its_row(tmp_path: Path) -> None:
    golds = [["It was built in 1875"], ["It was never built by anybody at all"]]
    message = "1 of 2 spans were not found in their documents, for example .*golden.json, row 2, query 'q0002'"
    with pytest.raises(DatasetError, match=message):
        load(tmp_path, golds, gold="spans")
    kept = load(tmp_path, golds, gold="spans", unknown_judged="keep")
    assert kept.judgments.golds(2).tolist() == [1, 1] and len(kept.judgments.unknown_documents) == 1


def test_a_file_of_spans_wins_over_quotes(tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    spans.write_text(json.dumps({"query_id": "q0001", "doc_id": "ferry", "quote": "Ferries leave every hour."}))
    dataset = load(tmp_path, [["It was built in 1875"]], gold="spans", spans=str(spans))
    assert list_passages(dataset) == [["Ferries leave every hour."]]


def test_tables_have_passages_as_well(tmp_path: Path) -> None:
    (tmp_path / "documents.jsonl").write_text(json.dumps({"id": "ferry", "text": FERRY}) + "\n")
    (tmp_path / "queries.csv").write_text('id,question,quote\nq1,When?,"None leaves on Sundays at night."\n')
    source = Tabular(documents=str(tmp_path / "documents.jsonl"), queries=str(tmp_path / "queries.csv"), gold="spans")
    assert list_passages(source.load()) == [["None leaves on Sundays at night"]]


def test_evaluate_scores_the_chunks_that_contain_a_quote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(tmp_path, [["None leaves on Sundays at night."], ["It was built in 1875 by the harbour board."]])
    own = [f"dataset.path={tmp_path / 'docs'}", f"dataset.questions={tmp_path / 'golden.json'}", "dataset.gold=spans"]
    rows = json.loads((tmp_path / "golden.json").read_text())
    rows[0]["question"], rows[1]["question"] = "open on Sundays", "the harbour board"
    (tmp_path / "golden.json").write_text(json.dumps(rows))
    assert main(["dataset=folder", *own, "chunking=sentences", "chunking.size=12", "tracking=none"]) == 0
    printed = capsys.readouterr()
    assert "each text as a passage" in printed.err
    assert re.search(r"^RR +0.500 +0.750", printed.out, re.MULTILINE)  # another chunk is the best for the first
