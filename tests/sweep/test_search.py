from __future__ import annotations

import csv
import math
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import orjson
import pytest
from hydra.core.config_store import ConfigStore

import hydra_plugins.retrieval_runner  # noqa: F401 (registers its nodes)
from runner.__main__ import main
from runner.analysis.comparison import compare
from runner.comparison.criteria import COSTS
from runner.records import load_record
from runner.result import Result
from runner.sweep.search import SearchSettings, _at_once
from runner.sweep.settings import SweepSettings
from runner.sweep.study import PendingTrial, Study
from runner.tracking.settings import Tracking
from tests.test_docs import chapters, documented, page
from tests.warm import start_command

INLINE = "tracking.background=false"
SEARCH = ("-m", "hydra/sweeper=optuna", INLINE)
PLANE = ("retriever.k1=interval(0.1,3)", "retriever.b=range(0,1.1,0.1)")
DATA = ("dataset=beir", "dataset.path=data")
TEST = "sweep.select_on=test"

WORDS = ["pier", "lamp", "ship", "gull", "rope", "tide", "buoy", "crane", "net", "salt", "fog", "bell", "quay", "oar"]


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, and in `data` a dataset with a train split."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, range(1, len(WORDS) + 1), k=rng.randrange(4, 40))) for _ in range(40)]
    queries = {f"q{i}": rng.sample(WORDS, 3) for i in range(24)}
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    lines = [orjson.dumps({"_id": f"d{i}", "text": text}) + b"\n" for i, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_bytes(b"".join(lines))
    asked = [orjson.dumps({"_id": i, "text": " ".join(words)}) + b"\n" for i, words in queries.items()]
    (folder / "queries.jsonl").write_bytes(b"".join(asked))
    rows = {split: "query-id\tcorpus-id\tscore\n" for split in ("train", "test")}
    for i, query in enumerate(queries):
        for document in rng.sample(range(40), 3):
            rows["train" if i < 14 else "test"] += f"{query}\td{document}\t1\n"
    for split, text in rows.items():
        (folder / "qrels" / f"{split}.tsv").write_text(text)
    return tmp_path


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as database:
        return database.execute(query).fetchall()


def finished(folder: Path) -> Counter[str]:
    """Return how many finished runs each combination has."""
    query = "select value from tags join runs using (run_uuid) where key = 'combination' and status = 'FINISHED'"
    return Counter(value for (value,) in rows(folder, query))


def parent(folder: Path) -> tuple[dict[str, str], Path]:
    """Return the tags of the latest sweep's run, and the folder of its artifacts."""
    query = "select run_uuid from tags join runs using (run_uuid) where key = 'kind' and value = 'sweep'"
    *_, (run,) = rows(folder, f"{query} order by start_time")
    return dict(rows(folder, f"select key, value from tags where run_uuid = '{run}'")), artifacts(folder, run)


def primary(folder: Path) -> float:
    """Return what the sweep's run has as its primary measure."""
    run = parent(folder)[1].parent.name
    query = f"select value from latest_metrics where key = 'ndcg_at_10' and run_uuid = '{run}'"
    ((value,),) = rows(folder, query)
    return float(value)


def artifacts(folder: Path, run: str) -> Path:
    return folder / "mlruns" / "artifacts" / run / "artifacts"


def results(folder: Path, split: str) -> list[Result]:
    """Return the records of the runs on a split."""
    found = rows(folder, f"select run_uuid from tags where key = 'dataset' and value like '%/{split}'")
    return [load_record(artifacts(folder, run)) for (run,) in found]


def trials(folder: Path) -> list[dict[str, str]]:
    with (parent(folder)[1] / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def studies(folder: Path) -> list[optuna.Study]:
    storage = f"sqlite:///{folder}/mlruns/optuna.db"
    return [optuna.load_study(study_name=name, storage=storage) for name in optuna.get_all_study_names(storage)]


def completed(folder: Path) -> int:
    """Return how many trials are complete, without a hand in the database that another process is making."""
    file = folder / "mlruns" / "optuna.db"
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as database:
        try:
            ((count,),) = database.execute("select count(*) from trials where state = 'COMPLETE'").fetchall()
        except sqlite3.OperationalError:  # no tables yet
            return 0
    return int(count)


def points(folder: Path) -> list[tuple[str, str]]:
    return [(trial["retriever.k1"], trial["retriever.b"]) for trial in trials(folder)]


def test_a_search_logs_what_it_asked_for_and_keeps_its_study(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEARCH, *PLANE, *DATA, "hydra.sweeper.n_trials=12"]) == 0
    (study,) = studies(here)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 12
    tags, folder = parent(here)
    assert study.user_attrs == {"sweep": tags["sweep_id"], "objectives": ["nDCG@10"], "selected_on": "train"}
    measured = results(here, "train")
    assert [trial["combination"] for trial in trials(here)] == [t.user_attrs["combination"] for t in study.trials]
    assert len(measured) == len({trial["combination"] for trial in trials(here)})
    assert study.best_value == max(result.means["nDCG@10"] for result in measured)
    shares = orjson.loads((folder / "importances.json").read_bytes())["nDCG@10"][""]
    assert set(shares) == {"retriever.k1", "retriever.b"}
    out = capsys.readouterr()
    assert "12 trials (tpe) requested 12 combinations" in out.out
    assert [line.partition(" in ")[0] for line in out.err.splitlines() if line.startswith("done ")] == [
        "done 12 of 12",
        "done 1 of 1",
        "done 1 of 1",
    ]
    assert [line for line in out.err.splitlines() if "best:" in line and line.startswith("done 1 of 1")] == []


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
    assert told["difference"] == pytest.approx(difference, abs=1e-9)
    assert told["p"] == pytest.approx(compare((reported.of("nDCG@10") - scores)[None]).p_values[0], abs=1e-9)
    assert tags["default_p"] == f"{told['p']:.4f}"
    for text in (capsys.readouterr().out, *((here / "out" / f"report.{kind}").read_text() for kind in ("md", "html"))):
        told = " ".join(text.split())
        for figure in ("Selected on train", f"{selected:.4f}", f"{there:.4f}"):
            assert figure in told
    assert primary(here) == there


def test_the_same_command_again_does_nothing_and_says_the_same(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SEARCH, *PLANE, *DATA, "hydra.sweeper.n_trials=5", "hydra.sweeper.objectives=[nDCG@10,mean_ms]"]
    assert main(command) == 0
    first, before = capsys.readouterr().out, rows(here, "select * from runs")
    files = sorted((path, path.stat().st_mtime_ns) for path in here.rglob("artifacts/**/*"))
    assert main(command) == 0
    assert capsys.readouterr().out == first
    assert rows(here, "select * from runs") == before
    assert sorted((path, path.stat().st_mtime_ns) for path in here.rglob("artifacts/**/*")) == files
    assert [len(study.trials) for study in studies(here)] == [5]


def test_more_trials_go_on_where_the_search_stopped_as_if_it_had_not(
    here: Path, migrated: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*SEARCH, *PLANE, *DATA, "sweep.name=in two parts"]
    assert main([*command, "hydra.sweeper.n_trials=4"]) == 0
    (study,) = studies(here)
    with pytest.MonkeyPatch.context() as patch:  # a trial that its process did not live to tell
        patch.setattr("runner.sweep.study.Study.tell", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        assert main([*command, "hydra.sweeper.n_trials=12"]) == 130
    assert main([*command, "hydra.sweeper.n_trials=12"]) == 0
    assert Counter(trial.state.name for trial in study.trials) == {"COMPLETE": 12, "FAIL": 1}
    assert set(finished(here).values()) == {1}
    assert len(points(here)) == 12
    whole = tmp_path_factory.mktemp("whole")
    shutil.copytree(here / "data", whole / "data")
    shutil.copytree(migrated.parent, whole / "mlruns")
    in_two = points(here)
    monkeypatch.chdir(whole)
    assert main([*command, "hydra.sweeper.n_trials=12"]) == 0
    assert points(whole) == in_two


def test_an_answer_that_was_cut_short_is_told_anew_in_another_study(here: Path) -> None:
    command = [*SEARCH, *PLANE, *DATA]
    assert main([*command, "hydra.sweeper.n_trials=4"]) == 0
    with pytest.MonkeyPatch.context() as patch:  # its combination is written, and not what came of it
        patch.setattr("runner.sweep.study.Study._end", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        assert main([*command, "hydra.sweeper.n_trials=5"]) == 130
    assert main([*command, "hydra.sweeper.n_trials=6"]) == 0
    first, second = studies(here)
    assert Counter(trial.state.name for trial in first.trials) == {"COMPLETE": 4, "FAIL": 1}
    assert Counter(trial.state.name for trial in second.trials) == {"COMPLETE": 6}
    assert set(finished(here).values()) == {1}


def test_a_search_that_is_killed_goes_on_as_if_it_had_not_been(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SEARCH[:-1], *PLANE, *DATA, "hydra.sweeper.n_trials=300", "sweep.output=out"]
    process = start_command(command, here)
    until = time.monotonic() + 120
    while (done := completed(here)) < 5 and process.is_alive() and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.join()
    done = completed(here)
    assert 5 <= done < 100
    total = done + 3
    assert main([*SEARCH, *PLANE, *DATA, f"hydra.sweeper.n_trials={total}"]) == 0
    states = Counter(trial.state.name for trial in studies(here)[-1].trials)  # another one if it died amid an answer
    assert states["COMPLETE"] == total
    assert states["RUNNING"] == 0
    assert set(finished(here).values()) == {1}
    assert f"{total} trials (tpe)" in capsys.readouterr().out


def test_points_of_a_grid_of_the_same_name_and_repeated_ones_are_not_evaluated_again(here: Path) -> None:
    axes = ("retriever.k1=0.5,1,2", "retriever.b=0.1,0.9")
    assert main(["-m", INLINE, *axes, *DATA, "sweep.select_on=train"]) == 0
    before = finished(here)
    assert main([*SEARCH, *axes, *DATA, "hydra.sweeper.n_trials=15"]) == 0
    assert finished(here) == before
    assert len(trials(here)) == 15
    assert len(set(points(here))) <= 6


def test_conditions_and_exclusions_hold_for_every_trial(here: Path) -> None:
    union = (
        "sweep.union=[{retriever:bm25,retriever.k1:'interval(0.1,3)',retriever.variant:[lucene,bm25+]},"
        "{retriever:sqlite_fts,retriever.tokenizer:[unicode61,porter]}]"
    )
    when, exclude = (
        "sweep.when={retriever.k1:'retriever.variant == lucene'}",
        "sweep.exclude=['retriever.tokenizer == porter']",
    )
    assert (
        main([*SEARCH, union, when, exclude, *DATA, "hydra.sweeper.n_trials=16", "hydra.sweeper.sampler=random"]) == 0
    )
    found = trials(here)
    assert {trial["retriever"] for trial in found} == {"bm25", "sqlite_fts"}
    assert {trial["retriever.tokenizer"] for trial in found} == {"", "unicode61"}
    assert all(bool(trial["retriever.k1"]) == (trial["retriever.variant"] == "lucene") for trial in found)


def test_several_objectives_have_a_front_with_both_figures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objectives = "hydra.sweeper.objectives=[index_s,nDCG@10,R@1]"
    axes = ("retriever=bm25,sqlite_fts,rank_bm25", "analyzer=english,plain")
    assert main([*SEARCH, *axes, *DATA, objectives, "hydra.sweeper.sampler=grid", "sweep.output=out"]) == 0
    with (parent(here)[1] / "pareto.csv").open() as file:
        found = list(csv.DictReader(file))
    chosen_on = {r.name: (r.means["nDCG@10"], -r.timings.index_s, r.means["R@1"]) for r in results(here, "train")}

    def beaten(name: str) -> bool:
        mine = chosen_on[name]
        return any(
            all(o >= m for o, m in zip(other, mine, strict=True)) and other != mine for other in chosen_on.values()
        )

    assert {row["combination"] for row in found} == {name for name in chosen_on if not beaten(name)}
    there = {result.name: result for result in results(here, "test")}
    for row in found:
        assert float(row["nDCG@10 on train"]) == chosen_on[row["combination"]][0]
        assert float(row["index_s on test"]) == there[f"{row['combination']} (test)"].timings.index_s
    assert "Pareto front" in capsys.readouterr().out
    assert "Pareto front" in (here / "out" / "report.md").read_text()
    assert "Pareto front" in (here / "out" / "report.html").read_text()


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


def test_a_grid_is_a_comparison_unless_it_is_told_where_to_choose(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert "Nested cross-validation over 10 queries of test (5 folds)" in " ".join(out.out.split())
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


def test_where_there_is_no_other_split_a_search_is_cross_validated(here: Path) -> None:
    axes = ("retriever.k1=interval(0.5,2)", "dataset.max_queries=12", "hydra.sweeper.n_trials=3")
    assert main([*SEARCH, *axes]) == 0
    assert parent(here)[0]["selected_on"] == "kfold"


def test_changed_code_is_a_new_study_with_the_values_of_now(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=3"]
    assert main(command) == 0
    (old,) = studies(here)
    monkeypatch.setattr("runner.sweep.identity.hash_code", lambda module: f"new {module}")
    monkeypatch.setattr("runner.metrics.scores.Scores.means", lambda self: {str(m): 0.5 for m in self.measures})
    assert main([*command[:-1], "hydra.sweeper.n_trials=4"]) == 0
    _, new = studies(here)
    assert [trial.values for trial in new.trials] == [[0.5]] * 4
    assert [trial.params for trial in new.trials[:3]] == [trial.params for trial in old.trials]


def test_a_search_afresh_is_a_study_and_a_sweep_of_its_own(here: Path) -> None:
    command = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=3"]
    assert main(command) == 0
    assert main([*command, "sweep.resume=false"]) == 0
    assert [len(study.trials) for study in studies(here)] == [3, 3]
    assert set(finished(here).values()) == {2}


def test_what_failed_is_told_so_and_tried_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=3"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrievers.bm25.BM25Searcher.search", lambda *_: 1 / 0)
        assert main(command) == 1
    assert "All combinations failed" in capsys.readouterr().out
    assert [trial.state.name for trial in studies(here)[0].trials] == ["FAIL"] * 3
    assert main(command) == 0
    assert [trial.state.name for trial in studies(here)[-1].trials] == ["COMPLETE"] * 3


def test_a_failure_may_end_a_search(here: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrievers.bm25.BM25Searcher.search", lambda *_: 1 / 0)
        assert main([*SEARCH, *PLANE, *DATA, TEST, "sweep.fail_fast=true"]) == 1
    assert len(studies(here)[0].trials) == 1


def test_what_was_not_timed_cannot_be_searched_for_by_its_time(here: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        never = replace(COSTS["mean_ms"], value=lambda result: math.nan)
        patch.setattr("runner.comparison.criteria.COSTS", {**COSTS, "mean_ms": never})
        arguments = [*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.objectives=[nDCG@10,mean_ms]"]
        assert main([*arguments, "hydra.sweeper.n_trials=2"]) == 0
    assert [trial.state.name for trial in studies(here)[0].trials] == ["FAIL"] * 2


def test_a_batch_is_as_large_as_there_are_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = []
    ask = Study.ask

    def spied(self: Study, n: int) -> list[PendingTrial]:
        batches.append(n)
        return ask(self, n)

    assert _at_once(SweepSettings()) == 1
    assert _at_once(SweepSettings(backend="loky", workers=3)) == 3
    monkeypatch.setattr("runner.sweep.study.Study.ask", spied)
    monkeypatch.setattr("runner.sweep.search._at_once", lambda settings: 2)
    assert main([*SEARCH, *PLANE, *DATA, TEST, "hydra.sweeper.n_trials=5"]) == 0
    assert batches == [2, 2, 1]
    assert set(finished(here).values()) == {1}
    assert len(finished(here)) == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hydra.sweeper.n_trails=3"], "hydra.sweeper.n_trails: no such setting; did you mean hydra.sweeper.n_trials?"),
        (["hydra.sweeper.n_trials=0"], "hydra.sweeper.n_trials=0: should be greater than or equal to 1"),
        (["hydra.sweeper.sampler=tpee"], "hydra.sweeper.sampler=tpee: should be 'tpe'"),
        (["hydra.sweeper.sampler=grid"], "cannot enumerate the interval of retriever.k1=interval(0.1,3)"),
        (["hydra.sweeper.objectives=[nDGC@10]"], "nDGC@10 is not measured; did you mean nDCG@10?"),
        (["hydra.sweeper.objectives=[nDCG@10,Judged@10]"], "Judged@10 describes the judgments, not the retriever"),
        (["hydra.sweeper.objectives=[RR]"], "the primary measure nDCG@10 is missing"),
        (["hydra.sweeper.storage=nowhere"], "hydra.sweeper.storage=nowhere: cannot be opened"),
        (["sweep.select_on=dev"], "sweep.select_on=dev: no such split; the dataset's other splits are train"),
        (
            ["sweep.select_on=dev", "dataset=golden", "~dataset.path"],
            "sweep.select_on=dev: no such split; the dataset has no other split",
        ),
        (["sweep.select_on=kfold", "dataset.max_queries=1"], "sweep.select_on=kfold: data has 1 queries with gold"),
        (["sweep.sample=3"], "sweep.sample: has no effect on a search"),
        (["retriever.k2=interval(0,1)"], "retriever.k2: no such setting; did you mean retriever.k1?"),
        (["retriever.b=interval(-1,1)"], "retriever.b=-1.0: should be greater than or equal to 0"),
        (["dataset.split=train,test"], "dataset.split: cannot be an axis"),
        (["dataset.max_queries=3,4"], "dataset: a search supports only one"),
        (["sweep.exclude='retriever.k1 > 0'"], "the conditions exclude all combinations"),
        (["metrics.primary=AP,RR"], "a sweep needs one primary measure"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_done(
    here: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [d for d in DATA if "dataset=golden" not in arguments]
    assert main([*SEARCH, "retriever.k1=interval(0.1,3)", *data, *(a for a in arguments if a[0] != "~")]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not rows(here, "select * from runs")


def test_on_scifact_the_choice_on_train_is_reported_on_test(here: Path, collections: Path) -> None:
    if not (collections / "scifact").is_dir():
        pytest.skip(f"no scifact in {collections}")
    data = ("dataset=beir", f"dataset.path={collections / 'scifact'}", "dataset.max_queries=150")
    assert main([*SEARCH, *PLANE, *data, "hydra.sweeper.n_trials=5"]) == 0
    told = orjson.loads((parent(here)[1] / "selection.json").read_bytes())
    assert (told["on"], told["reported_on"]) == ("train", "test")
    assert 0.5 < told["figures"]["nDCG@10"]["reported"] < 0.9


def test_every_setting_is_documented_with_its_default() -> None:
    """In `docs/search.md`, as it is in Hydra's node and in the class that checks it."""
    node = dict(ConfigStore.instance().load("hydra/sweeper/optuna.yaml").node)
    assert documented(chapters(page("docs/search.md"))["Settings"]) == {k: v for k, v in node.items() if k[0] != "_"}
    assert asdict(SearchSettings()) == {k: v for k, v in node.items() if k[0] != "_" and k != "params"}
