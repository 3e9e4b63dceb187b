"""The report of a dataset's quality says what was found, as a page that needs nothing else, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from runner.features.inspect.finding import Finding
from runner.features.inspect.inspection import Inspection
from runner.features.inspect.rankings import Findability
from runner.features.inspect.report import specs as inspection_specs
from runner.features.inspect.report import tables
from runner.features.inspect.report.page import inspection_page
from runner.pages import console
from tests.pages.reading import EVIL, Page, read_explorer_data

N = 40


def inspection(findings: Sequence[Finding] = (), names: Sequence[str] = ("bm25", "dense")) -> Inspection:
    """Return an inspection with seeded numbers."""
    rng = np.random.default_rng(0)
    first_gold = rng.integers(0, 12, (len(names), N))
    return Inspection(
        name="harbour",
        split="test",
        fingerprint="f1" * 16,
        counts={"documents": 120, "queries": N, "judgments": 80, "queries with gold": 36},
        grades={0: 30, 1: 40, 3: 10},
        types={"wide": 10, "narrow": 30},
        golds=rng.integers(0, 30, N),
        words={"documents": rng.integers(0, 4000, 120), "queries": rng.integers(3, 12, N)},
        gold_overlap=np.append(rng.random(N - 1), np.nan),
        chance_overlap=rng.random(N) / 5,
        findability=Findability(
            names,
            100,
            10,
            np.arange(N) < 36,
            first_gold,
            np.zeros(N, dtype=np.bool_),
            [0.75] * len(names),
            [0.25] * len(names),
            [],
        ),
        lacking=["no other splits: leakage cannot be checked"],
        findings=findings,
    )


FINDINGS = [
    Finding(
        name="suspicious gold",
        gravity="error",
        count=3,
        of=36,
        text="Three of them.",
        remedy="Judge.",
        examples=[{"query": "q1", "text": EVIL}],
    ),
    Finding(
        name="near-duplicate documents",
        gravity="info",
        count=2,
        of=120,
        text="Two.",
        remedy="Keep one.",
        examples=[{"documents": ["d1", "d2"]}],
    ),
]


def list_plots(html: str) -> list[str]:
    return [plot["id"] for plot in read_explorer_data(html)["plots"]]


def list_bars(words: NDArray[np.int64]) -> list[dict[str, Any]]:
    bars: list[dict[str, Any]] = inspection_specs.build_lengths(words, "queries")["layer"][0]["data"]["values"]
    return bars


def test_the_findings_are_shown_worst_first_with_what_to_do() -> None:
    table = tables.findings_table(inspection(FINDINGS))
    assert table.texts()[0] == ["suspicious gold", "error", "3 of 36", "Three of them.", "Judge."]
    assert tables.verdict(inspection(FINDINGS)) == "2 findings: 1 error, 1 info."
    assert tables.verdict(inspection()) == "No problems found."


@pytest.mark.parametrize(("columns", "remedy"), [("60", False), ("80", True)])
def test_a_narrow_terminal_breaks_no_short_word_and_shows_what_to_do(
    columns: str, remedy: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = "Three of the documents that are above gold are as much like it."
    advice = "Judge these documents, where one is right."
    finding = Finding(name="near-duplicate documents", gravity="warning", count=120, of=120, text=text, remedy=advice)
    console.show_table(tables.findings_table(inspection([finding])))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= int(columns)
    assert "warning" in out
    assert "120 of 120" in out
    assert ("remedy" in out.splitlines()[1].split()) == remedy


def test_the_page_holds_it_all_and_loads_nothing() -> None:
    html = inspection_page(inspection(FINDINGS))
    page = Page(html)
    assert page.loaded == []
    assert EVIL in page.texts
    assert "<script>alert" not in html
    assert list_plots(html) == ["retrievers", "overlap", "gold", "words-0", "words-1", "types"]
    assert [row[0] for row in page.table("retriever")] == ["bm25", "dense"]
    assert len(page.ids) == len(set(page.ids))
    assert "d1; d2" in page.texts
    assert inspection_page(inspection(FINDINGS)) == html


@pytest.mark.parametrize("words", [[0, 0], [7], [1, 90_000], [5, 6, 6]])
def test_any_lengths_are_drawn(words: list[int]) -> None:
    of = replace(inspection(), words={"documents": np.array(words)}, golds=np.zeros(1, np.int64))
    assert list_plots(inspection_page(of)) == ["retrievers", "overlap", "gold", "words-0", "types"]
    bars = list_bars(np.array(words))
    assert sum(bar["count"] for bar in bars) == len(words)
    assert bars[0]["start"] <= max(min(words), 1) and bars[-1]["end"] > max(words)


def test_a_dataset_without_retrievers_types_or_overlap_has_a_page_without_them() -> None:
    of = replace(inspection(names=()), types={}, gold_overlap=np.full(N, np.nan))
    html = inspection_page(of)
    assert list_plots(html) == ["gold", "words-0", "words-1"]
    assert "Query types" not in Page(html).texts


def test_the_json_has_the_same_numbers() -> None:
    of = inspection(FINDINGS)
    read = orjson.loads(tables.as_json(of))
    assert read["counts"] == of.counts
    assert read["grades"] == {"0": 30, "1": 40, "3": 10}
    assert read["findings"][0]["examples"] == [{"query": "q1", "text": EVIL}]
    assert math.isclose(read["findings"][0]["share"], 3 / 36)
    assert read["distributions"]["words in documents"]["max"] == int(of.words["documents"].max())
    missed = (of.findability.first_gold[0] == 0)[:36].sum()
    assert read["retrievers"]["bm25"] == {"success@10": 0.75, "judged@10": 0.25, "without_gold": missed}


@pytest.mark.parametrize("most", [4, 9, 20, 37])
def test_the_bars_of_lengths_hold_whole_words_and_are_equally_wide(most: int) -> None:
    bars = list_bars(np.arange(2, most + 1))
    assert len({bar["end"] - bar["start"] for bar in bars}) == 1
    assert all(edge == int(edge) for bar in bars for edge in (bar["start"], bar["end"]))


def test_the_median_of_lengths_is_one_that_there_is() -> None:
    """Half of a word would be told as a whole one, beside a line between two bars; the table has the same."""
    line = inspection_specs.build_lengths(np.array([7, 8]), "queries")["layer"][1]
    assert line["layer"][1]["encoding"]["text"]["value"] == "median 7"
    assert line["data"]["values"] == [{"median": 7}]


def test_many_gold_documents_are_counted_together() -> None:
    assert inspection_specs.count_golds(np.array([0, 2, 2])) == (["0", "1", "2"], [1, 0, 2])
    names, counts = inspection_specs.count_golds(np.array([1, 3, 5]), most=3)
    assert (names, counts) == (["0", "1", "2", "3 or more"], [0, 1, 0, 2])
    assert inspection_specs.count_golds(np.array([3]), most=3)[0][-1] == "3"
