"""Clicks become grades: the model finds what it draws from, and a log in the UBI schema is read as it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta

from runner.__main__ import main
from runner.datasets.base import DatasetError
from runner.datasets.clicks import ClickError, Impressions, estimate_attractiveness, fit_examination
from runner.datasets.dataset import Dataset
from runner.datasets.judged import JudgedFiles

EXAMINATION = np.array([1.0, 0.6, 0.3])


def expected_clicks(attractiveness: np.ndarray[Any, Any], shown: int) -> Impressions:
    """Return a log in which each pair is shown at each rank and clicked exactly as often as the model expects."""
    pairs, ranks = (axis.ravel() for axis in np.indices((len(attractiveness), len(EXAMINATION))))
    clicked = shown * attractiveness[pairs] * EXAMINATION[ranks]
    return Impressions(pairs, ranks + 1, np.full(len(pairs), shown), clicked)


def test_the_examination_is_that_of_the_clicks() -> None:
    assert_allclose(fit_examination(expected_clicks(np.array([0.5, 0.2, 0.1]), 1000)), EXAMINATION, atol=1e-4)


def test_the_attractiveness_at_rank_1_has_jeffreys_interval_of_a_proportion() -> None:
    log = Impressions(np.arange(3), np.ones(3, dtype=np.int64), np.array([20, 20, 500]), np.array([0, 7, 60]))
    estimate = estimate_attractiveness(log, np.ones(1))
    posterior = beta(log.clicked + 0.5, log.shown - log.clicked + 0.5)
    assert_allclose(estimate.mean, posterior.mean(), atol=2e-3)
    assert_allclose(estimate.low, posterior.ppf(0.025), atol=2e-3)
    assert_allclose(estimate.high, posterior.ppf(0.975), atol=2e-3)


def test_a_click_at_a_rank_that_is_rarely_examined_counts_more() -> None:
    log = Impressions(np.array([0, 1]), np.array([1, 3]), np.array([100, 100]), np.array([15, 15]))
    first, third = estimate_attractiveness(log, EXAMINATION).mean
    assert third == pytest.approx(first / 0.3, rel=0.05)


def test_ranks_that_share_no_document_cannot_be_compared() -> None:
    log = Impressions(np.array([0, 1, 1, 2]), np.array([1, 2, 3, 3]), np.full(4, 50), np.full(4, 5))
    with pytest.raises(ClickError, match="both at rank 1 and, directly or through other documents, at rank 2, 3, so"):
        fit_examination(log)


def ubi_log(searches: int = 60) -> list[dict[str, Any]]:
    """Return searches for "sea", two documents in alternating order, of which "b" is clicked, and other events."""
    records: list[dict[str, Any]] = []
    for number in range(searches):
        hits = ["a", "b"] if number % 2 else ["b", "a"]
        records.append(
            {"query_id": f"s{number}", "user_query": " sea ", "query_response_hit_ids": hits, "client_id": "c"}
        )
        clicked = {"object": {"object_id": "b", "object_id_field": "id"}, "position": {"ordinal": hits.index("b") + 1}}
        if number % 3 == 0:
            records += 2 * [{"query_id": f"s{number}", "action_name": "click", "event_attributes": clicked}]
        records.append({"query_id": f"s{number}", "action_name": "scroll", "event_attributes": {}})
    return records


def read_log(folder: Path, records: list[dict[str, Any]], **settings: Any) -> Dataset:
    path = folder / "ubi.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return JudgedFiles(qrels=str(path), **settings).load()


def test_a_click_log_becomes_grades_with_intervals(tmp_path: Path) -> None:
    dataset = read_log(tmp_path, ubi_log())
    assert (list(dataset.queries.texts), list(dataset.judgments.unknown_documents)) == (["sea"], ["a", "b"])
    assert dataset.judgments.grades.tolist() == [0, 2]
    first, second = dataset.judgments.intervals
    assert (first.document, first.impressions, first.clicks) == ("a", 60, 0)
    assert (second.document, second.impressions, second.clicks) == ("b", 60, 20)  # a search counts once
    assert second.low < 1 / 3 < second.high and second.lowest <= second.grade <= second.highest


def test_queries_and_events_may_be_hits_of_a_search_in_files_of_a_folder(tmp_path: Path) -> None:
    log, folder = ubi_log(), tmp_path / "logs"
    folder.mkdir()
    parts = [[r for r in log if ("action_name" in r) == events] for events in (True, False)]
    (folder / "ubi_events.json").write_text(json.dumps({"hits": {"hits": [{"_source": r} for r in parts[0]]}}))
    (folder / "ubi_queries.ndjson").write_text("".join(json.dumps({"_source": r}) + "\n" for r in parts[1]))
    assert JudgedFiles(qrels=str(folder)).load().judgments.intervals == read_log(tmp_path, log).judgments.intervals


def test_the_body_of_a_bulk_request_is_read_without_its_actions(tmp_path: Path) -> None:
    log = ubi_log()
    expected = read_log(tmp_path, log).judgments.intervals
    renamed = [{k.replace("response_hit_ids", "response_object_ids"): v for k, v in row.items()} for row in log]
    lines = [row for record in renamed for row in ({"index": {"_index": "ubi"}}, record)]
    assert read_log(tmp_path, lines).judgments.intervals == expected
    with pytest.raises(DatasetError, match="the record of this action is missing"):
        read_log(tmp_path, lines[:-1])
    with pytest.raises(DatasetError, match="the action 'delete' of a _bulk request"):
        read_log(tmp_path, [*lines, {"delete": {"_id": "1"}}])


def test_impression_events_replace_lists_of_results(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for record in ubi_log():
        for rank, document in enumerate(record.pop("query_response_hit_ids", []), start=1):
            about = {"object": {"object_id": document}, "position": {"ordinal": {"index": rank}}}
            shown = {"query_id": record["query_id"], "user_query": "sea", "action_name": "impression"}
            events.append({**shown, "event_attributes": about})
        events += [record] if "action_name" in record else []
    assert read_log(tmp_path, events).judgments.intervals == read_log(tmp_path, ubi_log()).judgments.intervals


@pytest.mark.parametrize("identifier", [True, 1.5, ["a"]])
def test_an_id_that_is_neither_text_nor_a_whole_number_is_refused(tmp_path: Path, identifier: object) -> None:
    event = {"query_id": "s1", "action_name": "click", "event_attributes": {"object": {"object_id": identifier}}}
    for record in ({"query_id": "s1", "user_query": "sea", "query_response_hit_ids": [identifier]}, event):
        with pytest.raises(DatasetError, match=r"ubi.ndjson:121: .*; an id must be text or a whole number"):
            read_log(tmp_path, [*ubi_log()[:120], record])


def test_a_known_examination_replaces_the_estimate(tmp_path: Path) -> None:
    log = [record for record in ubi_log() if int(record["query_id"][1:]) % 2]  # "b" is always second
    with pytest.raises(DatasetError, match=r"at rank 2, so .*set the .*'dataset.examination=\[1,0.5\]', or"):
        read_log(tmp_path, log)
    _, second = read_log(tmp_path, log, examination=(1.0, 0.5)).judgments.intervals
    assert second.attractiveness == pytest.approx(2 / 3, abs=0.05)
    with pytest.raises(DatasetError, match=r"examination: has 1 ranks, but results were shown at rank 2; add the miss"):
        read_log(tmp_path, log, examination=(1.0,))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"click_actions": ("purchase",)}, "no purchase event refers to a result of its search; name the actions"),
        ({"min_impressions": 61}, "no document was shown 61 times for a query; lower dataset.min_imp"),
    ],
)
def test_a_log_without_grades_is_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        read_log(tmp_path, ubi_log(), **settings)


def test_events_alone_are_refused(tmp_path: Path) -> None:
    events = [record for record in ubi_log() if "action_name" in record]
    with pytest.raises(DatasetError, match=r"no search has both a text \(user_query\) and the ids of its results"):
        read_log(tmp_path, events)


def test_queries_that_a_file_names_keep_their_ids(tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("q1\tsea\nq2\tland\n")
    dataset = read_log(tmp_path, ubi_log(), queries=str(tmp_path / "queries.tsv"))
    assert list(dataset.queries.ids) == ["q1"]
    assert {interval.query for interval in dataset.judgments.intervals} == {"q1"}


def test_an_export_has_the_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    read_log(tmp_path, ubi_log())
    command = ["export", "dataset=judged", "dataset.qrels=ubi.ndjson", "dataset.min_impressions=20"]
    assert main([*command, "format=ratings", "output=out"]) == 0
    output = capfd.readouterr()
    assert "2 grades estimated from clicks; the 95 % interval of 1 of them covers several grades" in output.err
    rows = Path("out/grade_intervals.csv").read_text().splitlines()
    assert rows[0] == "query,document,impressions,clicks,attractiveness,low,high,grade,lowest,highest"
    assert rows[2].startswith("sea,b,60,20,0.3")
