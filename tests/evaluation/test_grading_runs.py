"""Runs and sweeps with a language model that grades, from the command line to MLflow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from retrievers.base import NOTHING, Rankings
from retrievers.lexical.bm25 import BM25Searcher
from runner.__main__ import main
from runner.evaluation.records import load_record
from runner.features.judge.sheet import load_sheet, save_sheet
from runner.tracking.settings import Tracking
from tests.fake_llm import FakeLLM

N = 12
DATA = ("dataset=jsonl", "dataset.documents=d.jsonl", "dataset.queries=q.jsonl", "tracking.background=false")
ANSWERS = ("dataset.query_answer=answer", "grading.document_pattern=(.+)_\\d+")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, and a small dataset of chunks."""
    monkeypatch.chdir(tmp_path)
    words = ["lighthouse", "ferry", "museum", "market", "island", "harbour"]
    documents = [{"id": f"{word}_{i}", "text": f"the {word} part {i}"} for word in words for i in range(2)]
    queries = [
        {"id": f"q{i}", "text": f"{words[i % 6]} {i}", "gold": [f"{words[i % 6]}_1"], "answer": f"answer {i}"}
        for i in range(N)
    ]
    for name, rows in (("d.jsonl", documents), ("q.jsonl", queries)):
        (tmp_path / name).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return tmp_path


@pytest.fixture
def server() -> Iterator[FakeLLM]:
    with FakeLLM() as fake:
        yield fake


@pytest.fixture
def runs(here: Path) -> Callable[[], list[Run]]:
    """Return a function that lists the runs logged so far, the first one first."""

    def listed() -> list[Run]:
        client = MlflowClient(f"sqlite:///{here}/mlruns/mlflow.db")
        experiment = client.get_experiment_by_name("retrieval")
        assert experiment is not None
        return list(client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"]))

    return listed


def judged_by(server: FakeLLM, *more: str) -> list[str]:
    return [*asking(server), *ANSWERS, "grading.backoff_s=0", *more]


def asking(server: FakeLLM) -> list[str]:
    return [*DATA, "llm=openai", "llm.model=m", f"llm.base_url={server.url}"]


def artifacts(run: Run) -> Path:
    return Path(run.info.artifact_uri.removeprefix("file://"))


def test_without_a_language_model_nothing_is_graded_and_nothing_said_of_it(
    runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever=bm25", *DATA]) == 0
    (run,) = runs()
    assert not [name for name in (*run.data.metrics, *run.data.params) if name.startswith(("grad", "llm", "hit_at"))]
    assert not (artifacts(run) / "grades.parquet").exists()
    assert "grade" not in capsys.readouterr().out


def test_with_a_language_model_every_question_is_graded(
    server: FakeLLM, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever=bm25", *judged_by(server, "llm.budget=this")]) == 0
    (run,) = runs()
    assert len(server.asked) == N
    assert all("answer" in asked.question and "[Chunk 1 - " in asked.question for asked in server.asked)
    metrics = run.data.metrics
    table = pq.read_table(artifacts(run) / "grades.parquet").to_pydict()
    assert metrics["grade/mean"] == pytest.approx(sum(table["grade"]) / N)
    assert metrics["grade/total_score"] == pytest.approx(sum(table["total_score"]) / N)
    assert metrics["grade/failures"] == 0
    assert metrics["hit_at_1"] == metrics["hit_at_5"] == metrics["grade/mrr"] == 1  # either chunk of the document is
    assert metrics["mrr"] < 1  # a hit, but the gold chunk itself is not always the first
    grades = load_record(artifacts(run)).grades
    assert grades is not None
    assert grades.figures()["grade/mean"] == pytest.approx(metrics["grade/mean"])
    assert run.data.tags["judge_prompt"] == grades.prompt
    assert (metrics["llm/grade/calls"], metrics["llm/grade/failures"]) == (N, 0)
    assert metrics["llm/grade/tokens_in"] == metrics["grade/tokens_in"]
    shown = capsys.readouterr()
    assert "total score" in shown.out
    assert f"language model: {N} calls, " in " ".join(shown.err.split())


def test_each_run_is_fresh(server: FakeLLM, runs: Callable[[], list[Run]]) -> None:
    for times in (1, 2):
        assert main(["retriever=bm25", *judged_by(server)]) == 0
        assert len(server.asked) == times * N
    assert not list(Path("mlruns/grading").glob("*.jsonl"))


def test_a_cache_that_is_on_grades_again_for_nothing_and_says_so(
    server: FakeLLM, runs: Callable[[], list[Run]]
) -> None:
    for _ in range(2):
        assert main(["retriever=bm25", *judged_by(server, "llm.cache=true")]) == 0
    assert len(server.asked) == N
    assert [run.data.metrics["grade/cached"] for run in runs()] == [0, N]


def test_a_budget_that_ends_keeps_what_was_graded_and_the_same_command_goes_on(
    server: FakeLLM, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["retriever=bm25", *judged_by(server, "llm.max_calls=7")]
    assert main(command) == 0
    assert len(server.asked) == 7
    assert "5 of 12 verdicts are missing (llm.max_calls=7" in capsys.readouterr().err
    (run,) = runs()
    assert (run.data.metrics["grade/unasked"], run.data.metrics["grade/failures"]) == (5, 0)
    assert pq.read_table(artifacts(run) / "grades.parquet")["grade"].null_count == 5
    assert main([*command, "llm.budget=another"]) == 0
    assert len(server.asked) == N
    assert runs()[-1].data.metrics["grade/unasked"] == 0


def test_a_sweep_grades_all_combinations_under_one_budget_and_resumes(
    server: FakeLLM, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-m", "retriever=bm25", "retriever.k1=0.9,1.2", "retriever.b=0.1", *judged_by(server)]
    assert main([*command, "llm.max_calls=17", "llm.budget=one"]) == 0
    assert len(server.asked) == 17
    children = [run for run in runs() if "mlflow.parentRunId" in run.data.tags]
    assert [run.data.metrics["grade/unasked"] for run in children] == [0, 7]
    assert next(run for run in runs() if run.data.tags["kind"] == "sweep").data.metrics["llm/grade/calls"] == 17
    capsys.readouterr()
    assert main(["plan", "--json", *command[1:], "llm.price_in=1", "llm.price_out=2"]) == 0
    planned = orjson.loads(capsys.readouterr().out)
    assert (planned["finished"], len(planned["to_do"])) == (1, 1)  # one is not graded yet
    (calls,) = planned["calls"]
    assert (calls["purpose"], calls["calls"], calls["rough"]) == ("grade", N, False)
    assert calls["cost"] == pytest.approx((calls["tokens_in"] + 2 * calls["tokens_out"]) / 1e6, rel=0.01)
    assert main([*command, "llm.max_calls=100", "llm.budget=two"]) == 0
    assert len(server.asked) == 2 * N
    last = runs()[-1]
    assert last.data.metrics["grade/unasked"] == 0
    assert main([*command, "llm.max_calls=100", "llm.budget=two"]) == 0
    assert len(server.asked) == 2 * N  # all is finished, grades too


def test_a_sweep_whose_searches_a_budget_crippled_is_not_finished(
    server: FakeLLM, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-m", "retriever=expanded", "retriever.n=2,3", "grading=none", "retriever.threads=1", *asking(server)]
    assert main([*command, "llm.max_calls=5"]) == 0
    assert capsys.readouterr().err.count("some searches failed with errors that may be temporary") == 1
    assert main([*command, "llm.max_calls=5000"]) == 0
    assert len(server.asked) > 2 * N
    shown = capsys.readouterr().err
    assert "already finished" not in shown
    assert "another time" not in shown
    assert main([*command, "llm.max_calls=5000"]) == 0
    assert "all 2 combinations are already finished" in capsys.readouterr().err


def test_a_search_that_a_budget_crippled_says_so(
    server: FakeLLM, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever=expanded", "grading=none", *asking(server), "llm.max_calls=5"]) == 0
    assert "expanded: some searches failed" in capsys.readouterr().err


def test_only_grades_lost_to_temporary_errors_are_requested_again(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["-m", "retriever=bm25", "retriever.k1=0.9", "llm.retries=0", "llm.concurrency=1"]
    with FakeLLM(script=["server", "refusal"]) as fake:
        assert main([*command, *judged_by(fake)]) == 0
        assert len(fake.asked) == N
        assert "errors that may be temporary left some results without a grade" in capsys.readouterr().err
        assert main([*command, *judged_by(fake)]) == 0
        assert fake.counts == {"server": 1, "refusal": 1, "ok": N - 1}
        assert main([*command, *judged_by(fake)]) == 0
        assert "all 1 combinations are already finished" in capsys.readouterr().err  # what was refused would be again


def test_a_golden_sweep_over_judges_has_all_reports_but_the_golden_one(
    server: FakeLLM, here: Path, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    judge = ["llm=openai", "llm.model=one,other", f"llm.base_url={server.url}", "grading.backoff_s=0"]
    data = ["dataset=golden", "dataset.max_queries=3", "tracking.background=false"]
    assert main(["-m", "retriever=bm25", *data, *judge]) == 0
    assert "the golden report could not be written: " in capsys.readouterr().err
    (sweep,) = [run for run in runs() if run.data.tags["kind"] == "sweep"]
    names = {file.name for file in artifacts(sweep).iterdir()}
    assert {"report.html", "report.md", "leaderboard.csv"} <= names
    assert not [name for name in names if name.startswith("eval_")]


def test_a_key_that_is_missing_is_one_line_and_no_run(
    here: Path, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["retriever=bm25", *DATA, "llm=openai", "llm.model=m"]) == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err


def test_a_sweeps_pool_is_judged_and_scored_without_and_with(
    server: FakeLLM, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "retriever=bm25", "retriever.k1=0.9,1.2", *DATA]) == 0
    (sweep,) = [run for run in runs() if run.data.tags["kind"] == "sweep"]
    capsys.readouterr()
    judge = ["judge", f"run={sweep.info.run_id[:8]}", "output=judged", "llm=openai", "llm.model=m"]
    judge += [f"llm.base_url={server.url}", "judging.backoff_s=0", "judging.depth=3"]
    assert main([*judge, "llm.max_calls=4"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"stopped after 4 of \d+ pairs in", shown.err)
    unsent = r"(\d+) of \d+ pairs have no verdict, and \1 of these were not sent to the model \(.*the same command"
    assert re.search(unsent, shown.err)
    assert len((Path("judged") / "judgments.tsv").read_text().splitlines()) == 1 + 4
    assert main(judge) == 0
    standings = orjson.loads((Path("judged") / "standings.json").read_bytes())
    assert len(standings) == 2
    assert all(each["before"]["judged"] < each["after"]["judged"] == 1 for each in standings)
    verdicts = [orjson.loads(line) for line in (Path("judged") / "verdicts.jsonl").read_bytes().splitlines()]
    assert len(server.asked) == len(verdicts) > 4
    assert [file.name for file in Path("judged").glob("*.jsonl")] == ["verdicts.jsonl"]  # the journal is forgotten


def test_a_run_is_judged_in_one_folder_however_much_of_its_id_is_typed(
    server: FakeLLM, runs: Callable[[], list[Run]]
) -> None:
    assert main(["retriever=bm25", *DATA]) == 0
    (run,) = runs()
    judge = ["llm=openai", "llm.model=m", f"llm.base_url={server.url}", "judging.backoff_s=0", "judging.depth=3"]
    assert main(["judge", f"run={run.info.run_id[:4]}", *judge, "llm.max_calls=4"]) == 0
    assert len(server.asked) == 4
    assert main(["judge", f"run={run.info.run_id[:12].upper()}", *judge]) == 0
    (folder,) = Path("mlruns/judgments").iterdir()
    assert folder.name == run.info.run_id
    assert len(server.asked) == len((folder / "verdicts.jsonl").read_bytes().splitlines()) > 4


def test_a_failed_query_counts_in_no_standing(
    server: FakeLLM, runs: Callable[[], list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        whole = BM25Searcher.search

        def search(self: BM25Searcher, queries: Sequence[str], k: int, *rest: Any) -> Rankings:
            found = whole(self, queries, k, *rest)
            found.documents[0], found.scores[0] = NOTHING, -np.inf
            return replace(found, errors={0: "TimeoutError: no answer"})

        patch.setattr("retrievers.lexical.bm25.BM25Searcher.search", search)
        assert main(["retriever=bm25", *DATA]) == 1  # of a query that raised an error
    (run,) = runs()
    judge = ["judge", f"run={run.info.run_id[:8]}", "output=judged", "llm=openai", "llm.model=m", "judging.depth=3"]
    assert main([*judge, f"llm.base_url={server.url}"]) == 0
    (standing,) = orjson.loads((Path("judged") / "standings.json").read_bytes())
    assert standing["before"]["irrelevant"] == pytest.approx(run.data.metrics["ndcg_at_10"])


@pytest.mark.parametrize(
    ("word", "said"), [("12e4567", "12e4567: no run id starts with this"), ("main", "main: no run id starts with this")]
)
def test_a_judge_reads_an_id_as_it_was_typed(
    word: str, said: str, server: FakeLLM, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever=bm25", *DATA]) == 0
    assert main(["judge", f"run={word}", "llm=openai", "llm.model=m", f"llm.base_url={server.url}"]) == 2
    assert said in capsys.readouterr().err


def test_a_judge_needs_a_run_and_a_model(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "llm=openai", "llm.model=m"]) == 2
    assert "run: is required" in capsys.readouterr().err
    assert main(["judge", "run=0123"]) == 2
    assert "llm=none: judging needs a language model" in capsys.readouterr().err


def test_grades_off_the_scale_are_counted_and_calls_are_those_of_the_ledger(
    runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    replies = ["prose", "server", *["wrong_number"] * 3]
    assert main(["retriever=bm25", *DATA]) == 0
    (run,) = runs()
    with FakeLLM(answer=lambda question, system: '{"grade": 2}', script=replies) as server:
        judge = ["judge", f"run={run.info.run_id}", "output=judged", "llm=openai", "llm.model=m", "llm.concurrency=1"]
        judge += [f"llm.base_url={server.url}", "judging.backoff_s=0", "llm.backoff_s=0", "tracking.background=false"]
        assert main([*judge, "llm.max_calls=6", "judging.depth=3", "llm.budget=of this test"]) == 0
        calls = len(server.asked)
    shown, summary = capsys.readouterr(), orjson.loads(Path("judged/summary.json").read_bytes())
    assert summary["clamped"] == 3
    assert "3 of 4 grades were outside the scale of 0 to 3" in summary["warnings"][0]
    assert summary["warnings"][0] in " ".join(shown.err.split())
    assert summary["calls"] == calls == 6
    assert f"language model: {calls} calls" in shown.err
    (judged,) = [each for each in runs() if each.data.tags["kind"] == "judging"]
    assert (judged.data.metrics["judge/clamped"], judged.data.metrics["judge/calls"]) == (3, calls)
    assert judged.data.tags["judged_run"] == run.info.run_id


def test_people_correct_a_judge_without_asking_it_again(
    server: FakeLLM, runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retriever=bm25", *DATA]) == 0
    (run,) = runs()
    judge = ["judge", f"run={run.info.run_id[:8]}", "output=judged", "judging.depth=3"]
    assert main([*judge, "sample=12"]) == 2
    assert (
        "llm=none: judged/verdicts.jsonl does not exist, so there are no grades to correct" in capsys.readouterr().err
    )
    assert main([*judge, "llm=openai", "llm.model=m", f"llm.base_url={server.url}", "judging.backoff_s=0"]) == 0
    asked = len(server.asked)
    assert main([*judge, "sample=12"]) == 0
    assert "sheet: judged/sheet.csv has 12 pairs to grade; write a grade from 0 to 3" in capsys.readouterr().out
    rows = load_sheet(Path("judged/sheet.csv"))
    assert len(rows) == 12 and all(row.query and row.document and row.grade is None for row in rows)
    save_sheet(Path("judged/sheet.csv"), [replace(row, grade=place % 4) for place, row in enumerate(rows)])
    assert main([*judge, "sample=14"]) == 0
    assert [row.grade for row in load_sheet(Path("judged/sheet.csv"))] == [
        *(place % 4 for place in range(12)),
        None,
        None,
    ]
    shown = capsys.readouterr().out
    assert "judge compared with people" in shown and "intervals are of 95 %" in shown
    report = orjson.loads((Path("judged") / "correction.json").read_bytes())
    assert (report["graded"], {figure["measure"] for figure in report["figures"]}) == (
        12, {"mean grade", "share of grades above 0", "P@3"},
    )  # fmt: skip
    bounds = [(figure["corrected"]["low"], figure["corrected"]["high"]) for figure in report["figures"]]
    assert all(low <= high for low, high in bounds)
    assert len(server.asked) == asked


def test_pairs_that_decide_are_judged_without_a_model(
    runs: Callable[[], list[Run]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "retriever=bm25", "retriever.k1=0.5,2.0", *DATA]) == 0
    (sweep,) = [run for run in runs() if run.data.tags["kind"] == "sweep"]
    judge = ["judge", f"run={sweep.info.run_id[:8]}", "output=judged", "judging.depth=3", "order=decisive", "sample=4"]
    assert main(judge) == 0
    rows = load_sheet(Path("judged/sheet.csv"))
    assert [(row.grade, row.order) for row in rows] == [(None, "decisive")] * 4
    save_sheet(Path("judged/sheet.csv"), [replace(row, grade=3) for row in rows])
    capsys.readouterr()
    assert main(judge) == 0
    assert "to grade" not in capsys.readouterr().out
    assert len(Path("judged/people.tsv").read_text().splitlines()) == 1 + 4
    standings = orjson.loads((Path("judged") / "standings.json").read_bytes())
    assert all(each["before"]["judged"] < each["after"]["judged"] for each in standings)
    assert not (Path("judged") / "verdicts.jsonl").exists()
    assert main([*judge[:-2], "sample=4", "order=depth"]) == 2
    assert "the pairs were chosen with order=decisive, not order=depth" in capsys.readouterr().err
