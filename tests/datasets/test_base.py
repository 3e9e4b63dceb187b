"""Assembling: what is checked, dropped, sampled and refused, whatever the format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus
from runner.datasets.assembly import add_qrels
from runner.datasets.base import DatasetError, GradeInterval, Judgments, Qrel, Queries, Raw, corpus_of
from runner.datasets.dataset import Dataset
from runner.datasets.source import DatasetSource


@settings(frozen=True, config={"extra": "forbid"})
class Ready(DatasetSource):
    """A source whose `Raw` is at hand."""

    def read(self) -> Raw:
        return raw()


def raw(
    qrels: Sequence[Qrel] = (("q1", "d1", 1), ("q2", "d2", 2)),
    judged: Sequence[str] = (),
    by_type: Mapping[str, Sequence[Qrel]] | None = None,
    n_documents: int = 4,
    n_queries: int = 3,
) -> Raw:
    documents = [f"d{i + 1}" for i in range(n_documents)]
    queries = [f"q{i + 1}" for i in range(n_queries)]
    return Raw(
        corpus=Corpus(documents, [f"text of {i}" for i in documents]),
        queries=Queries(queries, [f"text of {i}" for i in queries], [""] * n_queries),
        qrels=qrels,
        judged=judged,
        qrels_by_search_type=by_type or {},
        qrels_name="qrels.tsv",
    )


def named(dataset: Dataset, judgments: Judgments | None = None) -> dict[tuple[str, str], int]:
    """Return judgments by ids."""
    judgments = judgments or dataset.judgments
    documents = [*dataset.corpus.ids, *dataset.judgments.unknown_documents]
    return {(dataset.queries.ids[q], documents[d]): grade for q, d, grade in judgments.list_rows()}


def refused(raw: Raw, message: str, **limits: Any) -> None:
    with pytest.raises(DatasetError, match=re.escape(message)) as error:
        Ready(name="x", **limits).assemble(raw)
    assert "\n" not in str(error.value)


def test_a_dataset_has_its_judged_queries_and_sorted_judgments() -> None:
    dataset = Ready().assemble(raw([("q2", "d2", 2), ("q1", "d3", 0), ("q1", "d1", 1)]))
    assert (dataset.name, dataset.split, dataset.queries.ids) == ("ready", "test", ("q1", "q2"))
    assert dataset.judgments.queries.tolist() == [0, 0, 1]
    assert dataset.judgments.documents.tolist() == [0, 2, 1]
    assert dataset.judgments.grades.tolist() == [1, 0, 2]
    assert {c.dtype for c in (dataset.judgments.queries, dataset.judgments.documents, dataset.judgments.grades)} == {
        np.dtype(np.int32)
    }


def test_an_unjudged_query_is_dropped_unless_nothing_is_its_right_answer() -> None:
    assert Ready().assemble(raw()).queries.ids == ("q1", "q2")
    dataset = Ready().assemble(raw(judged=["q3"]))
    assert list(dataset.queries.ids) == ["q1", "q2", "q3"]
    assert dataset.judgments.golds(3).tolist() == [1, 1, 0]


def test_judged_queries_may_come_from_an_iterator() -> None:
    assert len(Ready().assemble(replace(raw(), judged=iter(["q3"]))).queries) == 3


def test_a_query_that_has_only_irrelevant_documents_is_judged() -> None:
    assert Ready().assemble(raw([("q3", "d1", 0)])).queries.ids == ("q3",)


def test_a_dataset_of_true_negatives_alone_loads() -> None:
    assert len(Ready().assemble(raw([], judged=["q1"])).judgments) == 0


def test_unjudged_queries_can_be_included_even_if_nothing_is_judged() -> None:
    dataset = Ready(unjudged_queries="keep").assemble(raw())
    assert list(dataset.queries.ids) == ["q1", "q2", "q3"]
    assert dataset.judgments.golds(3).tolist() == [1, 1, 0]
    assert len(Ready(unjudged_queries="keep").assemble(raw([])).queries) == 3


def test_extra_qrels_are_added_and_replace_those_of_the_same_pairs(tmp_path: Path) -> None:
    extra = tmp_path / "extra.tsv"
    extra.write_text("query-id\tcorpus-id\tscore\nq1\td1\t3\nq3\td2\t1\n")
    expected = {("q1", "d1"): 3, ("q2", "d2"): 2, ("q3", "d2"): 1}
    assert named(Ready(extra_qrels=str(extra)).load()) == expected
    content = raw(by_type={"bm25": [("q1", "d1", 1), ("q1", "d4", 1)]})
    merged = Ready().assemble(add_qrels(content, [("q1", "d1", 3), ("q3", "d2", 1)], "extra.tsv"))
    assert named(merged, merged.judgments.select("bm25")) == expected | {("q1", "d4"): 1}
    with pytest.raises(DatasetError, match=r"extra_qrels=.*: no such file"):
        Ready(extra_qrels=str(tmp_path / "none.tsv")).load()
    extra.write_text("q9\td1\t3\n")
    with pytest.raises(DatasetError, match=r"/extra\.tsv:1: 1 judged query is not among the 3 queries"):
        Ready(extra_qrels=str(extra)).load()


def test_of_several_extra_qrels_the_last_one_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first.tsv", tmp_path / "second.tsv"
    first.write_text("query-id\tcorpus-id\tscore\nq1\td1\t3\nq3\td2\t1\n")
    second.write_text("query-id\tcorpus-id\tscore\nq3\td2\t2\nq2\td4\t1\n")
    expected = {("q1", "d1"): 3, ("q2", "d2"): 2, ("q3", "d2"): 2, ("q2", "d4"): 1}
    assert named(Ready(extra_qrels=(str(first), str(second))).load()) == expected
    assert named(Ready(extra_qrels=(str(second), str(first))).load()) == expected | {("q3", "d2"): 1}
    second.write_text("q9\td1\t3\n")
    with pytest.raises(DatasetError, match=r"/second\.tsv:1: 1 judged query is not among"):
        Ready(extra_qrels=(str(first), str(second))).load()
    assert named(Ready(extra_qrels=()).load()) == named(Ready().load())
    with pytest.raises(ValidationError, match="extra_qrels"):
        Ready(extra_qrels=("",))


def test_a_negative_grade_stays_negative() -> None:
    assert named(Ready().assemble(raw([("q1", "d1", -2), ("q1", "d2", 1)]))) == {("q1", "d1"): -2, ("q1", "d2"): 1}


def test_the_same_judgment_twice_is_one() -> None:
    assert named(Ready().assemble(raw([("q1", "d1", 2)] * 3))) == {("q1", "d1"): 2}


def test_no_documents_no_judged_queries_are_refused() -> None:
    refused(raw(n_documents=0), "x: the dataset has no documents")
    refused(raw([]), "x: qrels.tsv contains no judgments for the 3 queries")
    refused(raw([], n_queries=0), "x: the dataset has no queries")


def test_repeated_ids_are_refused_by_name() -> None:
    refused(replace(raw(), queries=Queries(["q1", "q2", "q1"], [""] * 3, [""] * 3)), "the query id 'q1' occurs more")

    class Repeating(Ready):
        def read(self) -> Raw:
            return replace(raw(), corpus=corpus_of([("d1", "", "a"), ("d1", "", "b")]))

    with pytest.raises(DatasetError, match="repeating: the document id 'd1' occurs more than once"):
        Repeating().load()


def test_a_pair_with_two_grades_is_refused_by_name() -> None:
    conflict = [("q2", "d1", 1), ("q1", "d2", 1), ("q1", "d2", 3)]
    refused(raw(conflict), "qrels.tsv: query 'q1' and document 'd2' have two grades, 1 and 3; keep one")


def test_judgments_of_other_queries_are_refused_with_their_number() -> None:
    stray = [("q1", "d1", 1), ("q8", "d1", 1), ("q8", "d2", 1), ("q9", "d1", 1)]
    refused(raw(stray), "qrels.tsv: 2 judged queries are not among the 3 queries of the dataset, for example 'q8'")
    refused(raw(judged=["q7"]), "1 judged query is not among the 3 queries of the dataset, for example 'q7'")


def test_judgments_of_queries_that_a_sample_lacks_can_be_dropped(caplog: pytest.LogCaptureFixture) -> None:
    whole = raw([("q1", "d1", 2), ("q8", "z", 1), ("q2", "d2", 0), ("q9", "d1", 1)], judged=["q3", "q7"])
    refused(whole, "if the queries are a sample, set dataset.unknown_queries=drop")
    intervals = [GradeInterval(q, "d1", 3, 1, 0.5, 0.1, 0.9, 1, 0, 2) for q in ("q1", "q9")]
    with caplog.at_level("WARNING", "runner.datasets"):
        dataset = Ready(unknown_queries="drop").assemble(replace(whole, grade_intervals=intervals))
    assert (list(dataset.queries.ids), tuple(dataset.judgments.unknown_documents)) == (["q1", "q2", "q3"], ())
    assert named(dataset) == {("q1", "d1"): 2, ("q2", "d2"): 0}
    assert [interval.query for interval in dataset.judgments.intervals] == ["q1"]
    assert caplog.messages == [
        "qrels.tsv: 3 judged queries are not among the 3 queries of the dataset, for example 'q8'; 2 judgments are "
        "left out"
    ]


UNKNOWN: list[Qrel] = [
    ("q1", "d1", 1),
    ("q1", "z", 1),
    ("q2", "y", 3),
    ("q2", "d3", 0),
    ("q3", "y", 0),
    ("q3", "d1", 1),
]


def test_judged_documents_that_the_corpus_lacks_are_refused_with_the_way_out() -> None:
    refused(raw(UNKNOWN), "qrels.tsv: 2 judged documents are not among the 4 documents of the corpus, for example 'z'")
    refused(raw(UNKNOWN), "dataset.unknown_judged=keep")


def test_judged_documents_missing_from_the_corpus_can_be_included() -> None:
    dataset = Ready(unknown_judged="keep").assemble(raw(UNKNOWN))
    assert tuple(dataset.judgments.unknown_documents) == ("y", "z")
    assert named(dataset) == {(q, d): g for q, d, g in UNKNOWN}
    assert dataset.judgments.documents.max() == 5


def test_judged_documents_missing_from_the_corpus_can_be_dropped() -> None:
    dataset = Ready(unknown_judged="drop").assemble(raw(UNKNOWN))
    assert named(dataset) == {("q1", "d1"): 1, ("q3", "d1"): 1}
    assert (list(dataset.queries.ids), tuple(dataset.judgments.unknown_documents)) == (["q1", "q3"], ())


def test_a_true_negative_survives_dropping() -> None:
    dataset = Ready(unknown_judged="drop").assemble(raw([("q1", "d1", 1), ("q2", "z", 0)], judged=["q3"]))
    assert list(dataset.queries.ids) == ["q1", "q2", "q3"]


def test_unknown_documents_follow_a_corpus_that_is_cut() -> None:
    dataset = Ready(unknown_judged="keep", max_documents=1, max_queries=1, seed=3).assemble(raw(UNKNOWN))
    assert len(dataset.queries) == 1
    expected = {(q, d): g for q, d, g in UNKNOWN if q == dataset.queries.ids[0]}
    assert named(dataset) == expected


def test_a_search_type_replaces_the_judgments_of_the_queries_that_it_names() -> None:
    dataset = Ready().assemble(raw(by_type={"bm25": [("q1", "d4", 3)]}))
    assert named(dataset, dataset.judgments.select("bm25")) == {("q1", "d4"): 3, ("q2", "d2"): 2}
    assert named(dataset, dataset.judgments.select("dense")) == named(dataset) == {("q1", "d1"): 1, ("q2", "d2"): 2}


def test_the_seed_decides_which_queries_and_documents_are_sampled() -> None:
    big = raw([(f"q{i}", f"d{i}", 1) for i in range(1, 41)], n_documents=100, n_queries=40)

    def sample(seed: int) -> tuple[list[str], list[str]]:
        dataset = Ready(max_queries=5, max_documents=20, seed=seed).assemble(big)
        return list(dataset.queries.ids), list(dataset.corpus.ids)

    assert sample(1) == sample(1) != sample(2)
    assert tuple(map(len, sample(1))) == (5, 20)


@pytest.mark.parametrize("limit", [{"max_queries": 0}, {"max_documents": 0}, {"seed": -1}, {"unknown_judged": "no"}])
def test_settings_out_of_range_are_refused(limit: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Ready(**limit)


@given(
    qrels=st.dictionaries(
        st.tuples(st.integers(1, 8).map("q{}".format), st.integers(1, 16).map("d{}".format)),
        st.integers(-1, 3),
        min_size=1,
    ),
    max_queries=st.none() | st.integers(1, 10),
    max_documents=st.none() | st.integers(1, 20),
    unknown=st.sampled_from(["keep", "drop"]),
    seed=st.integers(0, 3),
)
def test_limits_keep_every_judgment_of_the_remaining_queries(
    qrels: dict[tuple[str, str], int], max_queries: int | None, max_documents: int | None, unknown: Any, seed: int
) -> None:
    source = Ready(max_queries=max_queries, max_documents=max_documents, unknown_judged=unknown, seed=seed)
    everything = raw([(q, d, g) for (q, d), g in qrels.items()], judged=["q1"], n_documents=12, n_queries=8)
    with_gold = {q for (q, _), g in qrels.items() if g > 0}
    with_known = {q for (q, d), g in qrels.items() if g > 0 and d in everything.corpus.ids}
    judged = {"q1", *(q for q, _ in qrels)}
    assume(unknown == "keep" or judged - with_gold or with_known)  # else nothing is left, and refused
    dataset = source.assemble(everything)
    queries, documents = set(dataset.queries.ids), list(dataset.corpus.ids)
    assert named(dataset) == {
        (q, d): g for (q, d), g in qrels.items() if q in queries and (unknown == "keep" or d in everything.corpus.ids)
    }
    assert documents == [d for d in everything.corpus.ids if d in documents]
    assert list(dataset.queries.ids) == [q for q in everything.queries.ids if q in queries]
    assert list(dataset.queries.texts) == [f"text of {q}" for q in dataset.queries.ids]
    assert list(dataset.corpus.texts) == [f"text of {d}" for d in documents]
    judged_documents = {d for _, d in named(dataset)} & set(documents)
    assert len(documents) == (12 if max_documents is None else max(min(max_documents, 12), len(judged_documents)))
    if max_queries is not None:
        assert len(queries) <= max_queries
