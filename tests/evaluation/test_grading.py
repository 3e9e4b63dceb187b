from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import Corpus
from retrievers.llm.chat import ChatError
from runner.datasets.base import Queries
from runner.evaluation.grades import Grades, load_grades, save_grades
from runner.evaluation.grading import SCALE, Grading, grade_found
from runner.evaluation.verdicts import GradeVerdict
from tests.conftest import DATA
from tests.evaluation.chats import Scripted, always

NEEDLE = "tasks_administer-cluster_topology-manager"
PATTERN = r"(.+)_mdsem_\d+"


@pytest.fixture
def real_needle() -> Path:
    """Return the folder with the real results of a needle benchmark, or skip."""
    if not (DATA / "needle").is_dir():
        pytest.skip(f"no real data at {DATA / 'needle'}: set RETRIEVAL_DATA to a folder that has needle/")
    return DATA / "needle"


@pytest.fixture
def chunks() -> Corpus:
    """Return a corpus of chunks: two of a lighthouse, one of a ferry, one of a market."""
    return Corpus(
        ids=["light_1", "light_2", "ferry_1", "market"],
        titles=["Lighthouse", "", "", ""],
        texts=["It shines for ships.", "It is 30 m high.", "Ferries leave every hour.", "Fish and $question."],
        metadata=[{"doc": "light"}, {"doc": "light"}, {"doc": "ferry"}, {}],
    )


def questions(*answers: str, n: int = 0) -> Queries:
    n = n or len(answers)
    metadata = [{"expected_answer": answer} for answer in answers]
    return Queries([f"q{i}" for i in range(n)], [f"question {i}" for i in range(n)], [""] * n, metadata)


def graded(
    grading: Grading,
    corpus: Corpus,
    queries: Queries,
    found: Sequence[Sequence[str]],
    expected: Sequence[Sequence[str]],
    folder: Path,
    failed: Sequence[int] = (),
) -> Grades:
    return grade_found(grading, corpus, queries, found, expected, failed, folder)[0]


def test_searchers_with_the_same_hits_have_separate_journals(chunks: Corpus, tmp_path: Path) -> None:
    """Two sweeps at once would otherwise write into one file, and the first to end would remove it."""
    names = set()
    for searcher in ("BM25()", "Dense()"):
        grading = Grading(llm=always('{"grade": 5}'))
        _, journal = grade_found(
            grading, chunks, questions("30 m"), [["light_1"]], [["light_2"]], (), tmp_path, searcher
        )
        assert len(journal.file.read_text().splitlines()) == 1
        names.add(journal.file.name)
    assert len(names) == 2


def make_grades(values: Sequence[float | None], ranks: Sequence[float], **settings: Any) -> Grades:
    """Return grades with one verdict a question."""
    rows = [[GradeVerdict(value, "graded" if value is not None else "unreadable")] for value in values]
    plain = {"judge": "j", "prompt": "p", "k": 5, "weights": (1.0, 0.8, 0.5), "echoes": [False] * len(values)}
    return Grades(verdicts=rows, ranks=np.array(ranks, dtype=np.float64), **{**plain, **settings})


def test_the_judge_sees_question_expected_answer_and_chunks(chunks: Corpus, tmp_path: Path) -> None:
    llm = always('{"grade": 8}')
    grading = Grading(llm=llm, document_pattern=r"(.+)_\d+")
    graded(grading, chunks, questions("at 9"), [["light_1", "market"]], [["light_1"]], tmp_path)
    (prompt,) = llm.asked
    assert "question 0" in prompt
    assert "at 9" in prompt
    shown = "[Chunk 1 - light]\nLighthouse\nIt shines for ships.\n\n[Chunk 2 - market]\nFish and $question."
    assert f"\n\n{shown}\n\n" in prompt


def test_the_judge_sees_that_a_hit_has_no_text(chunks: Corpus, tmp_path: Path) -> None:
    llm = always('{"grade": 8}')
    graded(Grading(llm=llm), chunks, questions("at 9"), [["elsewhere", "market"]], [["light_1"]], tmp_path)
    (prompt,) = llm.asked
    assert "[Chunk 1 - elsewhere]\n(no text: the corpus lacks this document)\n\n[Chunk 2 - market]" in prompt


def test_a_question_without_hits_is_graded_and_the_prompt_says_so(chunks: Corpus, tmp_path: Path) -> None:
    llm = always('{"grade": 1}')
    found = graded(Grading(llm=llm), chunks, questions(n=1), [[]], [["ferry_1"]], tmp_path)
    assert "(nothing was retrieved)" in llm.asked[0]
    assert "(none is given)" in llm.asked[0]
    assert found.values.tolist() == [1]
    assert found.ranks.tolist() == [math.inf]


def test_only_the_first_chunks_are_seen(chunks: Corpus, tmp_path: Path) -> None:
    llm = always('{"grade": 1}')
    found = graded(Grading(llm=llm, k=2), chunks, questions(n=1), [list(chunks.ids)], [["ferry_1"]], tmp_path)
    assert "Chunk 2" in llm.asked[0]
    assert "Chunk 3" not in llm.asked[0]
    assert found.ranks.tolist() == [math.inf]  # it is the third


def test_chunks_that_are_too_long_are_cut_and_counted(tmp_path: Path) -> None:
    llm, corpus = always('{"grade": 30}'), Corpus(["long", "short"], ["x" * 200, "y" * 20])
    found = graded(
        Grading(llm=llm, max_characters=100), corpus, questions(n=2), [["long"], ["short"]], [[]] * 2, tmp_path
    )
    assert not any("x" * 95 in question for question in llm.asked)
    assert (found.figures()["grade/cut"], found.figures()["grade/clamped"]) == (1, 2)
    first, second = found.warnings(SCALE)
    assert first.startswith("2 of 2 grades were outside the scale of 1 to 10")
    assert second.startswith("1 of 2 verdicts are based on texts that were cut")


@pytest.mark.parametrize(
    ("settings", "ranks"),
    [
        ({"document_pattern": r"(.+)_\d+"}, [2, 1, math.inf]),
        ({"document_field": "doc"}, [2, 1, math.inf]),
        ({}, [3, 1, math.inf]),  # a chunk is its own document
    ],
)
def test_the_rank_is_of_the_first_chunk_of_the_needles_document(
    chunks: Corpus, tmp_path: Path, settings: dict[str, str], ranks: list[float]
) -> None:
    found = [["ferry_1", "light_2", "light_1"], ["market"], ["market"]]
    grading = Grading(llm=always('{"grade": 1}'), **settings)  # type: ignore[arg-type]  # of the right names
    expected = [["light_1"], ["market"], ["light_2"]]
    assert graded(grading, chunks, questions(n=3), found, expected, tmp_path).ranks.tolist() == ranks


def test_a_needle_may_be_named_by_its_document(chunks: Corpus, tmp_path: Path) -> None:
    grading = Grading(llm=always('{"grade": 1}'), document_pattern=r"(.+)_\d+")
    found = graded(grading, chunks, questions(n=1), [["ferry_1", "light_2"]], [["light"]], tmp_path)
    assert found.ranks.tolist() == [2]


def test_a_search_that_failed_is_not_graded_and_counted(chunks: Corpus, tmp_path: Path) -> None:
    llm = always('{"grade": 6}')
    found = graded(Grading(llm=llm), chunks, questions(n=2), [[], ["market"]], [["market"]] * 2, tmp_path, failed=[0])
    assert len(llm.asked) == 1
    assert found.figures()["grade/errors"] == 1
    assert found.failed == 0  # which no other grading would mend
    assert found.figures()["grade/mean"] == 6
    assert found.figures() is found.figures()  # computed once
    assert found.hit(1) == 1


def test_total_score_is_grade_times_the_weight_of_the_rank() -> None:
    found = make_grades([10, 8, 8, 3, None], [1, 3, math.inf, 1, 2])
    np.testing.assert_allclose(found.totals, [10.0, 6.4, 4.0, 3.0, np.nan])
    assert found.figures()["grade/total_score"] == pytest.approx((10 + 6.4 + 4 + 3) / 4)


def test_weights_are_settings() -> None:
    np.testing.assert_allclose(make_grades([10, 10, 10], [1, 5, math.inf], weights=(0.9, 0.7, 0.1)).totals, [9, 7, 1])


def test_hits_and_reciprocal_rank_are_over_questions_with_a_needle() -> None:
    found = make_grades([5, 5, 5, 5], [1, 4, math.inf, math.nan])
    assert (found.hit(1), found.hit(5)) == (1 / 3, 2 / 3)
    assert found.reciprocal_rank == pytest.approx((1 + 1 / 4 + 0) / 3)


def test_the_mean_of_no_grades_is_none(chunks: Corpus, tmp_path: Path) -> None:
    figures = graded(Grading(llm=always("")), chunks, questions(), [], [], tmp_path).figures()
    assert [figures[name] for name in ("grade/mean", "grade/total_score", "grade/mrr", "hit_at_1")] == [None] * 4
    assert figures["grade/failures"] == 0


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0, math.inf]), min_size=1, max_size=30))
def test_hit_at_1_is_at_most_the_mean_reciprocal_rank_which_is_at_most_hit_at_5(ranks: list[float]) -> None:
    found = make_grades([5] * len(ranks), ranks)
    assert found.hit(1) is not None
    assert found.hit(1) <= found.reciprocal_rank <= found.hit(5)  # type: ignore[operator]  # none is None


def test_failures_are_counted_and_left_out_of_the_mean(chunks: Corpus, tmp_path: Path) -> None:
    said = ['{"grade": 4}', "hm", ChatError("refused", "refusal"), '{"grade": 57}', "grade: 6"]
    llm = Scripted(lambda question, before: next(a for i, a in enumerate(said) if f"question {i}\n" in question))
    grading = Grading(llm=llm, backoff_s=0)
    figures = graded(grading, chunks, questions(n=5), [["market"]] * 5, [["market"]] * 5, tmp_path).figures()
    assert figures["grade/mean"] == pytest.approx((4 + 10 + 6) / 3)
    counts = {name: figures[f"grade/{name}"] for name in ("failures", "parse_failures", "errors", "rescued", "clamped")}
    assert counts == {"failures": 2, "parse_failures": 1, "errors": 1, "rescued": 1, "clamped": 1}


def test_an_expected_answer_that_repeats_the_question_is_flagged(chunks: Corpus, tmp_path: Path) -> None:
    grading = Grading(llm=always('{"grade": 4}'))
    queries = questions("  Question 0 ", "an answer", "")
    found = graded(grading, chunks, queries, [["market"]] * 3, [["market"]] * 3, tmp_path)
    assert found.echoes == [True, False, False]
    assert found.figures()["grade/echoes"] == 1


def test_repeated_grading_reports_the_spread(chunks: Corpus, tmp_path: Path) -> None:
    llm = Scripted(lambda question, before: json.dumps({"grade": 4 + 2 * before}))
    grading = Grading(llm=llm, repeats=2)
    found = graded(grading, chunks, questions(n=1), [["market"]], [["market"]], tmp_path)
    assert found.values.tolist() == [5]
    assert found.figures()["grade/spread"] == pytest.approx(math.sqrt(2))


def test_a_reference_is_compared_with(chunks: Corpus, tmp_path: Path) -> None:
    (tmp_path / "human.csv").write_text("query_id,grade\nq0,4\nq1,8\n")
    llm = Scripted(lambda question, before: json.dumps({"grade": 5 if "question 0\n" in question else 9}))
    grading = Grading(llm=llm, reference=str(tmp_path / "human.csv"))
    figures = graded(grading, chunks, questions(n=2), [["market"]] * 2, [["market"]] * 2, tmp_path).figures()
    assert figures["grade/agreement/mean_error"] == 1
    assert figures["grade/agreement/spearman"] == pytest.approx(1)


def test_grades_read_back_as_they_were(tmp_path: Path) -> None:
    found = make_grades([5, None, 7], [1, math.inf, math.nan], echoes=[False, True, False])
    save_grades(found, ["a", "b", "c"], tmp_path / "grades.parquet")
    columns = pq.read_table(tmp_path / "grades.parquet").to_pydict()
    again = load_grades(json.loads(json.dumps(found.head())), ["a", "b", "c"], columns)
    assert again.verdicts == found.verdicts
    np.testing.assert_array_equal(again.ranks, found.ranks)
    assert again.head() == found.head()


def test_what_decides_a_grade_is_its_identity(tmp_path: Path) -> None:
    llm, prompt = always(""), tmp_path / "prompt.txt"
    prompt.write_text("$question $expected_answer $chunks")
    one = Grading(llm=llm, prompt=str(prompt)).identity(questions("x"))
    assert Grading(llm=llm, prompt=str(prompt), backoff_s=9).identity(questions("x")) == one
    assert Grading(llm=llm, prompt=str(prompt), k=3).identity(questions("x")) != one
    assert Grading(llm=llm, prompt=str(prompt)).identity(questions("y")) != one
    assert Grading(llm=replace(llm, name="other"), prompt=str(prompt)).identity(questions("x")) != one
    prompt.write_text("$question $expected_answer $chunks!")
    assert Grading(llm=llm, prompt=str(prompt)).identity(questions("x")) != one


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"prompt": "nowhere.txt"}, "nowhere.txt: the prompt cannot be read"),
        (
            {"prompt": "bundled:relevance.txt"},
            "must contain \\$question, \\$expected_answer, \\$chunks and no other placeholders",
        ),
        ({"document_pattern": "no group"}, "should contain a group"),
        ({"document_pattern": "("}, "document_pattern"),
        ({"document_pattern": "(.)", "document_field": "doc"}, "set only one"),
        ({"reference": "nowhere.csv"}, "nowhere.csv: cannot be read"),
        ({"weights": (1.0, 2.0, 0.5)}, "weights"),
        ({"k": 0}, "k"),
    ],
)
def test_a_mistake_in_the_settings_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Grading(llm=always(""), **settings)


def chunk_at(rank: int | None) -> list[str]:
    """Return five chunks, the needle's own from a rank on, or nowhere."""
    return [f"{NEEDLE if rank is not None and i >= rank else 'other'}_mdsem_{i}" for i in range(1, 6)]


@pytest.mark.parametrize("system", ["plm", "baseline_enriched", "baseline_naive"])
def test_hit_and_mrr_are_those_that_a_real_benchmark_reported(real_needle: Path, tmp_path: Path, system: str) -> None:
    report = json.loads((real_needle / "results" / "needle_benchmark.json").read_text())
    ranks = [question[f"{system}_rank"] for question in report["per_question"]]
    found = [chunk_at(rank) for rank in ranks]
    ids = sorted({i for row in found for i in row})
    grading = Grading(llm=always('{"grade": 5}'), document_pattern=PATTERN)
    n = len(ranks)
    grades = graded(grading, Corpus(ids, ids), questions(n=n), found, [[f"{NEEDLE}_mdsem_0"]] * n, tmp_path)
    assert [None if math.isinf(rank) else rank for rank in grades.ranks.tolist()] == ranks
    assert grades.reciprocal_rank == pytest.approx(report[system]["mrr"], abs=1e-12)
    for k in (1, 3, 5):
        assert grades.hit(k) == pytest.approx(report[system][f"hit_at_{k}"] / 100)


def test_the_ranks_of_the_table_give_the_same(real_needle: Path) -> None:
    report = json.loads((real_needle / "results" / "needle_benchmark.json").read_text())
    with (real_needle / "results" / "needle_per_question.csv").open() as file:
        rows = list(csv.DictReader(file))
    for column, system in (("plm", "plm"), ("enriched", "baseline_enriched"), ("naive", "baseline_naive")):
        ranks = [float(row[f"{column}_rank"] or math.inf) for row in rows]
        assert make_grades([5] * len(ranks), ranks).reciprocal_rank == pytest.approx(report[system]["mrr"], abs=1e-12)


def test_real_chunks_have_the_ranks_and_hit_rate_of_a_real_benchmark(real_needle: Path, tmp_path: Path) -> None:
    (file,) = (real_needle / "results").glob("needle_adversarial_retrieval_*.json")
    report = json.loads(file.read_text())
    results = report["results"]
    texts = {c["chunk_id"]: c["content"] for r in results for c in r["retrieved_chunks"]}
    queries = Queries(
        [r["question_id"] for r in results],
        [r["question"] for r in results],
        [""] * len(results),
        [{"expected_answer": r["expected_answer"]} for r in results],
    )
    found = [[c["chunk_id"] for c in r["retrieved_chunks"]] for r in results]
    llm = always('{"grade": 5}')
    grading = Grading(llm=llm, document_pattern=PATTERN)
    corpus = Corpus(list(texts), list(texts.values()))
    grades = graded(grading, corpus, queries, found, [[report["needle_doc_id"]]] * len(results), tmp_path)
    assert grades.hit(5) == report["summary"]["needle_found_rate"] / 100
    assert [math.isfinite(rank) for rank in grades.ranks] == [r["needle_found"] for r in results]
    needles = [[c["is_needle"] for c in r["retrieved_chunks"]] for r in results]
    assert [rank for rank in grades.ranks.tolist() if math.isfinite(rank)] == [
        row.index(True) + 1 for row in needles if any(row)
    ]
    prompt = next(asked for asked in llm.asked if results[0]["question"] in asked)
    for i, chunk in enumerate(results[0]["retrieved_chunks"], start=1):
        assert f"[Chunk {i} - {chunk['doc_id']}]\n{chunk['content']}" in prompt
