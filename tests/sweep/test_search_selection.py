"""Where a winner is chosen and where it is reported: other splits, and cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import hydra_plugins.retrieval_runner  # noqa: F401 (registers its nodes)
from runner.__main__ import main
from runner.evaluation.records import load_record
from runner.evaluation.result import Result
from runner.statistics.comparison import compare
from runner.sweep.study import PendingTrial, Study
from tests.sweep.searches import (
    DATA,
    INLINE,
    PLANE,
    SEARCH,
    TEST,
    artifacts,
    finished,
    parent,
    primary,
    results,
    rows,
    trials,
)


def test_the_winner_is_chosen_on_train_and_reported_on_test(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEARCH, *PLANE, *DATA, "hydra.sweeper.n_trials=8", "sweep.output=out"]) == 0
    best = max(results(here, "train"), key=lambda result: (result.means["nDCG@10"], result.name))
    (reported,) = (result for result in results(here, "test") if not result.name.startswith("default settings"))
    assert dict(reported.swept) == dict(best.swept)
    assert reported.config["dataset"]["split"] == "test"
    assert best.config["dataset"]["split"] == "train"
    tags, folder = parent(here)
    selected, there = best.means["nDCG@10"], reported.means["nDCG@10"]
    assert tags["best"] == f"{best.name} (test)"
    assert {
        key: tags[key]
        for key in ("selected_on", "reported_on", "selected_by", "selected", "reported", "split_difference")
    } == {
        "selected_on": "train",
        "reported_on": "test",
        "selected_by": "nDCG@10",
        "selected": f"{selected:.4f}",
        "reported": f"{there:.4f}",
        "split_difference": f"{selected - there:+.4f}",
    }
    ((default,),) = rows(here, "select run_uuid from runs where name = 'default settings (test)'")
    scores = load_record(artifacts(here, default)).of("nDCG@10")
    difference = float(np.nanmean(reported.of("nDCG@10") - scores))
    told = orjson.loads((folder / "selection.json").read_bytes())["default"]
    told = told["difference"]
    assert told["mean"] == pytest.approx(difference, abs=1e-9)
    assert told["p"] == pytest.approx(compare((reported.of("nDCG@10") - scores)[None]).p_values[0], abs=1e-9)
    assert tags["default_p"] == f"{told['p']:.4f}"
    for text in (capsys.readouterr().out, *((here / "out" / f"report.{kind}").read_text() for kind in ("md", "html"))):
        told = " ".join(text.split())
        for figure in ("Selected on train", f"{selected:.4f}", f"{there:.4f}"):
            assert figure in told
    assert primary(here) == there


@pytest.mark.parametrize("how", [("hydra/sweeper=optuna", "hydra.sweeper.n_trials=4"), ("hydra/sweeper=grid",)])
def test_what_is_selected_on_the_data_it_is_reported_on_is_stamped(
    here: Path, how: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", INLINE, *how, "retriever.k1=0.5,1,2,3", *DATA, TEST, "sweep.output=out"]) == 0
    stamp = "The best was selected on the data it is reported on (test), so its score is too high on average"
    assert stamp in " ".join(capsys.readouterr().out.split())
    assert stamp in (here / "out" / "report.html").read_text()
    assert stamp in (here / "out" / "report.md").read_text().replace("\\", "")
    assert not rows(here, "select * from runs where name like 'default settings%'")
    tags, _ = parent(here)
    assert tags["selected_on"] == tags["reported_on"] == "test"
    assert tags["selected_on_reported_data"] == "true"
    assert not results(here, "train")


def test_a_grid_is_a_comparison_unless_sweep_select_on_is_set(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = ["-m", INLINE, "retriever.k1=0.5,1,2", *DATA]
    assert main(grid) == 0
    tags, folder = parent(here)
    assert "selected_on" not in tags
    assert tags["selected_on_reported_data"] == "true"
    assert "The best was selected on the data it is reported on (test)" in " ".join(capsys.readouterr().out.split())
    assert not (folder / "selection.json").exists()
    assert main([*grid, "sweep.select_on=train"]) == 0
    assert parent(here)[0]["selected_on"] == "train"
    assert len(results(here, "train")) == 3
    assert len(results(here, "test")) == 4  # those of the comparison, and the default settings
    assert main([*grid, TEST]) == 0  # nothing to evaluate, and yet there is something to say
    assert parent(here)[0]["selected_on"] == "test"
    assert set(finished(here).values()) == {1}


def held_out(found: Sequence[Result], folds: Sequence[dict[str, Any]]) -> float:
    """Return the mean over the folds' own figures, weighted by their queries."""
    return sum(fold["held_out"] * fold["queries"] for fold in folds) / sum(fold["queries"] for fold in folds)


@pytest.mark.parametrize("how", [("hydra/sweeper=optuna", "hydra.sweeper.n_trials=8"), ("hydra/sweeper=grid",)])
def test_a_choice_may_be_cross_validated(here: Path, how: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["-m", INLINE, *how, "retriever.k1=0.3,0.9,1.5,3", "retriever.b=0,0.5,1", *DATA, "sweep.select_on=kfold"]
    assert main(command) == 0
    tags, folder = parent(here)
    told = orjson.loads((folder / "selection.json").read_bytes())
    figures = told["figures"]["nDCG@10"]
    assert [fold["queries"] for fold in told["folds"]] == [2] * 5
    assert figures["reported"] == pytest.approx(held_out([], told["folds"]))
    assert tags["reported"] == f"{figures['reported']:.4f}"
    candidates = {trial["combination"] for trial in trials(here)} if "optuna" in how[0] else set(finished(here))
    ids = dict(rows(here, "select run_uuid, value from tags where key = 'combination'"))
    means = [
        load_record(artifacts(here, run)).means["nDCG@10"]
        for run, combination in ids.items()
        if combination in candidates
    ]
    assert figures["selected"] == max(means)
    out = capsys.readouterr()
    assert "Nested cross-validation over 10 queries of test: the selection has nDCG@10" in " ".join(out.out.split())
    assert "Against the default settings" in " ".join(out.out.split())
    leads = [line.partition("best: nDCG@10 ")[2].partition(" ")[0] for line in out.err.splitlines() if "best:" in line]
    assert leads == [f"{max(means):.4f}"], "the folds' own candidates are not ranked"
    assert primary(here) == pytest.approx(figures["reported"])
    before = rows(here, "select * from runs")
    assert main(command) == 0
    assert rows(here, "select * from runs") == before


def test_a_folds_study_never_sees_the_queries_of_its_fold(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each study is told is the mean over the queries of the other folds, as far as can be told apart."""
    told: dict[int, list[tuple[str, float]]] = {}
    tell = Study.tell

    def spied(self: Study, asked: PendingTrial, combination: str, values: Sequence[float] | None) -> None:
        assert values is not None
        told.setdefault(id(self), []).append((combination, values[0]))
        tell(self, asked, combination, values)

    monkeypatch.setattr("runner.sweep.study.Study.tell", spied)
    assert main([*SEARCH, *PLANE, *DATA, "sweep.select_on=kfold", "hydra.sweeper.n_trials=3"]) == 0
    runs = dict(rows(here, "select value, run_uuid from tags where key = 'combination'"))
    scores = {combination: load_record(artifacts(here, run)).of("nDCG@10") for combination, run in runs.items()}
    main_study, *of_folds = told.values()
    assert [value for _, value in main_study] == pytest.approx([scores[c].mean() for c, _ in main_study])
    assert len(of_folds) == 5
    pairs = [(i, j) for i in range(10) for j in range(i)]
    left_out = []
    for study in of_folds:
        rest = {pair: np.delete(np.arange(10), pair) for pair in pairs}
        fits = [p for p in pairs if all(scores[c][rest[p]].mean() == pytest.approx(v, abs=1e-12) for c, v in study)]
        assert fits
        left_out.append(fits)
    assert any(len(fits) == 1 for fits in left_out)


def test_a_search_without_another_split_is_cross_validated(here: Path) -> None:
    axes = ("retriever.k1=interval(0.5,2)", "dataset.max_queries=12", "hydra.sweeper.n_trials=3")
    assert main([*SEARCH, *axes]) == 0
    assert parent(here)[0]["selected_on"] == "kfold"


def test_on_scifact_the_choice_on_train_is_reported_on_test(here: Path, collections: Path) -> None:
    if not (collections / "scifact").is_dir():
        pytest.skip(f"no scifact in {collections}")
    data = ("dataset=beir", f"dataset.path={collections / 'scifact'}", "dataset.max_queries=150")
    assert main([*SEARCH, *PLANE, *data, "hydra.sweeper.n_trials=5"]) == 0
    told = orjson.loads((parent(here)[1] / "selection.json").read_bytes())
    assert (told["on"], told["reported_on"]) == ("train", "test")
    assert 0.5 < told["figures"]["nDCG@10"]["reported"] < 0.9
