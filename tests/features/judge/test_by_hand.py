"""`judge by=hand` as a command: from runs to grades that the next evaluation uses, also after a kill."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import httpx
import orjson
import pytest

from runner.__main__ import main
from runner.features.judge.desk.journal import load_journals
from runner.features.judge.desk.pairs import DeskPool
from runner.tracking.settings import Tracking
from tests.warm import WarmProcess, start_command

DATA = (
    "dataset=beir", "dataset.path=data", "dataset.unjudged_queries=keep", "tracking.background=false",
)  # fmt: skip
FIELD = re.compile(r'name="(query_id|document_id)" value="([^"]*)"')
PATIENCE_S = 120


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a dataset without any judgment."""
    monkeypatch.chdir(tmp_path)
    words = ["lighthouse", "ferry", "museum", "market"]
    documents = [{"_id": f"{word}_{i}", "text": f"the {word} part {i} of {i + 2}"} for word in words for i in range(3)]
    queries = [{"_id": f"q{place}", "text": f"{word} part"} for place, word in enumerate(words)]
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    for name, rows in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        (tmp_path / "data" / name).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n")
    return tmp_path


def start_desk(run: str, folder: Path) -> tuple[WarmProcess, httpx.Client]:
    """Start the command, and return it with a client of the address that it prints."""
    process = start_command(["judge", "by=hand", f"run={run}", "port=0", "assessor=Anna", *DATA[3:]], folder)
    deadline = time.monotonic() + PATIENCE_S
    while not (match := re.search(r"open (http://\S+)", _read(folder / "stdout.txt"))):
        assert process.is_alive() and time.monotonic() < deadline, _read(folder / "stderr.txt")
        time.sleep(0.02)
    address = match[1].partition("/?")[0]
    cookies = httpx.get(match[1]).cookies
    return process, httpx.Client(base_url=address, headers={"origin": address}, cookies=cookies)


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def grade_next(client: httpx.Client, grade: int) -> tuple[str, str]:
    fields = dict(FIELD.findall(client.get("/").text))
    assert client.post("/judge", data={**fields, "decision": grade}).status_code == 303
    return fields["query_id"], fields["document_id"]


def test_grades_survive_a_kill_and_count_in_the_next_evaluation(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["retriever=bm25", *DATA, "--json"]) == 0
    run = orjson.loads(capsys.readouterr().out)["run"]
    process, client = start_desk(run, here)
    with client:
        grades = {grade_next(client, place % 4): place % 4 for place in range(5)}
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    (folder,) = (here / "mlruns" / "judgments").iterdir()
    assert load_journals(folder / "by_hand" / "journals", 3)["anna"].grades == grades
    monkeypatch.setattr(
        "runner.features.judge.desk.session.serve", lambda app, listener, ready: ready()
    )  # and stop at once
    assert main(["judge", "by=hand", "run=latest", "port=0", "assessor=Anna"]) == 0
    shown = capsys.readouterr()
    assert f"run=latest: run {run}" in shown.err
    printed = shown.out
    assert "desk of anna: 5 of " in printed and "(5 grades)" in printed
    override = re.search(r"use them with: (\S+)", printed)
    assert override
    assert main(["retriever=bm25", *DATA, override[1], "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["result"]["means"]["nDCG@10"] > 0


@pytest.mark.parametrize("flags", [[], ["-m", "retriever.b=0,1"]], ids=["one evaluation", "a sweep"])
def test_without_judgments_the_last_line_is_the_command_that_judges_the_hits(
    flags: list[str], here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.features.judge.desk.session.serve", lambda app, listener, ready: ready())
    for _ in range(2):  # the second time, a sweep reads its results again
        capsys.readouterr()
        assert main([*flags, "retriever=bm25", *DATA]) == 0
        *_, last = capsys.readouterr().out.splitlines()
        reason, _, judge = last.partition("; judge the hits: python -m runner ")
        assert reason == "No query has gold, so nothing is measured"
    assert main([*judge.split(), "port=0", "assessor=Anna"]) == 0
    assert "desk of anna: 0 of 40 pairs are judged" in capsys.readouterr().out


def test_a_baseline_without_gold_is_compared_once_it_is_judged(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retriever=bm25", *DATA]) == 0
    assert main(["promote", "run=latest", "name=main"]) == 0
    shown = capsys.readouterr()
    assert "baselines/main: bm25, nDCG@10 \N{EN DASH}" in shown.out
    note = next(line for line in shown.err.splitlines() if line.startswith("no query has gold"))
    assert note.partition("; judge the hits: ")[2].startswith("python -m runner judge by=hand run=")
    (here / "judged.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tlighthouse_1\t1\nq1\tferry_2\t1\n")
    assert main(["retriever=bm25", *DATA, "dataset.extra_qrels=judged.tsv", "--json"]) == 0
    result = orjson.loads(capsys.readouterr().out)["result"]
    assert main(["compare", "baseline=baseline:main", "candidate=latest", "gate=none", "--json"]) == 0
    systems = orjson.loads(capsys.readouterr().out)["measures"]["nDCG@10"]["systems"].values()
    assert [system["mean"] for system in systems] == [result["means"]["nDCG@10"]] * 2
    assert 0 < result["means"]["nDCG@10"] < 1


def test_a_number_of_queries_limits_the_desk(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: list[DeskPool] = []
    monkeypatch.setattr("runner.features.judge.command.judge_by_hand", lambda pool, *_: pools.append(pool))
    assert main(["retriever=bm25", *DATA]) == 0
    for words in (["queries=1"], ["queries=1"], ["queries=1", "seed=1"], ["queries=3"], ["queries=9"]):
        assert main(["judge", "by=hand", "run=latest", "port=0", "assessor=Anna", *words]) == 0
    seen = [set(pool.ids) for pool in pools]
    assert [len(pairs) for pairs in seen] == [10, 10, 10, 30, 40]
    assert seen[0] == seen[1] != seen[2]
    assert seen[0] < seen[3] < seen[4]
    assert main(["judge", "run=latest", "queries=1", "sample=5"]) == 2
    assert "queries: limits the desk; set by=hand" in capsys.readouterr().err


def test_judging_without_gold_leads_to_the_desk(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retriever=bm25", *DATA]) == 0
    assert main(["judge", "run=latest", "sample=5", "order=decisive"]) == 2
    assert "none is known; by=hand judges all" in capsys.readouterr().err


def test_mistakes_are_reported_in_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retriever=bm25", *DATA, "--json"]) == 0
    run = orjson.loads(capsys.readouterr().out)["run"]
    for words, message in (
        (["assessor=../x"], "error: assessor=../x: not a name;"),
        (["llm=openai", "llm.model=m"], "error: by=hand: people judge, not a language model; remove llm="),
        (["scale=0"], "error: scale=0: should be greater than or equal to 1"),
        (["overlap=2"], "error: overlap=2: should be less than or equal to 1"),
        (["by=mail"], "error: by=mail: "),
    ):
        assert main(["judge", "by=hand", f"run={run}", "port=0", *words]) == 2
        shown = capsys.readouterr().err
        assert shown.startswith(message) and shown.count("\n") == 1, shown
