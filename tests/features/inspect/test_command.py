"""`inspect`, from the command line to the files that it writes."""

from __future__ import annotations

import shlex
from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.documentation import DIR, FILE, blocks, chapters, page, write

CHEAP = ("~retriever@retrievers.dense", "~retriever@retrievers.hybrid")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_the_findings_as_a_page_and_as_json_and_shows_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "dataset=golden", "output=out/golden"]) == 0
    read = orjson.loads((here / "out/golden/inspection.json").read_bytes())
    assert list(read["retrievers"]) == ["bm25", "sqlite_fts", "dense", "hybrid"]
    assert read["counts"]["queries without gold"] == 10
    html = (here / "out/golden/inspection.html").read_text(encoding="utf-8")
    shown = capsys.readouterr()
    assert "golden (test): 120 documents, 64 queries, 144 judgments" in shown.out
    for finding in read["findings"]:
        assert finding["name"].capitalize() in html
        assert finding["name"].split()[0] in shown.out
    assert "no other splits" in shown.err
    assert list(read["reliability"]["systems"]) == list(read["retrievers"])
    assert read["reliability"]["queries"] == 54
    assert all(pair["low"] <= pair["difference"] <= pair["high"] for pair in read["reliability"]["bounds"])
    assert "Stability of the ranking" in html
    assert "Discriminative power. The discriminative power of nDCG@10" in shown.out
    before = (here / "out/golden/inspection.json").read_bytes()
    assert main(["inspect", "dataset=golden", "output=again"]) == 0
    assert (here / "again/inspection.json").read_bytes() == before
    assert (here / "again/inspection.html").read_text(encoding="utf-8") == html


def test_it_opens_with_the_first_queries_and_the_titles_of_their_gold(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "docs").mkdir()
    (here / "docs" / "tower.md").write_text("# Opening hours\n\nThe tower opens at nine.\n")
    (here / "docs" / "ferry.txt").write_text("Ferries leave every hour.\n")
    (here / "docs" / "tide.pdf").write_text("%PDF")
    (here / "golden.csv").write_text(
        "question,file\nWhen does the tower open?,tower.md\nHow often?,ferry.txt\nWho pays?,\nWhy?,tower\n"
    )
    words = ["dataset=folder", "dataset.path=docs", "dataset.questions=golden.csv", "output=out", *CHEAP]
    assert main(["inspect", *words]) == 0
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == "docs (test): 2 documents, 4 queries, 3 judgments"
    read = orjson.loads((here / "out/inspection.json").read_bytes())
    assert read["reading"] == (
        "2 documents (1 .txt, 1 .md; left out 1: 1 .pdf); 4 questions from `question`, gold from `file` "
        "(file names; ids), 1 without gold, the first at golden.csv:4, no ids: numbered"
    )
    assert read["samples"] == [
        {"query": "q0001", "text": "When does the tower open?", "gold": [["tower", "Opening hours"]]},
        {"query": "q0002", "text": "How often?", "gold": [["ferry", "Ferries leave every hour."]]},
        {"query": "q0003", "text": "Who pays?", "gold": []},
    ]
    (place,) = (number for number, line in enumerate(shown) if line == "First queries and their gold")
    assert [line.split()[0] for line in shown[place + 3 : place + 6]] == ["q0001", "q0002", "q0003"]
    assert "tower: Opening hours" in shown[place + 3]
    assert "tower: Opening hours" in (here / "out/inspection.html").read_text(encoding="utf-8")


def test_without_an_output_it_shows_the_findings_and_writes_no_report(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "dataset=golden", *CHEAP]) == 0
    shown = capsys.readouterr().out
    assert "golden (test): 120 documents, 64 queries, 144 judgments" in shown
    assert "Findings, most severe first" in shown
    assert "report:" not in shown
    assert not [*here.glob("**/inspection.*")]


def test_retrievers_are_added_and_taken_away_and_documents_cut(here: Path) -> None:
    added = ("+retriever@retrievers.words=bm25", "retrievers.words.k1=2", "inspection.cutoff=5")
    assert main(["inspect", "chunking=sentences", "chunking.size=40", "output=out", *CHEAP, *added]) == 0
    read = orjson.loads((here / "out/inspection.json").read_bytes())
    assert list(read["retrievers"]) == ["bm25", "sqlite_fts", "words"]
    assert "success@5" in read["retrievers"]["words"]
    assert read["counts"]["chunks"] > read["counts"]["documents"] == 120


def test_rankings_of_runs_take_the_place_of_searches(
    here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("-m", "retriever.k1=0.4,1.2,2", "dataset=golden", "statistics.permutations=100", "--json")
    assert main([*words, "dataset.max_queries=30,null"]) == 0
    boards = orjson.loads(capsys.readouterr().out)["leaderboards"]
    (rows,) = (board["rows"] for board in boards if board["dataset"]["queries"] == 64)
    assert main(["inspect", "dataset=golden", "runs=latest", "output=out"]) == 0
    read = orjson.loads((here / "out/inspection.json").read_bytes())
    assert read["reliability"]["systems"] == pytest.approx({row["label"]: row["mean"] for row in rows})
    write(here, DIR)
    assert main(["inspect", "dataset=beir", "dataset.path=DIR", "runs=latest", "output=out"]) == 2
    assert "choose the dataset of the runs" in capsys.readouterr().err


def test_the_depth_of_an_inspection_is_that_of_the_search_not_the_longest_ranking(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, DIR)
    assert main(["inspect", "dataset=beir", "dataset.path=DIR", "output=out", "inspection.depth=37", *CHEAP]) == 0
    assert "no gold in 37" in capsys.readouterr().out
    assert orjson.loads((here / "out/inspection.json").read_bytes())["depth"] == 37


def test_the_depth_of_an_inspection_of_runs_is_at_most_theirs(
    here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here, DIR)
    of = ("dataset=beir", "dataset.path=DIR")
    assert main([*of, "metrics.depth=20", "metrics.k_values=[1,10]"]) == 0
    assert main(["inspect", *of, "runs=latest", "output=out"]) == 0
    assert "no gold in 3" in capsys.readouterr().out


def test_the_other_splits_of_a_folder_are_looked_at(here: Path) -> None:
    write(here, {**DIR, "DIR/qrels/train.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n"})
    assert main(["inspect", "dataset=beir", "dataset.path=DIR", "output=out", *CHEAP]) == 0
    findings = {f["name"]: f for f in orjson.loads((here / "out/inspection.json").read_bytes())["findings"]}
    assert findings["leakage from train"]["count"] == 1


def test_other_splits_are_in_files_of_other_formats_as_documented(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chapter = chapters(page("docs/datasets.md"))["Splits"]
    (files,), (recipe,) = blocks(chapter, "text"), blocks(chapter, "sh")
    write(here, dict(FILE.findall(files)))
    command = recipe.replace("\\\n", " ").splitlines()[0].removeprefix("python -m runner ")
    assert main([*shlex.split(command), *CHEAP]) == 0
    read = orjson.loads((here / "inspected/inspection.json").read_bytes())
    assert {f["name"]: f["count"] for f in read["findings"]}["leakage from train"] == 1
    assert "no other splits" not in capsys.readouterr().err


def test_a_split_that_cannot_be_read_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(here, {**DIR, "DIR/qrels/train.tsv": "gone\td1\t1\n"})
    assert main(["inspect", "dataset=beir", "dataset.path=DIR", "output=out", *CHEAP]) == 2
    assert "error: the split train cannot be checked for leakage: DIR/qrels/train.tsv:1: " in capsys.readouterr().err


def test_a_folder_may_be_called_by_a_number(here: Path) -> None:
    assert main(["inspect", "dataset=golden", "output=2024", *CHEAP]) == 0
    assert (here / "2024/inspection.json").exists()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (["output=file"], "output=file: expected a folder, found a file"),
        (["output=file/there"], "output=file/there: cannot be written (Not a directory)"),
        (["output=out", "inspection.cutof=3"], "cutof"),
        (["output=out", "inspection.cutoff=0"], "inspection.cutoff=0: should be greater than or equal to 1"),
        (["output=out", "+retrievers.odd=3"], "retrievers"),
    ],
)
def test_an_invalid_setting_is_reported_in_one_line_before_any_work(
    told: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    assert main(["inspect", *told]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
