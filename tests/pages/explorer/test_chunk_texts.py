"""Pages show the chunk that was retrieved, with its title, and its document around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from retrievers.base import Corpus
from runner.__main__ import main
from runner.datasets.chunking import DOCUMENT, Chunking, Headings, Tokens
from runner.evaluation.report.rankings import ShownDocument
from runner.evaluation.result import ChunkPlaces
from runner.tracking.settings import Tracking
from tests.features.look.stores import serve_store
from tests.pages.explorer.test_results_in_browser import open_query
from tests.pages.reading import read_explorer_data

if TYPE_CHECKING:
    from playwright.sync_api import Page

FILLER = "Nobody asks about boxes, colours and shops. " * 40
DOCUMENTS = {
    name: f"# {name.title()}\n\n" + "\n\n".join(f"## {part}\n\n{first} {FILLER}" for part, first in parts.items())
    for name, parts in {
        "kettle": {"Use": "It boils two litres.", "Care": "Descale with citric acid.", "Warranty": "Three years."},
        "lamp": {"Use": "Five levels of light.", "Care": "Change a cold bulb.", "Cable": "Two metres of cable."},
    }.items()
}
CORPUS = Corpus(list(DOCUMENTS), list(DOCUMENTS.values()))
QUERIES = {"q0": "descale with citric acid", "q1": "how long is the cable", "q2": "boils two litres"}
DATA = ("dataset=beir", "dataset.path=data", "retriever=bm25", "tracking.background=false", "report.texts=full")
CHUNKINGS: dict[str, Chunking] = {"headings": Headings(40), "tokens": Tokens(40)}


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: a store of runs, and two documents whose chunks answer the queries."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        rows = [orjson.dumps({"_id": id, "text": text}) + b"\n" for id, text in texts.items()]
        (tmp_path / "data" / f"{name}.jsonl").write_bytes(b"".join(rows))
    (tmp_path / "data" / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq0\tkettle\t1\nq1\tlamp\t1\nq2\tkettle\t1\n"
    )
    return tmp_path


def list_chunks(*names: str) -> set[tuple[str, str, str]]:
    """Return the id, title and text of the chunks that retrievers search, by names of chunkings."""
    columns = [
        (of.ids, of.titles or [""] * len(of), of.texts) for of in (CHUNKINGS[name].split(CORPUS) for name in names)
    ]
    return {row for own in columns for row in zip(*own, strict=True)}


def check_documents(documents: dict[str, Any], *chunkings: str) -> None:
    """Check that a page shows chunks as they are searched, and that their surroundings complete their documents."""
    rows = list(zip(*(documents[name] for name in ("ids", "titles", "texts", "parents", "around")), strict=True))
    chunks = [row for row in rows if row[3]]
    assert len(chunks) >= len(chunkings)
    assert {(name, title, text) for name, title, text, *_ in chunks} <= list_chunks(*chunkings)
    assert all(before + text + after == DOCUMENTS[parent] for _, _, text, parent, (before, after) in chunks)


def evaluate(*words: str) -> None:
    """Evaluate, or sweep."""
    assert main([*DATA, *words]) == 0


def read_pages() -> list[dict[str, Any]]:
    """Return the data of each logged page, the oldest first."""
    pages = sorted(Path("mlruns/artifacts").glob("*/artifacts/*.html"), key=lambda page: page.stat().st_mtime_ns)
    return [read_explorer_data(page.read_text(encoding="utf-8")) for page in pages]


@pytest.mark.parametrize(
    "chunking", [["chunking=headings", "chunking.size=40"], ["chunking=tokens", "chunking.size=40"]]
)
def test_an_evaluation_shows_the_chunks_it_searched(here: Path, chunking: list[str]) -> None:
    evaluate(*chunking)
    (page,) = read_pages()
    check_documents(page["documents"], chunking[0].removeprefix("chunking="))


def test_a_sweep_and_a_comparison_show_the_chunks_of_each_chunking(here: Path) -> None:
    evaluate("-m", "chunking=headings,tokens", "++chunking.size=40", "sweep.reports=true")
    runs = sorted(path.parent.parent.name for path in Path("mlruns/artifacts").glob("*/artifacts/rankings.parquet"))
    command = ["compare", f"baseline={runs[0]}", f"candidate={runs[1]}", "gate=none", "output=comparison"]
    assert main([*command, "report.texts=full"]) == 0
    pages = [*read_pages(), *(read_explorer_data(page.read_text()) for page in Path("comparison").glob("*.html"))]
    both = [page for page in pages if len(page["systems"]) > 1]
    assert len(both) == 2, "the sweep and the comparison"
    for page in both:
        check_documents(page["documents"], "headings", "tokens")
        assert len(set(page["documents"]["ids"])) < len(page["documents"]["ids"]), "chunks of both have the same id"


def test_a_chunk_without_a_place_has_the_text_of_its_document() -> None:
    chunks = Corpus(["kettle#0"], ["It boils"], metadata=[{DOCUMENT: "kettle"}])  # as a plug-in may return it
    shown = ShownDocument("kettle#0", "kettle", *ChunkPlaces.of(chunks).read(0))
    text = shown.read(CORPUS, CORPUS.positions)
    assert text is not None
    assert (text.text, text.before, text.after) == (DOCUMENTS["kettle"], "", "")


def test_look_has_the_whole_document_around_a_chunk(here: Path, tracking: Tracking) -> None:
    evaluate("chunking=headings", "chunking.size=40", "report.texts=snippets")
    with serve_store(tracking, here) as served:
        page = read_explorer_data(served.client.get(f"{served.page}/").text)["documents"]
        texts = served.client.get(f"{served.page}/texts?query=q0").json()
        columns = zip(page["keys"], page["ids"], page["parents"], strict=True)
        rows = [row for row in columns if row[0] in texts]
        documents = {
            "ids": [name for _, name, _ in rows],
            "parents": [parent for *_, parent in rows],
            "titles": [texts[key]["title"] for key, *_ in rows],
            "texts": [texts[key]["text"] for key, *_ in rows],
            "around": [[texts[key]["before"], texts[key]["after"]] for key, *_ in rows],
        }
        check_documents(documents, "headings")


def test_a_page_in_a_browser_finds_gold_in_its_chunk(here: Path, show: Callable[..., Page]) -> None:
    evaluate("chunking=headings", "chunking.size=40")
    (file,) = Path("mlruns/artifacts").glob("*/artifacts/report.html")
    page = show(file.read_text(encoding="utf-8"))
    open_query(page, "q0")
    first = page.locator("section.system ol > li").first
    assert first.locator("strong").inner_text() == "Kettle > Care"
    assert "Descale with citric acid." in first.locator("p.text").first.inner_text()
    assert page.locator("section.missed").count() == 0, "the document is there, as a chunk"
    around = first.locator("details", has_text="Around it, in kettle")
    around.locator("summary").click()
    assert "It boils two litres." in around.inner_text()
    assert "Three years." in around.inner_text()
