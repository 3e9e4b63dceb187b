"""Traces of production become windows: figures are those of the traces, falls raise alarms, and runs are remembered."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.evaluation.records import load_record
from runner.testing.features import check_document
from runner.tracking.fetching import Runs
from runner.tracking.settings import Tracking
from tests.features.look.stores import serve_store
from tests.features.monitor.traces import QUERIES, write_judgments, write_traces
from tests.pages.reading import read_explorer_data

QUIET = [0.8] * 12


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with judged queries and a folder for traces."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    write_judgments(tmp_path / "golden")
    (tmp_path / "traces").mkdir()
    return tmp_path


def watch(*more: str) -> list[str]:
    return ["monitor", "traffic.path=traces", "dataset=beir", "dataset.path=golden", *more]


def read(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    main([*watch(*more), "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def compute_means(file: Path) -> dict[str, float]:
    """Return nDCG@10 by day of the week's Monday, computed from the file: the only gold is at rank 1, 3, or missing."""
    values: defaultdict[int, list[float]] = defaultdict(list)
    for line in file.read_text().splitlines():
        span = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        attributes = {entry["key"]: entry["value"]["stringValue"] for entry in span["attributes"]}
        names = [hit["id"] for hit in json.loads(attributes["gen_ai.retrieval.documents"])]
        gold = f"d{attributes['gen_ai.retrieval.query.text'].split()[1]}"
        rank = names.index(gold) + 1 if gold in names else math.inf
        values[int(attributes["service.version"].removeprefix("1."))].append(1 / math.log2(rank + 1))
    return {str(week): sum(own) / len(own) for week, own in values.items()}


def test_a_fall_raises_an_alarm_that_says_what_fell(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", [*QUIET, 0.4], gone=(3, 5))
    assert main(watch("output=page")) == 1
    shown = capsys.readouterr().out
    assert "ALARM: nDCG@10 has fallen since the window of 2026-03-30" in shown
    document = read(capsys, "log=false")
    assert document["alarms"] == ["quality"]
    expected = compute_means(here / "traces" / "a.jsonl")
    for week, window in enumerate(document["windows"]):
        assert window["quality"]["mean"] == pytest.approx(expected[str(week)], abs=1e-9)
        assert window["searches"] == window["quality"]["searches"] == 120
    fall = document["fall"]
    assert fall["after"] == pytest.approx(expected["12"], abs=1e-9)
    assert sum(fall["parts"].values()) == pytest.approx(fall["after"] - fall["before"], abs=1e-9)
    assert {"d3", "d5"} <= fall["gone"].keys()
    (quality, answered) = document["watched"]
    assert quality["alarms"] == ["2026-03-30T00:00+00:00"]
    assert quality["evidence"][-1] > quality["alarm_from"] > 1
    assert quality["baseline"] == pytest.approx(sum(expected[str(week)] for week in range(8)) / 8)
    assert answered["alarms"] == []
    page = (here / "page" / "monitor.html").read_text()
    assert "has fallen since the window of 2026-03-30" in page
    assert "Gold no longer served" in page


def test_traffic_without_a_change_raises_no_alarm(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", QUIET)
    assert main(watch()) == 0
    assert "No alarm: nDCG@10, Searches with a result did not fall" in capsys.readouterr().out


def test_searches_without_a_result_raise_an_alarm_of_their_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", QUIET, empty=0.25)
    document = read(capsys)
    assert "answered" in document["alarms"]
    last = document["windows"][-1]
    assert last["answered"]["mean"] == pytest.approx(1 - last["empty"] / 120)
    assert 20 <= last["empty"] <= 40


def test_no_alarm_is_possible_before_the_baseline_is_complete(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8, 0.1])
    assert main(watch()) == 0
    assert "the first 8 windows are the baseline, and there are 2" in capsys.readouterr().out


def test_windows_are_runs_and_later_windows_are_compared_with_them(
    here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    file = here / "traces" / "a.jsonl"
    write_traces(file, [0.8] * 10)
    assert main(watch()) == 0
    assert main(watch()) == 0  # nothing is new
    write_traces(file, [0.8, 0.3], first=10)  # the earlier traces are gone
    assert main(watch()) == 1
    remembered = read(capsys)
    write_traces(file, [*[0.8] * 11, 0.3])
    at_once = read(capsys, "monitor.name=other")
    assert remembered["windows"] == at_once["windows"]
    assert remembered["watched"] == at_once["watched"]
    assert remembered["fall"] == at_once["fall"]
    of_production = [run for run in Runs(tracking).list_kind("monitor") if run.name.startswith("production")]
    runs = sorted(of_production, key=lambda run: run.name)
    assert [run.name[-22:-12] for run in runs] == [window["start"][:10] for window in at_once["windows"]]
    assert "monitor.html" in Runs(tracking).list_files(runs[-1])


def test_a_run_has_the_figures_of_its_window(
    here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow.tracking import MlflowClient

    write_traces(here / "traces" / "a.jsonl", [0.8] * 10, empty=0.2, broken=10)
    (*_, last) = read(capsys, "traffic.attributes=[tenant]", "monitor.slices=[tenant]")["windows"]
    run = max(Runs(tracking).list_kind("monitor"), key=lambda run: run.name)
    metrics = MlflowClient(tracking.uri).get_run(run.id).data.metrics
    assert metrics["ndcg_at_10"] == pytest.approx(last["quality"]["mean"])
    assert metrics["ndcg_at_10_error"] == pytest.approx(last["quality"]["error"])
    assert (metrics["traffic/searches"], metrics["traffic/judged"], metrics["traffic/users"]) == (120, 108, 7)
    assert metrics["failed_rate"] == 0.1
    assert 10 < last["empty"] < 35
    assert metrics["no_result_rate"] == pytest.approx(last["empty"] / 108)
    assert metrics["hole_rate"] == pytest.approx(last["unjudged"] / last["hits"])
    assert metrics["latency/p95_ms"] == 23
    assert metrics["slice/tenant_a"] == pytest.approx(last["slices"]["tenant=a"]["mean"])
    assert metrics["drift/queries"] == pytest.approx(last["drift"]["queries"])
    assert metrics["drift/queries"] > 0.5
    assert "drift/scores" not in metrics  # the scores of all first hits are the same
    assert metrics["evidence/ndcg_at_10"] > 0


def test_windows_of_other_judgments_are_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 3)
    main(watch())
    write_traces(here / "traces" / "a.jsonl", [0.8] * 2, first=3)
    document = read(capsys, "metrics.primary=RR")
    assert [window["start"][:10] for window in document["windows"]] == ["2026-01-26", "2026-02-02"]
    write_traces(here / "traces" / "a.jsonl", [0.8], first=5)
    assert len(read(capsys, "monitor.since=2026-02-09")["windows"]) == 1


def test_new_words_are_named_and_drift_shows_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", QUIET, word="refund")
    document = read(capsys)
    usual = [window["drift"]["queries"] for window in document["windows"][:-1]]
    assert max(usual) < 2 < document["drift"]["queries"]
    assert document["windows"][-1]["quality"] is None  # these texts are not judged


def test_new_kinds_of_queries_are_listed_with_their_shares(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 10, word="refund question")
    golden = (here / "golden" / "queries.jsonl").read_text()
    (here / "golden" / "queries.jsonl").write_text(golden.replace('Question 3"', 'refund question 3"'))
    fall = read(capsys)["fall"]
    assert fall["words"] == {"refund": [0.0, 1.0]}


def test_people_correct_the_mean_by_a_model(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model takes y for gold in place of d; people judge the even queries, and see its error there."""
    file = here / "traces" / "a.jsonl"
    write_traces(file, [0.8])
    qrels = here / "golden" / "qrels" / "test.tsv"
    Path("people.tsv").write_text("".join(f"q{query}\td{query}\t1\n" for query in range(0, QUERIES, 2)))
    (whole,) = read(capsys, "log=false")["windows"]
    model = "query-id\tcorpus-id\tscore\n" + "".join(f"q{query}\ty{query}\t1\n" for query in range(QUERIES))
    qrels.write_text(model)
    (by_model,) = read(capsys, "log=false")["windows"]
    (corrected,) = read(capsys, "log=false", "people=people.tsv")["windows"]
    errors = [(1 if d else 0.5) - y for d, y in _rank(file)]
    assert by_model["quality"]["mean"] < whole["quality"]["mean"] - 0.1
    assert corrected["quality"]["mean"] == pytest.approx(by_model["quality"]["mean"] + sum(errors) / len(errors))
    assert corrected["quality"]["error"] > whole["quality"]["error"]
    Path("people.tsv").write_text("".join(f"q{query}\td{query}\t1\n" for query in range(QUERIES)))
    (everything,) = read(capsys, "log=false", "people=people.tsv")["windows"]
    for figure in ("mean", "error", "low", "high"):
        assert everything["quality"][figure] == pytest.approx(whole["quality"][figure])


def _rank(file: Path) -> list[tuple[bool, float]]:
    """Return for each search of an even query whether its gold is first, and what a model says that prefers y."""
    found = []
    for line in file.read_text().splitlines():
        span = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        attributes = {entry["key"]: entry["value"]["stringValue"] for entry in span["attributes"]}
        names = [hit["id"] for hit in json.loads(attributes["gen_ai.retrieval.documents"])]
        query = int(attributes["gen_ai.retrieval.query.text"].split()[1])
        if query % 2 == 0:
            found.append((names[0] == f"d{query}", 1 / math.log2(names.index(f"y{query}") + 2)))
    return found


def test_what_cannot_be_measured_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 2, word="other")
    main(["monitor", "traffic.path=traces", "log=false"])
    assert "no search is of a judged query" in capsys.readouterr().err
    main(watch("log=false"))
    assert "33.3% of the first hits of judged queries are not judged" not in capsys.readouterr().err


@pytest.mark.parametrize(("judged", "warns"), [(("d",), False), (("d", "z"), True)])
def test_unjudged_hits_are_a_warning_unless_each_query_has_one_right_document(
    here: Path, capsys: pytest.CaptureFixture[str], judged: Sequence[str], warns: bool
) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 2)
    rows = [f"q{query}\t{letter}{query}\t1\n" for query in range(QUERIES) for letter in judged]
    (here / "golden/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    main(watch("log=false", "dataset.unknown_judged=keep"))
    assert ("66.7% of the first hits of judged queries are not judged" in capsys.readouterr().err) == warns


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["monitor.window=3w"], "monitor.window"),
        (["monitor.since=soon"], "monitor.since"),
        (["people=golden/qrels/none.tsv"], "error: people=golden/qrels/none.tsv: no such file"),
        (["traffic.feedback=some"], "error: traffic.feedback=some: "),
        (["monitor.window=3650d"], "no window of 3650d is over"),
        (["traffic.path=none"], "traffic.path=none: no such file"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], message: str
) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8])
    assert main(watch(*words)) == 2
    assert message in capsys.readouterr().err


def test_the_document_has_its_declared_keys(here: Path) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 3)
    check_document("monitor", *watch("log=false")[1:])


def test_new_releases_are_marked_on_the_page(here: Path) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 3)
    main(watch("output=page", "log=false"))
    (quality, *_) = read_explorer_data((here / "page" / "monitor.html").read_text())["plots"]
    marks = [layer["data"]["values"] for layer in quality["spec"]["layer"] if "data" in layer]
    assert [mark["mark"] for mark in marks[0]] == ["1.1", "1.2"]


def test_each_window_leads_to_its_queries_the_largest_loss_first(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_traces(here / "traces" / "a.jsonl", [*[1.0] * 8, 0.9], gone=(3,))
    main(watch("output=page", "log=false"))
    data = read_explorer_data((here / "page" / "monitor.html").read_text())
    opens = [plot["spec"]["usermeta"] for plot in data["plots"] if plot["id"] == "quality"]
    assert opens == [{"opens": {"field": "window", "tab": "queries"}}]
    columns = {column["id"]: column["values"] for column in data["columns"]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    points = data["plots"][0]["spec"]["data"]["values"]
    (last,) = [row for row in rows if row["window"] == points[-1]["window"] and row["text"] == "Question 3"]
    assert (last["value"], last["before"], last["gone"]) == (0.0, 1.0, "d3")
    assert last["contribution"] == pytest.approx(-last["searches"] / 120)
    for point in points:  # the rows of a window are what its mean is over
        own = [row for row in rows if row["window"] == point["window"]]
        assert sum(row["searches"] for row in own) == 120
        assert sum(row["searches"] * row["value"] for row in own) / 120 == pytest.approx(point["value"])
    assert data["order"] == "contribution"


def test_promoted_baselines_are_marks_and_a_history_on_the_page(
    here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 2)
    words = ["dataset=beir", "dataset.path=golden", "tracking.background=false", "metrics.primary=RR"]
    for found in (30, 10):
        Path(f"{found}.trec").write_text("".join(f"q{i} Q0 d{i} 1 2.0 t\n" for i in range(found)))
        assert main([*words, "retriever=run", f"retriever.path={found}.trec"]) == 0
        assert main(["promote", "run=latest", "name=main", "promote.by=Ada", "promote.replace=true"]) == 0
    capsys.readouterr()
    main(watch("output=page"))
    html = (here / "page" / "monitor.html").read_text()
    plots = {plot["id"]: plot["spec"] for plot in read_explorer_data(html)["plots"]}
    points = plots["promoted"]["data"]["values"]
    results = [load_record(file.parent) for file in sorted(Path("mlruns").rglob("result.json"), key=age)]
    assert [point["value"] for point in points] == pytest.approx([0.75, 0.25])
    assert [(point["low"], point["high"]) for point in points] == [result.intervals["RR"] for result in results]
    assert [point["line"] for point in points] == [f"main {results[0].dataset.fingerprint} RR"] * 2
    marks = next(layer["data"]["values"] for layer in plots["quality"]["layer"] if "data" in layer)
    assert [mark["mark"] for mark in marks] == ["1.1", *(f"baseline main: {result.name}" for result in results)]
    with serve_store(tracking, here, "latest") as served:
        page = served.client.get("/pages/Baselines%20over%20time").text
        (run,) = set(re.findall(r'<a href="/show/(\w{32})/">', page)) - {served.shown.key}
        assert served.client.get(f"/show/{run}/").status_code == 200
        assert len(read_explorer_data(page)["plots"][0]["spec"]["data"]["values"]) == 2


def age(file: Path) -> int:
    return file.stat().st_mtime_ns


def test_look_shows_the_newest_page_of_each_monitor(here: Path, tracking: Tracking) -> None:
    write_traces(here / "traces" / "a.jsonl", [0.8] * 2)
    main(watch())
    main(watch("monitor.name='a & b'"))
    write_traces(here / "traces" / "a.jsonl", [0.8], first=2)
    main(watch())
    assert main(["retriever=rank_bm25", "dataset=beir", "dataset.path=golden", "tracking.background=false"]) == 0
    with serve_store(tracking, here, "latest") as served:
        links = re.findall(r'<a href="(/pages/[^"]+)">([^<]+)</a>', served.client.get("/runs").text)
        assert [title for _, title in links] == ["a &amp; b 7d over time", "production 7d over time"]
        pages = [served.client.get(link).text for link, _ in links]
        assert "2 windows of 7d until 2026-01-19" in pages[0]
        assert "3 windows of 7d until 2026-01-26" in pages[1]
        assert served.client.get("/pages/none").headers["location"] == "/runs"
