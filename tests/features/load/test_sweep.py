"""A sweep of load tests: figures by rate, a winner that meets constraints, and the cheapest settings with recall."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from runner.__main__ import main
from runner.comparison.leaderboard import build_leaderboard
from runner.features.load.sweep import build_rates_table, build_recall_table, iter_sweep_sections, list_tested
from runner.sweep.report.page import sweep_page
from tests.features.load.scripted_server import Script, run_script
from tests.features.load.test_command import QUERIES, api
from tests.pages.factory import result
from tests.pages.reading import read_explorer_data

TOP_K = 3


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the overrides of a sweep of two modes, on a dataset with two splits."""
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(QUERIES.values())]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    queries = [{"_id": name, "text": text} for name, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    for split, places in (("dev", (0, 1)), ("test", (2, 3))):
        qrels = "".join(f"q{i}\td{i}\t1\n" for i in places)
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{qrels}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    load = [
        "load.rates=[200]",
        "load.duration_s=0.25",
        "load.warmup_s=0",
        "load.arrivals=constant",
        f"load.top_k={TOP_K}",
        "load.max_failed=1",
    ]
    metrics = ["metrics.primary=nDCG@3", "metrics.depth=5", "metrics.k_values=[1,3]"]
    sweep = ["+retriever.parameters.mode=a,b", "sweep.select_on=dev"]
    return ["dataset=beir", f"dataset.path={folder}", "tracking=none", *load, *metrics, *sweep]


@pytest.fixture
def script() -> Iterator[Script]:
    """Return a server whose mode a finds half of the gold; b finds all of it, but fails under load."""
    places = {text: name.replace("q", "d") for name, text in QUERIES.items()}

    def answer(number: int, query: str) -> tuple[int, list[str]]:
        body = own.bodies[-1]
        if body.get("mode") == "b":
            return 500 if body["n"] == TOP_K else 200, [places[query]]
        return 200, ["x", places[query]]

    own = Script(answer)
    with run_script(own):
        yield own


def sweep(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    assert main(["load", "-m", *words, "--json"]) == 0
    captured = capsys.readouterr()
    return orjson.loads(captured.out), captured.err


def with_mode(script: Script) -> list[str]:
    request = "retriever.request={query: '{query}', n: '{top_k}', mode: '{mode}'}"
    return [word for word in api(script) if not word.startswith("retriever.request")] + [request]


def test_the_winner_is_the_best_that_meets_the_constraints_and_is_confirmed(
    words: list[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    content, _ = sweep(capsys, *words, *with_mode(script), "sweep.constraints='failed_at_200 <= 0.1'")
    (board,) = content["leaderboards"]
    assert [row["swept"]["retriever.parameters.mode"] for row in board["rows"]] == ["b", "a"]
    selection = board["selection"]
    assert selection["winner"] == "mode=a"
    figure = {"selected": 0.0, "reported": 0.0, "is_met": True}
    assert selection["constraints"] == {"failed_at_200 <= 0.1": figure}
    assert (
        sum(body["n"] == TOP_K for body in script.bodies) == 50 * 4
    )  # two candidates, then the winner and the default on the other split


def test_without_constraints_the_best_is_the_winner(
    words: list[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    content, _ = sweep(capsys, *words, *with_mode(script))
    assert content["leaderboards"][0]["selection"]["winner"] == "mode=b"


def test_no_winner_is_selected_if_none_meets_the_constraints(
    words: list[str], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    content, notes = sweep(capsys, *words, *with_mode(script), "sweep.constraints='quality_at_200 >= 0.9'")
    assert content["leaderboards"][0]["selection"] is None
    assert "no combination was selected: none of 2 has quality_at_200 >= 0.9" in notes


def test_constraints_need_a_split_to_select_on(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    own = [word for word in words if not word.startswith("sweep.")]
    limited = [*own, "retriever=bm25", "retriever.k1=1,2", "sweep.constraints='p95_ms <= 3'"]
    assert main(["-m", *[word for word in limited if "load" not in word and "parameters" not in word]]) == 2
    assert "constraints apply to the winner that select_on selects" in capsys.readouterr().err


FIGURES = {
    "fast": {"p99_ms_at_50": 20.0, "quality_at_50": 0.5, "failed_at_50": 0.25},
    "slow": {"p99_ms_at_50": 90.0, "quality_at_50": 0.7, "failed_at_50": 0.0},
    "worse": {"p99_ms_at_50": 95.0, "quality_at_50": 0.6, "failed_at_50": 0.0},
}
RECALLS = {"fast": (0.96, 0.5), "slow": (0.99, 0.97), "worse": (0.98, 0.96)}


def build_board() -> Any:
    results = []
    for (name, figures), (broad, narrow) in zip(FIGURES.items(), RECALLS.values(), strict=True):
        recalls = {
            "index_recall_at_10": 0.9,
            "index_recall_at_10.filter_over_20_percent": broad,
            "index_recall_at_10.filter_up_to_1_percent": narrow,
        }
        results.append(replace(result(name), diagnostics={**figures, **recalls}))
    return build_leaderboard(results, "nDCG@10"), results


def test_the_table_of_rates_marks_the_pareto_front() -> None:
    board, results = build_board()
    rows = [(row, results[row.position].diagnostics) for row in board.rows]
    texts = build_rates_table(list(list_tested(rows, "50")), "nDCG@10").texts()
    values = {FIGURES_BY_P99[row[6]]: (row[3], row[7], row[9]) for row in texts}
    assert values["fast"] == ("0.5000", "25.0%", "yes")
    assert values["slow"] == ("0.7000", "0.0%", "yes")
    assert values["worse"] == ("0.6000", "0.0%", "")


def test_the_page_of_a_sweep_draws_quality_under_load_against_p99_with_its_front() -> None:
    board, results = build_board()
    page = sweep_page(board, results)
    (plot,) = [plot for plot in read_explorer_data(page)["plots"] if plot["id"] == "load"]
    assert plot["title"] == "nDCG@10 under load against p99"
    points = {point["x"]: (point["rate"], point["y"], point["front"]) for point in plot["spec"]["data"]["values"]}
    assert points == {20.0: ("50/s", 0.5, True), 90.0: ("50/s", 0.7, True), 95.0: ("50/s", 0.6, False)}
    assert '<figure data-plot="load">' in page


FIGURES_BY_P99 = {"20.0": "fast", "90.0": "slow", "95.0": "worse"}


def test_the_cheapest_settings_with_recall_are_listed_by_selectivity() -> None:
    board, results = build_board()
    rows = [(row, results[row.position].diagnostics) for row in board.rows]
    table = build_recall_table(rows, "p99_ms_at_50", "p99 ms at 50 requests/s")
    assert [(row[0], row[3], row[4]) for row in table.rows] == [("over 20 %", 20.0, 0), ("up to 1 %", 90.0, 1)]
    assert [row[2] for row in table.texts()] == ["0.960", "0.970"]
    none = build_recall_table([(row, {"index_recall_at_10": 0.5}) for row, _ in rows], "median_ms", "query ms")
    assert none.rows[0][1] == "none"
    assert math.isnan(none.rows[0][2])


def test_a_sweep_without_load_tests_has_no_section_of_load() -> None:
    results = [result("a"), result("b")]
    sections = list(iter_sweep_sections(build_leaderboard(results, "nDCG@10"), results))
    assert all(section.is_empty for section in sections)
