"""Queries that nobody judged are kept for judging, and nothing that needs judgments is said of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runner.__main__ import main

WORDS = ("lamp", "ferry", "gull", "storm")
DATA = ("dataset=beir", "dataset.path=data", "dataset.unjudged_queries=keep", "tracking=none")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder: four queries, whose words are in a document each, without judgments."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/qrels").mkdir(parents=True)
    for name, text in (("corpus", "the {} at night"), ("queries", "{}")):
        lines = (json.dumps({"_id": word, "text": text.format(word)}) for word in WORDS)
        (tmp_path / f"data/{name}.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_without_judgments_no_query_is_a_false_positive(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*DATA]) == 0
    shown = capsys.readouterr().out
    assert "4 unjudged" in shown
    for claim in ("false positive", "true negative", "TN rate", "Queries without gold", "Missed queries", "threshold"):
        assert claim not in shown


def test_without_judgments_no_combination_is_compared(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    assert main(["-m", "retriever.k1=0.9,1.2", *DATA]) == 0
    shown = capsys.readouterr().out
    assert "data (test), 4 documents, 4 queries without gold: 2 combinations" in shown
    assert re.findall(r"^ *\d  (k1=\S+) +– +– ", shown, re.MULTILINE) == ["k1=0.9", "k1=1.2"]
    for claim in ("1.000", "0/0/0", "= not significantly different"):
        assert claim not in shown


def test_only_queries_known_to_have_no_gold_are_negatives(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One has gold, one was judged and has none, two are unjudged."""
    (here / "data/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nlamp\tlamp\t1\nferry\tferry\t0\n")
    assert main([*DATA, "junit=junit.xml", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert (result["abstention"]["no_result"], result["abstention"]["answerable"]) == (1, 1)
    junit = Path("junit.xml").read_text()
    assert (junit.count("<skipped"), junit.count("<failure")) == (2, 1)
