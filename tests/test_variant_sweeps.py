"""A sweep and a comparison on the command line, on a dataset whose queries form clusters."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking

TOPICS = 8
SWEEP = ("-m", "retriever=bm25", "retriever.b=0,1", "dataset=beir", "tracking.background=false")


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


def write_collection(folder: Path, times: int) -> Path:
    """Write a collection in BEIR's layout, each of whose queries is there several times.

    For all topics but one, the relevant document is short and another one repeats the word, so that b=1 finds more.
    """
    (folder / "qrels").mkdir(parents=True)
    short = [{"_id": f"s{t}", "text": f"topic{t} sea"} for t in range(TOPICS)]
    long = [{"_id": f"l{t}", "text": f"topic{t} topic{t} " + "ship " * (30 + t)} for t in range(TOPICS)]
    write_lines(folder / "corpus.jsonl", [*short, *long])
    queries = [(f"q{t}.{time}", t) for t in range(TOPICS) for time in range(times)]
    write_lines(folder / "queries.jsonl", [{"_id": q, "text": f"topic{t}", "question": f"q{t}"} for q, t in queries])
    qrels = [f"{q}\t{'l' if t == 0 else 's'}{t}\t1" for q, t in queries]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]) + "\n")
    return folder


def sweep(folder: Path, here: Path, *arguments: str) -> list[dict[str, str]]:
    """Run a sweep and return the rows of its leaderboard."""
    earlier = set(here.rglob("leaderboard.csv"))
    assert main([*SWEEP, f"dataset.path={folder}", *arguments]) == 0
    (file,) = set(here.rglob("leaderboard.csv")) - earlier
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_variants_of_a_query_make_neither_a_sweep_nor_a_comparison_surer(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    columns = ("nDCG@10", "low", "high", "difference", "difference_low", "difference_high", "p", "needed")
    once = sweep(write_collection(tmp_path / "once", 1), tmp_path)
    capsys.readouterr()
    clustered = sweep(write_collection(tmp_path / "variants", 5), tmp_path, "dataset.cluster_field=question")
    out = capsys.readouterr().out
    alone = sweep(tmp_path / "variants", tmp_path)
    for row, expected in zip(clustered, once, strict=True):
        figures = [[float(of[name] or "nan") for name in columns] for of in (row, expected)]
        assert figures[0] == pytest.approx(figures[1], abs=1e-9, nan_ok=True)
    assert clustered[1]["p"] == f"{2 * 9 / 2**TOPICS}", "of 2^8 assignments of signs"
    assert float(alone[1]["p"]) < float(clustered[1]["p"])
    assert "40 queries in 8 clusters" in " ".join(out.split())
    assert "by cluster" in out
    assert "95% interval, small sample" in out

    capsys.readouterr()
    baseline, candidate = clustered[1]["run"], clustered[0]["run"]
    assert main(["compare", f"baseline={baseline}", f"candidate={candidate}", "gate=none", "--json"]) == 0
    systems = orjson.loads(capsys.readouterr().out)["measures"]["nDCG@10"]["systems"]
    assert [versus["p"] for versus in systems.values() if versus["p"] is not None] == [float(clustered[1]["p"])]
    assert main(["compare", f"baseline={baseline}", f"candidate={candidate}", "gate=none"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "by cluster" in out
    assert "clusters needed" in out
