"""A sweep has one identity in Python and on the command line: each continues what the other started."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import runner
from retrievers import BM25
from runner.api.sweep import SweepBoard
from runner.evaluation.bench import Bench, MeasuredExperiment
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import ResultError
from tests.api.conftest import CHOSEN, DOCUMENTS, QRELS, QUERIES, list_runs, run_command

SWEEP = ("retriever=bm25", "retriever.k1=0.6,0.9,1.2")


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the combinations that are evaluated from now on."""
    names: list[str] = []
    measure = Bench.measure

    def note(bench: Bench, experiment: Experiment) -> MeasuredExperiment:
        names.append(experiment.name)
        return measure(bench, experiment)

    monkeypatch.setattr(Bench, "measure", note)
    return names


def test_the_board_has_the_figures_of_single_evaluations(data: runner.Dataset) -> None:
    board = runner.run_sweep(*SWEEP, dataset=data)
    assert sorted(run.swept["retriever.k1"] for run in board.runs) == ["0.6", "0.9", "1.2"]
    for run in board.runs:
        alone = runner.evaluate(BM25(k1=float(run.swept["retriever.k1"])), data, tracking_uri="none")
        assert run.means == alone.means
        assert run.rankings.to_frame().equals(alone.rankings.to_frame())
    assert board.best.name == board.runs[0].name == board.frame["name"][0]
    assert board.frame["nDCG@10"].tolist() == [run.means["nDCG@10"] for run in board.runs]
    assert board.frame["run"].tolist() == [run.run.id for run in board.runs if run.run]
    assert not board.failures


def test_python_continues_what_the_command_line_started(data: runner.Dataset, evaluated: list[str]) -> None:
    run_command("-m", "retriever=bm25", "retriever.k1=0.6,0.9")
    (parent,) = list_runs("sweep")
    assert len(evaluated) == 2
    board = runner.run_sweep(*SWEEP, dataset=data)
    assert len(evaluated) == 3
    assert len(board.runs) == 3
    again = runner.run_sweep(*SWEEP, dataset=data)
    assert len(evaluated) == 3
    assert board.parent is not None
    assert again.parent is not None
    assert again.parent.id == board.parent.id != parent.id  # other combinations have a report of their own
    assert again.frame.drop(columns="run").equals(board.frame.drop(columns="run"))


def test_the_command_line_continues_what_python_started(data: runner.Dataset, evaluated: list[str]) -> None:
    board = runner.run_sweep(*SWEEP, dataset=data)
    run_command("-m", *SWEEP)
    assert len(evaluated) == 3
    assert board.parent is not None
    assert [run.id for run in list_runs("sweep")] == [board.parent.id]


def test_an_interrupted_sweep_is_continued_on_the_other_side(
    data: runner.Dataset, evaluated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Bench.measure

    def interrupt(bench: Bench, experiment: Experiment) -> MeasuredExperiment:
        if len(evaluated) == 2:
            raise KeyboardInterrupt
        return measure(bench, experiment)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Bench, "measure", interrupt)
        runner.run_sweep(*SWEEP, "tracking.background=false", dataset=data)  # no process that may be slow to start
    (parent,) = list_runs("sweep")
    assert parent.status == "KILLED"
    run_command("-m", *SWEEP)
    assert len(evaluated) == 3
    (same,) = list_runs("sweep")
    assert (same.id, same.status) == (parent.id, "FINISHED")


@pytest.mark.usefixtures("here")
def test_values_in_memory_are_swept_and_continued(evaluated: list[str]) -> None:
    first, again = (
        runner.run_sweep(*SWEEP, dataset=runner.Dataset.of(DOCUMENTS, QUERIES, QRELS, name="DIR")) for _ in range(2)
    )
    assert len(evaluated) == 3
    assert first.parent is not None
    assert again.parent is not None
    assert first.parent.id == again.parent.id


def test_the_format_of_values_in_memory_is_in_no_list(given: runner.Dataset) -> None:
    assert runner.evaluate(BM25(), given, tracking_uri="none").config["choices"]["dataset"] == "_given"
    with pytest.raises(ValueError, match="dataset=gien: no such choice") as caught:
        runner.load_dataset("gien")
    assert "given" not in str(caught.value)


def test_threads_sweep_side_by_side(given: runner.Dataset) -> None:
    boards: dict[str, SweepBoard] = {}

    def run(retriever: str) -> None:
        words = (f"retriever={retriever}", "analyzer=english,plain", "tracking.background=false")
        boards[retriever] = runner.run_sweep(*words, dataset=given)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("bm25", "rank_bm25")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: len(board.runs) for name, board in boards.items()} == {"bm25": 2, "rank_bm25": 2}
    assert len(list_runs("sweep")) == 2


@pytest.mark.usefixtures("warm_workers")
def test_values_in_memory_reach_workers(given: runner.Dataset, data: runner.Dataset) -> None:
    words = (*SWEEP, "sweep.backend=loky", "sweep.workers=1")
    board = runner.run_sweep(*words, dataset=given, tracking_uri="none")
    assert not board.failures
    assert [run.means for run in board.runs] == [run.means for run in runner.run_sweep(*SWEEP, dataset=data).runs]


def test_without_tracking_nothing_is_logged_and_rankings_are_unavailable(data: runner.Dataset) -> None:
    board = runner.run_sweep(*SWEEP, dataset=data, tracking_uri="none")
    assert board.parent is None
    assert len(board.runs) == 3
    assert list_runs("sweep") == []
    with pytest.raises(ResultError, match="the rankings are not available, because the sweep was not logged"):
        _ = board.best.rankings


@pytest.mark.usefixtures("here")
def test_without_a_dataset_the_overrides_choose_it() -> None:
    board = runner.run_sweep(*SWEEP, *CHOSEN, tracking_uri="none")
    assert board.best.dataset.name == "DIR"


def test_several_datasets_have_a_leaderboard_each(data: runner.Dataset, here: Path) -> None:
    assert data.name == "DIR"
    (here / "DIR" / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")
    words = ("retriever=bm25", "dataset=beir", "dataset.path=DIR", "dataset.split=test,dev")
    board = runner.run_sweep(*words, tracking_uri="none")
    assert board.frame["split"].tolist() == ["test", "dev"]
    assert [run.dataset.split for run in board.runs] == ["test", "dev"]
    with pytest.raises(ResultError, match="several datasets, each with its own best run"):
        _ = board.best


def test_failed_combinations_are_listed(data: runner.Dataset) -> None:
    board = runner.run_sweep("retriever=run", "retriever.path=x.trec,y.trec", dataset=data, tracking_uri="none")
    assert len(board.failures) == 2
    assert board.runs == []
    with pytest.raises(ResultError, match="no combination finished; 2 failed"):
        _ = board.best
    assert "2 failed" in board._repr_html_()


def test_the_report_is_that_of_the_command_line(data: runner.Dataset, here: Path) -> None:
    board = runner.run_sweep(*SWEEP, dataset=data)
    report = board.report()
    assert board.parent is not None
    assert board.parent.folder is not None
    for name, text in report.files.items():
        assert (board.parent.folder / name).read_text() == text
    assert sorted(path.name for path in report.save(here / "out")) == sorted(report.files)
    assert (here / "out" / "report.html").read_text() == report.files["report.html"]
    assert report._repr_html_().startswith("<iframe srcdoc=")


def test_a_search_is_run_by_the_same_function(data: runner.Dataset) -> None:
    words = ("hydra/sweeper=optuna", "hydra.sweeper.n_trials=3", "hydra.sweeper.storage=memory")
    board = runner.run_sweep(
        "retriever=bm25", "retriever.k1=interval(0.2,2)", *words, "sweep.select_on=kfold", dataset=data
    )
    assert board.boards[0].leaderboard.search is not None
    assert board.best.means["nDCG@10"] > 0


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("retriever=bm26",), "retriever=bm26: no such choice"),
        (("retriever.k1=0.6,x",), "retriever.k1=x: should be a valid number"),
        (("dataset.split=dev",), "dataset.split=dev: the dataset is given as an argument"),
        (("-m", "retriever.k1=1,2"), "-m: run_sweep always runs a sweep; remove it"),
        ((["retriever=bm25"],), "['retriever=bm25']: should be an override, such as 'retriever.k1=0.9'"),
        (("sweep.dry_run=true",), "sweep.dry_run: run_sweep cannot return a plan; use the plan command"),
        (("hydra/sweeper=basic",), "hydra/sweeper: BasicSweeper returns no leaderboard; choose grid or optuna"),
    ],
)
def test_a_mistake_is_explained_in_one_line(data: runner.Dataset, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        runner.run_sweep(*overrides, dataset=data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_progress_is_printed(data: runner.Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    board = runner.run_sweep(*SWEEP, dataset=data)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "done 3 of 3" in printed.err
    page = board._repr_html_()
    assert page.count("<table") == 1
    assert "3 combinations" in page
    assert repr(board).startswith("SweepBoard(3 results, 0 failed, best: RunResult(")
