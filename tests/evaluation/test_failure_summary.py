"""Each class of failure has one sentence, one remedy and one count, which every output shows."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import runner
from retrievers.lexical.bm25 import BM25
from runner.__main__ import main
from runner.comparison.compare import TableStatistics
from runner.config.consent import Consent
from runner.evaluation.bench import Bench
from runner.evaluation.failure_classes import ADVICE, FailureLabel
from runner.evaluation.failure_summary import summarize_failures
from runner.evaluation.failures import FailureSettings, QueryFailure
from runner.features.look.pages import PageBuilder
from runner.features.look.results import StoredResults
from runner.features.look.shown import select_shown
from runner.store import disk
from runner.store.opening import open_store
from runner.store.settings import StoreSettings
from runner.tracking.fetching import Runs
from runner.tracking.settings import Tracking
from tests.pages.reading import Page, read_explorer_data, rows

COUNTS: dict[FailureLabel, tuple[str, str]] = {
    "absent from the corpus": ("2", "3 documents missing"),
    "vocabulary mismatch": ("2", "LSA of whole documents finds gold in its first 3 for 0 of 2"),
    "distractor overlap": ("3", "gold of 2 of 3 is at ranks 4 to 8, within reach of a reranker"),
}
"""The number of missed queries of the data below in each class, and what their rankings show."""


LOST = {"not in the corpus": 3, "not retrieved": 3, "cutoff": 2}
"""The gold documents of the data below that each step loses."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: a dataset with seven queries that BM25 misses, and one that it answers.

    Two expect documents that are not in the corpus, two others no word of which they have. Above the gold of three is a
    document judged irrelevant; the gold is at ranks 5 and 6, and deeper than the search.
    """
    monkeypatch.chdir(tmp_path)
    texts, queries, grades = {}, {}, []
    for query, above in (("lamp", 4), ("sail", 5), ("gull", 9)):
        queries[query] = f"{query} light"
        texts |= {f"{query}{place}": f"{query} light" for place in range(above)}
        texts[query] = f"{query} " + " ".join(f"{query}word{n}" for n in range(9))
        grades += [(query, query, 1), (query, f"{query}{above - 1}", 0)]
    for query, gold in (("storm", "wind"), ("bread", "loaf")):
        queries[query] = query
        texts |= {f"{query}{place}": f"{query} of {place} days" for place in range(4)}
        texts[gold] = f"{gold} for a whole {gold}"
        grades.append((query, gold, 1))
    queries |= {"north": "north", "south": "south", "ferry": "ferry"}
    grades += [("north", "gone1", 1), ("north", "gone2", 1), ("south", "gone3", 1), ("ferry", "ferry", 1)]
    texts |= {"ferry": "ferry", "pole": "north south"}
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    for name, content in (("corpus", texts), ("queries", queries)):
        lines = (json.dumps({"_id": i, "text": text}) for i, text in content.items())
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    table = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in grades)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(table))
    return tmp_path


SETTINGS = ("metrics.primary=nDCG@3", "metrics.depth=8", "metrics.k_values=[1,3]", "analyzer=plain")


def test_every_output_of_a_command_has_the_same_count_advice_and_proof(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert (
        main(
            ["dataset=beir", "dataset.path=data", "dataset.unknown_judged=keep", *SETTINGS, "tracking.background=false"]
        )
        == 0
    )
    terminal = " ".join(capsys.readouterr().out.split())
    (page,) = (here / "mlruns").rglob("report.html")
    html = page.read_text()
    shown = Page(html).table("class")
    expected = [
        [name, count, f"{int(count) / 7:.1%}", ADVICE[name].meaning, ADVICE[name].first_step, proof]
        for name, (count, proof) in COUNTS.items()
    ]
    assert shown == expected
    assert rows((page.with_name("report.md")).read_text(), "Missed queries and their causes") == expected
    assert [" ".join(row) in terminal for row in expected] == [True] * 3
    data = read_explorer_data(html)
    (losses,) = (plot["spec"] for plot in data["plots"] if plot["id"] == "losses")
    assert {bar["group"]: bar["value"] for bar in losses["data"]["values"]} == LOST
    assert losses["encoding"]["x"]["axis"] == {"tickMinStep": 1}
    (system,) = data["systems"]
    for name, (count, _) in COUNTS.items():
        classes = [failure["classes"] for failure in system["failures"].values()]
        assert sum([name, f"{ADVICE[name].meaning} {ADVICE[name].first_step}"] in of for of in classes) == int(count)


def test_the_reports_of_a_sweep_have_the_failure_classes_of_the_best(here: Path) -> None:
    sweep = ["-m", "dataset=beir", "dataset.path=data", "dataset.unknown_judged=keep", "retriever.k1=1.2,1.3"]
    assert main([*sweep, *SETTINGS, "tracking.background=false"]) == 0
    (page,) = (here / "mlruns").rglob("report.html")
    html, markdown = page.read_text(), page.with_name("report.md").read_text()
    shown = Page(html).table("class")
    by_words = {"vocabulary mismatch": (COUNTS["vocabulary mismatch"][0], "")}
    assert {row[0]: (row[1], row[-1]) for row in shown} == COUNTS | by_words
    assert "Words are compared, not meaning" in markdown
    assert rows(markdown, "Missed queries and their causes") == shown
    assert "k1=1.2, the best: 7 queries have no gold in the first 3" in markdown
    data = read_explorer_data(html)
    assert data["losses"] == {"steps": list(LOST), "counts": [list(LOST.values())] * 2}
    best, other = data["systems"]
    assert (best["row"], len(best["failures"]), other["failures"]) == (0, 7, {})
    runs = Runs(Tracking(uri=f"sqlite:///{here}/mlruns/mlflow.db"))
    results = StoredResults(runs, Bench(open_store(StoreSettings(str(here / "cache")))), Consent())
    look = PageBuilder(results, TableStatistics(permutations=50)).build(select_shown((), None, runs))
    assert Page(look.html).table("class") == shown


UNION = """\
# @package _global_
hydra: {mode: MULTIRUN}
sweep:
  union:
    words: {retriever: bm25}
    elsewhere: {retriever: run, retriever.path: elsewhere.trec}
"""


def test_advice_names_the_combination_that_has_the_gold(here: Path) -> None:
    (here / "union.yaml").write_text(UNION)
    (here / "elsewhere.trec").write_text("lamp Q0 ferry 1 2 x\nlamp Q0 lamp 2 1 x\n")
    data = ["dataset=beir", "dataset.path=data", "dataset.unknown_judged=keep", *SETTINGS, "tracking.background=false"]
    assert main(["experiment=union.yaml", *data]) == 0
    (page,) = (here / "mlruns").rglob("report.html")
    html = page.read_text()
    steps = {row[0]: row[-2] for row in Page(html).table("class")}
    advice = ADVICE["distractor overlap"].first_step
    assert steps["distractor overlap"] == (
        f"run has gold of 1 of 3 in its first 3: try to fuse both (retriever=hybrid). For the others: {advice}"
    )
    assert steps["absent from the corpus"] == ADVICE["absent from the corpus"].first_step
    data = read_explorer_data(html)
    failures = {
        data["queries"]["ids"][int(place)]: of["classes"] for place, of in data["systems"][0]["failures"].items()
    }
    meaning = ADVICE["distractor overlap"].meaning
    assert failures["lamp"] == [
        ["distractor overlap", f"{meaning} run has gold at rank 2: try to fuse both (retriever=hybrid)."]
    ]
    assert failures["gull"] == [["distractor overlap", f"{meaning} {advice}"]]


def test_a_greater_depth_is_proposed_where_a_stored_ranking_shows_that_it_helps(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    data = ["dataset=beir", "dataset.path=data", "dataset.unknown_judged=keep", *SETTINGS, "tracking.background=false"]
    hybrid = ["retriever=hybrid", "retriever@retriever.parts.semantic=sqlite_fts"]
    for retriever in (["retriever=bm25"], [*hybrid, "retriever.depth=4"], [*hybrid, "retriever.depth=8"]):
        assert main([*retriever, *data]) == 0
    pages = sorted((here / "mlruns").rglob("report.html"), key=lambda page: page.stat().st_mtime_ns)
    proofs = [{row[0]: row[-1] for row in Page(page.read_text()).table("class")} for page in pages]
    assert [proof["distractor overlap"] for proof in proofs[1:]] == [
        "gold of 0 of 3 is at ranks 4 to 8, within reach of a reranker; "
        "retriever.depth=8 brings gold of 2 of 3 among the candidates",
        COUNTS["distractor overlap"][1],
    ]


def test_the_texts_of_a_large_corpus_are_not_read_for_the_page_of_a_sweep(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.sweep.boards.FailureSettings", partial(FailureSettings, semantic_documents=30))
    sweep = ["-m", "dataset=beir", "dataset.path=data", "dataset.unknown_judged=keep", "retriever.k1=1.2,1.3"]
    assert main([*sweep, *SETTINGS, "tracking.background=false"]) == 0
    (page,) = (here / "mlruns").rglob("report.html")
    shown = {row[0]: row[1] for row in Page(page.read_text()).table("class")}
    assert shown == {"distractor overlap": "3", "unclassified": "4"}


def test_python_has_a_row_for_each_missed_query_and_class(here: Path) -> None:
    data = runner.load_dataset("beir", path="data", unknown_judged="keep")
    result = runner.evaluate(BM25(), data, *SETTINGS[:-1], "tracking.background=false")
    frame = result.explain_misses(data)
    assert {name: str(n) for name, n in frame["class"].value_counts().items()} == {
        name: count for name, (count, _) in COUNTS.items()
    }
    lamp = frame.set_index("query_id").loc["lamp"]
    advice = ADVICE["distractor overlap"]
    assert lamp.tolist() == ["lamp light", "distractor overlap", advice.meaning, advice.first_step, "lamp", 5]
    without = result.explain_misses()
    assert set(without["class"]) == {"absent from the corpus", "distractor overlap", "unclassified"}


def test_the_rankings_show_what_they_can_of_each_remedy() -> None:
    failures = [
        QueryFailure(0, ("vocabulary mismatch", "distractor overlap"), "a", gold_rank=12, semantic_rank=3),
        QueryFailure(1, ("vocabulary mismatch",), "b", semantic_rank=11),
        QueryFailure(2, ("vocabulary mismatch",), "c", semantic_rank=10),
        QueryFailure(3, ("unjudged above gold", "specificity gap"), "d", gold_rank=70, lookalike="x"),
        QueryFailure(4, ("unjudged above gold",), "e", lookalike="x"),
        QueryFailure(5, ("absent from the corpus",), "f", absent=("f",)),
        QueryFailure(6, (), "g", gold_rank=11),
    ]
    shown = {of.name: (of.failures, of.proof) for of in summarize_failures(failures, 10, 100)}
    assert shown == {
        "absent from the corpus": (1, "1 document missing"),
        "vocabulary mismatch": (3, "LSA of whole documents finds gold in its first 10 for 2 of 3"),
        "specificity gap": (1, "gold of 1 of 1 is at ranks 11 to 100, within reach of a reranker"),
        "distractor overlap": (1, "gold of 1 of 1 is at ranks 11 to 100, within reach of a reranker"),
        "unjudged above gold": (2, "1 document to judge"),
        "unclassified": (1, "gold of 1 of 1 is at ranks 11 to 100, within reach of a reranker"),
    }
    near = [replace(failures[place], reached={"a": 3, "b": 5} if place else {"b": 2}) for place in range(3)]
    steps = {of.name: of.first_step for of in summarize_failures([*near, *failures[3:]], 10, 100)}
    assert steps["vocabulary mismatch"] == "b has gold of 3 of 3 in its first 10: try to fuse both (retriever=hybrid)."
    assert steps["specificity gap"] == ADVICE["specificity gap"].first_step
    by_lsa = [QueryFailure(n, ("specificity gap",), "a", semantic_rank=rank) for n, rank in enumerate((9, 11))]
    (summary,) = summarize_failures(by_lsa, 10, 100)
    advice = ADVICE["specificity gap"].first_step
    assert summary.first_step == (
        "LSA of whole documents has gold of 1 of 2 in its first 10: try to fuse both (retriever=hybrid). For the "
        f"others: {advice}"
    )
    (summary,) = summarize_failures(by_lsa[:1], 10, 100)
    assert summary.first_step == "LSA of whole documents has gold at rank 9: try to fuse both (retriever=hybrid)."
    shallow = {of.name: of.proof for of in summarize_failures(failures, 10, 10)}
    assert shallow["distractor overlap"] == shallow["specificity gap"] == ""
