"""A golden set drawn from traffic: what is masked, merged, drawn and covered, and what a second draw changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.__main__ import main
from runner.datasets.beir import Beir
from runner.datasets.traffic.masking import build_mask, passes_luhn
from runner.datasets.traffic.searches import ServedSearch
from runner.evaluation.represented import measure_over_searches
from runner.features.mine.traffic.draw import (
    QueryGroup,
    count_needed,
    draw_groups,
    estimate_coverage,
    merge_queries,
    stratify,
)
from tests.datasets.otlp import retrieval, span, thumb, write_spans
from tests.features.mine.worlds import read_rows

DAY_S = 24 * 3600


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to ada.l+x@mail.example.org now", "write to <email> now"),
        ("call +49 (0)170 123-4567 or 030 1234567", "call <phone> or <phone>"),
        ("card 4111 1111 1111 1111", "card <card>"),
        ("order 4111 1111 1111 1112", "order 4111 1111 1111 1112"),
        ("sk-proj1234567890abcd is my key", "<key> is my key"),
        ("error 404 in 2026-11-28 on 10 items", "error 404 in 2026-11-28 on 10 items"),
        ("iphone 0123 price", "iphone 0123 price"),
    ],
)
def test_personal_data_in_queries_is_masked_and_other_numbers_are_not(text: str, masked: str) -> None:
    assert build_mask({})(text) == masked


def test_masks_can_be_added_and_left_out() -> None:
    mask = build_mask({"phone": None, "order": r"ORD-\d+"})
    assert mask("a@b.de 030 1234567 ORD-77") == "<email> 030 1234567 <order>"
    assert build_mask(None)("a@b.de") == "a@b.de"
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression"):
        build_mask({"x": "("})


def test_the_check_digit_of_a_card_tells_it_from_other_numbers() -> None:
    assert [n for n in range(79927398710, 79927398720) if passes_luhn(str(n))] == [79927398713]


def search(session: str = "", start: int = 1, weight: float = 1.0) -> ServedSearch:
    return ServedSearch(b"t", b"s", "q", None, start, 1.0, "", "used", "", session, {}, weight)


def build_group(text: str, count: int, start: int = 1) -> QueryGroup:
    return QueryGroup(text, frozenset([text]), [search(start=start) for _ in range(count)])


def test_texts_of_nearly_the_same_words_are_one_query_with_the_most_frequent_text() -> None:
    texts = ["reset my password", "my password reset", "reset my password please", "refund"]
    groups = merge_queries(texts, [[search()], [search(), search()], [search()], [search()]], 0.75)
    assert [(group.text, len(group.texts), group.weight) for group in groups] == [
        ("my password reset", 3, 4.0), ("refund", 1, 1.0),
    ]  # fmt: skip


def test_as_many_queries_are_wanted_as_reliability_asks_for() -> None:
    assert count_needed(0.05, "nDCG@10") == 215
    assert count_needed(0.1, "nDCG") == 56


def test_each_query_is_drawn_by_its_share_of_the_searches() -> None:
    rng = np.random.default_rng(1)
    groups = [build_group(f"w{i} w{i % 7}", int(n), i) for i, n in enumerate(sorted(rng.zipf(1.6, 300).clip(max=400)))][
        ::-1
    ]
    strata = stratify(groups, clusters=4, seed=0)
    weights = np.array([group.weight for group in groups])
    values = np.random.default_rng(2).random(len(groups)) * (weights > 1)
    estimates, step = [], weights.sum() / 50
    for seed in range(400):
        drawn = draw_groups(groups, strata, 50, seed)
        assert set(np.unique(drawn)) <= {0, step, *weights[weights > step]}
        assert (drawn[weights > step] == weights[weights > step]).all()
        mean = measure_over_searches([{"represents": weight} for weight in drawn.tolist()], values)
        estimates.append(mean["over_searches"])
        assert mean["over_searches.low"] < mean["over_searches"] < mean["over_searches.high"]
    assert abs(np.mean(estimates) - np.average(values, weights=weights)) < 3 * np.std(estimates) / 20
    assert abs(np.average(values) - np.average(values, weights=weights)) > 9 * np.std(estimates) / 20
    for column in (strata.frequencies, strata.topics):
        for value in np.unique(column):
            assert abs(drawn[column == value].sum() - weights[column == value].sum()) < 9 * step
    assert set(strata.frequencies.tolist()) == {0, 1, 2} and set(strata.periods.tolist()) == {0, 1, 2, 3}
    assert draw_groups(groups[:3], strata, 50, 0).tolist() == weights[:3].tolist()


def test_coverage_has_an_interval_over_sessions() -> None:
    alone = [(search(f"s{i}"), i % 4 > 0) for i in range(400)]
    coverage = estimate_coverage(alone)
    assert coverage.share == 0.75
    assert (coverage.low, coverage.high) == pytest.approx((0.7051, 0.7902), abs=1e-3)  # about that of a binomial
    together = estimate_coverage([(search(f"s{i // 40}"), i % 80 < 60) for i in range(400)])
    assert together.share == 0.75
    assert together.high - together.low > 3 * (coverage.high - coverage.low)
    weighted = estimate_coverage([(search("a", weight=3), True), (search("b"), False)])
    assert weighted.share == 0.75 and weighted.low < 0.1
    assert estimate_coverage([(search(), True)] * 3).low == 1.0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with two days of traffic and the documents of the collection."""
    monkeypatch.chdir(tmp_path)
    texts = ["opening hours", "hours opening", "mail ada@example.org", "parking", "parking", "refund"]
    first = [span(i + 1, retrieval(text, "d1", "d2") | thumb(1), seconds=i) for i, text in enumerate(texts)]
    later = ["parking", "mail eve@example.org", "tickets", "ferry"]
    second = [span(i + 11, retrieval(text, "d3"), seconds=DAY_S + i) for i, text in enumerate(later)]
    write_spans(tmp_path / "one.jsonl", *first)
    write_spans(tmp_path / "two.jsonl", *second)
    rows = [{"_id": name, "text": f"text of {name}"} for name in ("d2", "d3")]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def mine(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Draw a golden set, and return the summary."""
    fixed = ["mine", "source=telemetry", "output=golden", "tracking=none", "source.clusters=1", "--json"]
    assert main([*fixed, *words]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)["summary"]
    return summary


def test_a_golden_set_has_masked_queries_served_documents_and_declared_feedback(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = mine(capsys, "source.path=one.jsonl", "source.feedback=first")
    assert {name: summary[name] for name in ("searches", "texts", "groups", "needed", "queries")} == {
        "searches": 6, "texts": 5, "groups": 4, "needed": 215, "queries": 4,
    }  # fmt: skip
    assert summary["masked"] == {"email": 1}
    assert summary["coverage"] == {"share": 1.0, "low": 1.0, "high": 1.0}
    rows = {row["text"]: row for row in read_rows(here / "golden" / "queries.jsonl")}
    assert sorted(rows) == ["mail <email>", "opening hours", "parking", "refund"]
    assert rows["opening hours"]["metadata"] | {"last": ""} == {
        "topic": "topic 1", "frequency": "head", "week": "2026-W48", "last": "", "searches": 2, "represents": 2.0,
    }  # fmt: skip
    assert "example.org" not in "".join(path.read_text() for path in (here / "golden").glob("*.jsonl"))
    dataset = Beir(path="golden").load()
    assert list(dataset.corpus.texts) == ["text of d1", "text of d2"]
    assert dataset.judgments.list_rows() == [(query, 0, 1) for query in range(4)]
    assert main(["dataset=beir", "dataset.path=golden", "retriever=run", "retriever.path=golden/served.jsonl",
                 "tracking=none"]) == 0  # fmt: skip
    assert "RR 1.000" in capsys.readouterr().out


def test_as_many_queries_are_drawn_as_wanted_and_the_coverage_says_what_they_stand_for(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["mine", "source=telemetry", "source.path=one.jsonl", "source.count=2", "output=g", "tracking=none"]
    assert main([*words, "source.clusters=1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "6 searches for 5 texts are 4 queries after near-duplicates were merged" in printed
    assert "has the queries of 50.0% of these searches [14.8%, 85.2%]." in printed
    assert "Each represents its searches, and at least 3 of them." in printed
    assert "frequency head 1 33.3% 50.0%" in printed
    assert len(read_rows(here / "g" / "queries.jsonl")) == 2


def test_a_second_draw_adds_and_names_what_changed_and_which_gold_is_gone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine(capsys, "source.path=one.jsonl", "source.feedback=first")
    before = read_rows(here / "golden" / "queries.jsonl")
    summary = mine(capsys, "source.path=two.jsonl", "source.documents=documents.jsonl")
    names = {row["_id"]: row["text"] for row in read_rows(here / "golden" / "queries.jsonl")}
    assert [row["_id"] for row in before] == [*names][:4]
    assert sorted(names[name] for name in summary["added"]) == ["ferry", "tickets"]
    assert sorted(names[name] for name in summary["kept"]) == ["mail <email>", "parking"]
    assert sorted(names[name] for name in summary["gone"]) == ["opening hours", "refund"]
    assert {names[name] for name in summary["lost_gold"]} == {"mail <email>", "opening hours", "parking", "refund"}
    assert all(documents == ["d1"] for documents in summary["lost_gold"].values())
    qrels = (here / "golden" / "qrels" / "test.tsv").read_text().splitlines()
    assert len(qrels) == 5
    served = {row["query_id"]: row["document_id"] for row in read_rows(here / "golden" / "served.jsonl")}
    assert {names[name]: document for name, document in served.items()} == {
        "opening hours": "d2", "refund": "d2", "parking": "d3", "mail <email>": "d3", "tickets": "d3", "ferry": "d3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["+source.mask.email='*x'"], "source.mask: '*x' is not a regular expression"),
        (["source.since=today"], "source.since=today: today is not a time; write, for example, 2026-11-23"),
        (["output=."], "output=.: not a folder of an earlier draw"),
        (["source.path=none.jsonl"], "source.path=none.jsonl: no such file"),
    ],
)
def test_a_mistake_is_named_in_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    fixed = ["mine", "source=telemetry", "source.path=one.jsonl", "output=golden", "tracking=none"]
    assert main([*fixed, *words]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
