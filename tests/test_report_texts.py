"""`report.texts` decides how much of the documents reports contain, in files and in MLflow."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.tracking.settings import Tracking
from tests.pages.reading import read_explorer_data

DATA = ("dataset=beir", "dataset.path=data", "tracking.background=false", "statistics.permutations=100")
LONG = "zanzibar harbour " + "and a long quay " * 200 + "zanzibar's end"
CORPUS = [
    {"_id": "d0", "title": "Zanzibar title", "text": LONG},
    {"_id": "d1", "title": "", "text": "The zanzibar ferry leaves the harbour."},
    {"_id": "d2", "title": "", "text": "A museum."},
]


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: a store of runs, and a dataset each of whose texts names Zanzibar."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    queries = [{"_id": "q0", "text": "ferry harbour"}, {"_id": "q1", "text": "quay"}]
    for name, rows in (("corpus", CORPUS), ("queries", queries)):
        (tmp_path / "data" / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td1\t1\nq1\td0\t1\n")
    return tmp_path


def write_reports(texts: str) -> dict[str, str]:
    """Evaluate, sweep and compare; return the files with reports, pages with their data decompressed."""
    chosen = [] if texts == "snippets" else [f"report.texts={texts}"]
    assert main(["retriever=bm25", *DATA, *chosen]) == 0
    grid = ["-m", "retriever=bm25", "retriever.k1=0.4,2", "sweep.reports=true", f"sweep.output=sweep-{texts}"]
    assert main([*grid, *DATA, *chosen]) == 0
    runs = sorted(path.parent.parent.name for path in Path("mlruns/artifacts").glob("*/artifacts/rankings.parquet"))
    words = [f"baseline={runs[0]}", f"candidate={runs[1]}", "gate=none", f"output=comparison-{texts}", *chosen]
    assert main(["compare", *words]) == 0
    files = [path for path in Path().rglob("*") if path.suffix in (".html", ".md", ".csv", ".json")]
    reports = {str(path): path.read_text(encoding="utf-8") for path in files if path.parts[0] != "data"}
    return {
        name: text + orjson.dumps(read_explorer_data(text)).decode() if name.endswith(".html") else text
        for name, text in reports.items()
    }


def test_without_texts_no_file_has_text_of_a_document(here: Path) -> None:
    reports = write_reports("none")
    pages = [name for name in reports if name.endswith(".html")]
    assert len(pages) == 6, "an evaluation, the sweep (logged and written), two of its combinations, the comparison"
    assert not [name for name, text in reports.items() if "zanzibar" in text.lower()]


@pytest.mark.parametrize(("texts", "has_end"), [("snippets", False), ("full", True)])
def test_snippets_end_early_and_full_texts_do_not(here: Path, texts: str, has_end: bool) -> None:
    pages = {name: text for name, text in write_reports(texts).items() if name.endswith(".html")}
    for name, text in pages.items():
        assert "zanzibar harbour" in text, name
        assert ("zanzibar's end" in text) == has_end, name


def test_a_sweep_with_other_texts_has_a_report_of_its_own(here: Path) -> None:
    grid = ["-m", "retriever=bm25", "retriever.k1=0.4,2", *DATA]
    assert main(grid) == 0
    assert main([*grid, "report.texts=none"]) == 0
    pages = [path.read_text(encoding="utf-8") for path in Path("mlruns/artifacts").glob("*/artifacts/report.html")]
    missing = [{text is None for text in read_explorer_data(page)["documents"]["texts"]} for page in pages]
    assert len(missing) == 2
    assert {False} in missing
    assert {True} in missing


def test_an_unknown_choice_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retriever=bm25", *DATA, "report.texts=some"]) == 2
    assert "report.texts" in capsys.readouterr().err
