"""What `look` shows of a sweep that has ended is what its report has: hits, the selection, the search, the race."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.comparison.criteria import COSTS, mean_of
from runner.comparison.search import FrontPoint, Search, SearchTrial, parse_search
from runner.comparison.selection import DefaultComparison, Figures, FoldWinner, WinnerSelection, parse_selection
from runner.statistics.comparison import Difference
from runner.statistics.settings import Statistics
from runner.tracking.settings import Tracking
from tests.features.look.stores import DATA, TEXTS, ServedStore, serve_store, write_dataset
from tests.pages.reading import Page, read_explorer_data


@pytest.fixture(scope="module")
def search_store(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStore]:
    """Serve a store with a search whose winner is selected by cross-validation."""
    folder = tmp_path_factory.mktemp("search_store")
    (folder / "mlruns").mkdir()
    shutil.copy(migrated, folder / "mlruns" / "mlflow.db")
    write_dataset(folder / "data")
    search = ["-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=12", "sweep.select_on=kfold"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert (
            main([*search, "retriever=bm25", "retriever.k1=interval(0.2,3)", "retriever.b=interval(0,1)", *DATA]) == 0
        )
        with serve_store(Tracking(uri=f"sqlite:///{folder}/mlruns/mlflow.db"), folder) as store:
            yield store


def test_the_page_of_a_search_has_the_hits_and_trials_of_its_report(
    search_store: ServedStore,
) -> None:
    run = search_store.shown.runs[0]
    report = next(search_store.folder.glob(f"mlruns/artifacts/{run.id}/artifacts/report.html")).read_text(
        encoding="utf-8"
    )
    page = search_store.client.get(f"{search_store.page}/").text
    own, live = read_explorer_data(report), read_explorer_data(page)
    for name in ("systems", "gold", "documents", "finalists", "runs"):
        assert live[name] == own[name], name
    assert [plot["id"] for plot in live["plots"]] == [plot["id"] for plot in own["plots"]]
    assert "history" in {plot["id"] for plot in live["plots"]}
    tables = [[table for table in Page(html).tables if table[0] != ["setting", "value"]] for html in (page, report)]
    assert tables[0] == tables[1], "all but the environment, which is that of another run"
    assert "Selection bias (nested cross-validation)" in page


def test_the_whole_texts_of_the_hits_of_a_sweep_are_served(search_store: ServedStore) -> None:
    texts = search_store.client.get(f"{search_store.page}/texts?query=q0&board=0").json()
    assert texts["d0"]["text"] == TEXTS["d0"]
    refused = search_store.client.get(f"{search_store.page}/texts?query=q0&board=1")
    assert (refused.status_code, "has 1 datasets" in refused.text) == (409, True)


def test_a_record_that_cannot_be_read_is_left_out(search_store: ServedStore) -> None:
    folder = search_store.folder / "mlruns" / "artifacts" / search_store.shown.runs[0].id / "artifacts"
    kept = {name: (folder / name).read_text() for name in ("search.json", "selection.json")}
    try:
        for name in kept:
            (folder / name).write_text("[]")
        search_store.set_status(search_store.shown.runs[0].id, "KILLED")  # so that the page is rendered again
        page = search_store.client.get(f"{search_store.page}/").text
    finally:
        for name, text in kept.items():
            (folder / name).write_text(text)
        search_store.set_status(search_store.shown.runs[0].id, "FINISHED")
    assert "Selection bias" not in page
    assert "history" not in {plot["id"] for plot in read_explorer_data(page)["plots"]}


def test_records_come_back_as_they_were_written() -> None:
    selection = WinnerSelection(
        "harbour", "kfold", "test", "k1=1", {"k1": 1, "b": None}, "nDCG@10", 9,
        {"nDCG@10": Figures(0.5, 0.4, (0.3, math.inf))}, [FoldWinner("k1=1", 3, 0.5, 0.25)],
        DefaultComparison(0.4, Difference(0.1, 0.0, 0.2, 0.04, wins=5, ties=2), Statistics(correction="none")),
    )  # fmt: skip
    finite = replace(selection, figures={"nDCG@10": Figures(0.5, 0.4, (0.3, 0.5))})
    assert parse_selection(finite.to_json()) == finite
    low, high = parse_selection(selection.to_json()).figures["nDCG@10"].interval
    assert (low, math.isnan(high)) == (0.3, True)
    objectives = [mean_of("nDCG@10"), COSTS["p95_ms"]]
    trials = [SearchTrial(0, "k1=1", [0.5, 2.0]), SearchTrial(1, "k1=2", [])]
    front = [FrontPoint(1, "k1=1", [0.5, 2.0], [0.4, 2.5])]
    search = Search("study", "tpe", objectives, trials, {"nDCG@10": {"": {"k1": 1.0}}}, front, "dev", "test")
    again = parse_search(search.to_json())
    assert [o.name for o in again.objectives] == ["nDCG@10", "p95_ms"]
    assert replace(again, objectives=objectives) == search
    for parse in (parse_search, parse_selection):
        with pytest.raises(ValueError, match="not a record of a se"):
            parse('{"default": null}')
