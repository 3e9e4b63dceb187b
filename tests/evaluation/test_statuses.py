"""The status of a query counts its gold up to the cutoff of the primary measure, wherever a status is shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from runner.__main__ import main
from runner.comparison.insights import find_insights
from runner.evaluation.records import load_record
from runner.metrics.formulas import find_missed_cutoff
from tests.pages.reading import Page, read_explorer_data

RANKS = (1, 1, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 15, 20, 0)
"""The rank of the gold of each query; 0 if it is not found."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: a golden dataset of 15 queries, and rankings of 20 items for each."""
    monkeypatch.chdir(tmp_path)
    items = [f"i{place:02d}" for place in range(20)]
    (tmp_path / "items.jsonl").write_text("".join(f'{{"item_id": "{i}", "text": "a lamp"}}\n' for i in [*items, "g"]))
    queries = [
        {"query_id": f"q{n:02d}", "query_text": "lamp", "query_type": "x", "expected_count": 1,
         "expected_items": [{"item_id": "g", "relevance": "high"}]}
        for n in range(len(RANKS))
    ]  # fmt: skip
    (tmp_path / "queries.json").write_text(json.dumps({"queries": queries}))
    with (tmp_path / "x.trec").open("w") as run:
        for n, rank in enumerate(RANKS):
            hits = [*items[: rank - 1], "g", *items[rank - 1 :]] if rank else items
            run.writelines(f"q{n:02d} Q0 {hit} {at} {100 - at} x\n" for at, hit in enumerate(hits[:20], start=1))
    return tmp_path


def evaluate(*words: str) -> None:
    dataset = ["dataset=golden_json", "dataset.path=queries.json", "dataset.items=items.jsonl"]
    dataset += ["dataset.text_fields=[text]", "dataset.expected_items=21"]
    run = ["retriever=run", "retriever.path=x.trec", "junit=junit.xml", "tracking.background=false"]
    assert main([*dataset, *run, *words]) == 0


def find_file(folder: Path, pattern: str) -> Path:
    (file,) = (folder / "mlruns").rglob(pattern)
    return file


@pytest.mark.parametrize(
    ("primary", "counts", "line"),
    [
        ("nDCG@10", {"pass": 3, "partial": 7, "fail": 5},
         "3 pass (rank 1), 7 partial (ranks 2 to 10), 5 fail (not in the first 10)"),
        ("R@5", {"pass": 3, "partial": 4, "fail": 8},
         "3 pass (rank 1), 4 partial (ranks 2 to 5), 8 fail (not in the first 5)"),
    ],
)  # fmt: skip
def test_every_output_counts_gold_to_the_cutoff_of_the_primary_measure(
    here: Path, capsys: pytest.CaptureFixture[str], primary: str, counts: Mapping[str, int], line: str
) -> None:
    evaluate(f"metrics.primary={primary}")
    assert line in " ".join(capsys.readouterr().out.split())
    record = load_record(find_file(here, "result.json").parent)
    assert Counter(record.queries.statuses) == counts
    assert {failure.query for failure in find_insights(record).failures} == {
        place for place, status in enumerate(record.queries.statuses) if status == "fail"
    }
    html = find_file(here, "report.html").read_text()
    (status,) = (column for column in read_explorer_data(html)["columns"] if column["name"] == "status")
    assert Counter(status["values"]) == counts
    assert line.removeprefix("3 ").partition(",")[0] in status["definition"]
    legend = " ".join(Page(html).texts)
    assert all(part in legend for part in line.split(", "))
    assert f"- **Outcome**: {line}" in find_file(here, "report.md").read_text()
    golden = json.loads(find_file(here, "eval_*_report.json").read_text())
    assert golden["summary"]["statuses"] == counts
    assert Counter(query["status"] for query in golden["query_results"]) == counts
    assert f"**Queries**: {line}" in find_file(here, "eval_*_report.md").read_text()
    suite = ElementTree.parse(here / "junit.xml").getroot()
    assert int(suite.get("failures", 0)) == counts["fail"]


@pytest.mark.parametrize(
    ("primary", "cutoff"),
    [("nDCG@10", 10), ("R@100", 100), ("nDCG@3", 3), ("P@1", 10), ("RR", 10), ("AP", 10), ("AP@100", 10),
     ("RR@5", 5), ("TokenR@5", 5), ("TokenR@tokens=256", 10), ("nDCG(dcg='exp-log2')@20", 20)],
)  # fmt: skip
def test_the_cutoff_of_misses_is_that_of_the_primary_measure_or_ten(primary: str, cutoff: int) -> None:
    assert find_missed_cutoff(primary) == cutoff
