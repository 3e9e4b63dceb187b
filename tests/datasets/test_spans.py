"""Gold spans judge any chunking: by sets of words, as an independent implementation does."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest

from retrievers.base import Rankings
from runner.comparison.headline import list_token_measures
from runner.datasets.anchoring import hash_text
from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.chunking import Chunking, Headings, Sentences, Tokens, Whole
from runner.datasets.dataset import Dataset
from runner.datasets.spans import read_spans
from runner.evaluation.measuring import RankedDocuments, measure
from runner.evaluation.result import JudgedQueries
from runner.evaluation.span_sensitivity import measure_by_threshold
from runner.metrics.errors import MeasureError
from runner.metrics.measures import expand, parse
from runner.metrics.reach import list_token_warnings
from runner.metrics.scores import Grader
from runner.metrics.settings import MetricSettings
from runner.metrics.tokens import build_token_gold
from runner.statistics.settings import Statistics
from runner.tracking.record import metric_name

CHUNKINGS = [Tokens(5), Tokens(9, 4), Sentences(12), Sentences(10, 5), Headings(20)]
K_VALUES, BUDGETS = (1, 3, 10), (7, 40)
MEASURES = expand(["nDCG", "P", "R", "TokenR", "TokenP", "TokenIoU"], K_VALUES, BUDGETS)
WORDS = ["tower", "ship", "night", "fare", "isle"]
WORD = re.compile(r"[a-z0-9]+")


def write_dataset(folder: Path, documents: dict[str, str], spans: list[dict[str, object]]) -> Path:
    """Write a dataset in BEIR's layout, without qrels, and a file of spans."""
    queries = dict.fromkeys(str(span["query_id"]) for span in spans)
    rows = {
        "corpus.jsonl": [{"_id": name, "title": "", "text": text} for name, text in documents.items()],
        "queries.jsonl": [{"_id": query, "text": f"about {query}"} for query in queries],
        "spans.jsonl": spans,
    }
    for name, lines in rows.items():
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def load(folder: Path, **settings: object) -> Dataset:
    return Beir(path=str(folder), gold="spans", spans=str(folder / "spans.jsonl"), **settings).load()


def write_text(rng: random.Random) -> str:
    """Return a document of headings and sentences, in lower-case words."""
    parts = []
    for number in range(rng.randint(1, 4)):
        sentences = [" ".join(rng.choices(WORDS, k=rng.randint(2, 9))) for _ in range(6)]
        parts.append(f"# part {number}\n\n" + ". ".join(sentences) + ".\n")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, dict[str, str], list[dict[str, object]]]:
    rng = random.Random(0)
    documents = {f"d{i}": write_text(rng) for i in range(8)}
    spans: list[dict[str, object]] = []
    for query in range(12):
        for _ in range(rng.randint(1, 3)):
            document = rng.choice([*documents])
            words = list(WORD.finditer(documents[document]))
            first = rng.randrange(len(words))
            last = min(first + rng.randint(0, 25), len(words) - 1)
            place = {"start": words[first].start(), "end": words[last].end()}
            spans.append({"query_id": f"q{query}", "doc_id": document, "grade": rng.randint(1, 3), **place})
    return load(write_dataset(tmp_path_factory.mktemp("spans"), documents, spans)), documents, spans


def list_words(text: str, start: int, end: int) -> list[int]:
    """Return which words of a text start in a range of characters."""
    return [number for number, word in enumerate(WORD.finditer(text)) if start <= word.start() < end]


def list_chunk_words(dataset: Dataset, documents: dict[str, str]) -> list[list[tuple[str, int]]]:
    """Return the words of each chunk, each as its document and its number there."""
    if dataset.whole is None:
        return [[(name, n) for n in list_words(text, 0, len(text))] for name, text in documents.items()]
    return [
        [(about["document_id"], n) for n in list_words(documents[about["document_id"]], about["start"], about["end"])]
        for about in dataset.corpus.metadata
    ]


def score_by_sets(
    chunks: list[list[tuple[str, int]]], spans: list[tuple[set[tuple[str, int]], int]], ranking: list[int], name: str
) -> float:
    """Score the ranking of one query by sets of words: the oracle."""
    measure, cutoff = name.split("@")
    gold = set().union(*(words for words, _ in spans))
    if measure.startswith("Token"):
        if cutoff.startswith("tokens="):
            returned = [word for chunk in ranking for word in chunks[chunk]][: int(cutoff.removeprefix("tokens="))]
        else:
            returned = [word for chunk in ranking[: int(cutoff)] for word in chunks[chunk]]
        found = len(gold & set(returned))
        whole = {"TokenR": len(gold), "TokenP": len(returned), "TokenIoU": len(returned) + len(gold - set(returned))}
        return found / whole[measure] if whole[measure] else 0.0
    grades: dict[object, int] = {}
    for words, grade in spans:
        covering = [
            chunk for chunk, own in enumerate(chunks)
            if own and words & set(own) and len(words & set(own)) / min(len(words), len(set(own))) >= 0.5
        ]  # fmt: skip
        for item in covering or [f"missed {sorted(words)}"]:
            grades[item] = max(grades.get(item, 0), grade)
    k = int(cutoff)
    hits = [grades.get(chunk, 0) for chunk in ranking[:k]]
    if measure == "P":
        return sum(grade > 0 for grade in hits) / k
    if measure == "R":
        return sum(grade > 0 for grade in hits) / len(grades)
    ideal = sorted(grades.values(), reverse=True)[:k]
    gains = [sum(grade / math.log2(rank + 2) for rank, grade in enumerate(row)) for row in (hits, ideal)]
    return gains[0] / gains[1]


@pytest.mark.parametrize("chunking", [*CHUNKINGS, Whole()], ids=repr)
def test_measures_are_those_of_sets_of_words(
    world: tuple[Dataset, dict[str, str], list[dict[str, object]]], chunking: Chunking
) -> None:
    whole, documents, spans = world
    dataset = whole.split_documents(chunking)
    n, rng = len(dataset.corpus), random.Random(1)
    rows = [rng.sample(range(n), min(n, 15)) for _ in dataset.queries.ids]
    scores = np.tile(-np.arange(len(rows[0]), dtype=np.float32), (len(rows), 1))
    grader = Grader(dataset.judgments, len(rows), n, None, dataset.judged_ids, build_token_gold(dataset))
    values = grader.score(Rankings(np.array(rows, dtype=np.int32), scores), MEASURES).values
    chunks = list_chunk_words(dataset, documents)
    for query, ranking in enumerate(rows):
        own = [
            ({(str(s["doc_id"]), n) for n in list_words(documents[str(s["doc_id"])], s["start"], s["end"])}, s["grade"])
            for s in spans if s["query_id"] == dataset.queries.ids[query]
        ]  # fmt: skip
        expected = [score_by_sets(chunks, own, ranking, str(measure)) for measure in MEASURES]
        np.testing.assert_allclose(values[:, query], expected, rtol=0, atol=1e-9)


def test_measures_of_tokens_need_spans_and_only_they_are_cut_at_a_number_of_words() -> None:
    for name in ("nDCG@tokens=100", "R@tokens=5"):
        with pytest.raises(MeasureError, match="cannot be cut at a number of tokens; choose from TokenR@tokens="):
            parse(name)
    with pytest.raises(MeasureError, match="needs a cutoff"):
        parse("TokenR")
    settings = MetricSettings(primary="TokenR@tokens=99", token_budgets=(50,), k_values=(3,)).add_token_measures()
    names = [str(measure) for measure in settings.expanded]
    assert {"TokenP@3", "TokenP@tokens=50", "TokenR@tokens=99", "nDCG@3"} <= {*names}
    assert metric_name("TokenR@tokens=99") == "token_recall_at_tokens_99"
    assert not any(name.startswith("Token") for name in map(str, MetricSettings().expanded))


def test_an_evaluation_by_spans_has_no_hole_rate(
    world: tuple[Dataset, dict[str, str], list[dict[str, object]]],
) -> None:
    dataset = world[0].split_documents(Tokens(5))
    n = len(dataset.queries)
    rankings = Rankings(np.tile(np.array([0, 1], dtype=np.int32), (n, 1)), np.ones((n, 2), dtype=np.float32))
    queries = JudgedQueries(dataset.queries.ids, dataset.queries.texts, dataset.queries.types, [()] * n, [()] * n)
    settings = MetricSettings(k_values=(1, 2), primary="nDCG@2", depth=2, token_budgets=(5, 1000)).add_token_measures()
    for tokens in (None, build_token_gold(dataset)):
        grader = Grader(dataset.judgments, n, len(dataset.corpus), None, dataset.judged_ids, tokens)
        own = settings if tokens else MetricSettings(k_values=(1, 2), primary="nDCG@2", depth=2)
        measurements = measure(rankings, grader, own, Statistics(), queries, RankedDocuments(dataset.corpus.ids))
        assert (measurements.holes is None) == (tokens is not None)


def test_a_budget_beyond_the_depth_of_the_search_is_a_warning(
    world: tuple[Dataset, dict[str, str], list[dict[str, object]]],
) -> None:
    dataset = world[0].split_documents(Tokens(5))
    n = len(dataset.queries)
    grader = Grader(dataset.judgments, n, len(dataset.corpus), None, dataset.judged_ids, build_token_gold(dataset))
    rankings = Rankings(np.tile(np.array([0, 1], dtype=np.int32), (n, 1)), np.ones((n, 2), dtype=np.float32))
    measures = expand(["TokenR"], [1], [5, 1000])
    (warning,) = list_token_warnings(grader, rankings, rankings.depth, measures)
    assert warning.startswith(f"{n} of {n} queries return fewer than 1,000 words within the search depth of 2")
    assert not list_token_warnings(grader, rankings, 3, measures)  # all hits are there


def test_all_chunkings_have_one_gold(world: tuple[Dataset, dict[str, str], list[dict[str, object]]]) -> None:
    whole = world[0]
    split = [whole.split_documents(chunking) for chunking in CHUNKINGS]
    assert {dataset.fingerprint for dataset in split} == {whole.fingerprint}
    assert len({dataset.corpus.fingerprint for dataset in split}) == len(CHUNKINGS)
    for dataset in split[:-1]:  # these cover all words, so each span has a gold chunk at a threshold of 0.5
        assert not dataset.judgments.unknown_documents
        assert (dataset.judgments.golds(len(dataset.queries)) > 0).all()


def test_a_place_without_a_quote_is_lost_once_its_document_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spans: list[dict[str, object]] = [
        {"query_id": "q", "doc_id": "d", "lines": [1, 1]},
        {"query_id": "q", "doc_id": "d", "start": 0, "end": 3, "document_hash": "0" * 16},
        {"query_id": "q", "doc_id": "d", "start": 4, "end": 7, "document_hash": hash_text("one two three")},
    ]
    dataset = load(write_dataset(tmp_path, {"d": "one two three"}, spans), unknown_judged="drop")
    assert dataset.judgments.spans is not None
    assert [anchored.anchor.method for anchored in dataset.judgments.spans.anchored] == ["unchecked", "lost", "exact"]
    assert dataset.judgments.spans.ends.tolist() == [13, 7]
    assert "1 of 3 spans have neither a quote nor a document_hash" in caplog.text


def test_leaderboards_show_tokens_at_equal_numbers_of_hits_and_of_words() -> None:
    names = [*map(str, MEASURES), "nDCG@3"]
    assert list_token_measures("nDCG@3", names) == ["TokenR@3", "TokenR@tokens=40", "TokenIoU@tokens=40"]
    assert list_token_measures("nDCG@10", ["nDCG@10", "R@10"]) == []


def test_a_span_that_no_chunk_covers_stays_in_the_means(tmp_path: Path) -> None:
    documents = {"d": "one two three four five six seven eight"}
    span = {"query_id": "q", "doc_id": "d", "quote": "four five"}
    whole = load(write_dataset(tmp_path, documents, [span]), span_threshold=1.0)
    dataset = whole.split_documents(Tokens(size=4))
    assert dataset.judgments.unknown_documents == ("d['four five']",)
    assert dataset.judgments.documents.tolist() == [2] and dataset.judgments.grades.tolist() == [1]
    rankings = Rankings(np.array([[0, 1]], dtype=np.int32), np.array([[2, 1]], dtype=np.float32))
    grader = Grader(dataset.judgments, 1, 2, None, dataset.judged_ids, build_token_gold(dataset))
    means = grader.score(rankings, expand(["R", "TokenR"], [2])).means()
    assert means == {"R@2": 0.0, "TokenR@2": 1.0}
    primary = expand(["R"], [2])[0]
    means = measure_by_threshold(dataset, rankings, primary)
    assert list(means)[2] == "R@2 with span_threshold=0.5"
    assert list(means.values()) == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_quotes_offsets_and_lines_name_the_same_passage(tmp_path: Path) -> None:
    documents = {"d": "one two\nthree four\nfive six\n"}
    places = ({"quote": "three four"}, {"start": 8, "end": 18}, {"lines": [2, 2]})
    for place in places:
        dataset = load(write_dataset(tmp_path, documents, [{"query_id": "q", "doc_id": "d", **place}]))
        assert dataset.judgments.spans is not None
        assert (dataset.judgments.spans.starts.tolist(), dataset.judgments.spans.ends.tolist()) == ([8], [18])
        assert dataset.split_documents(Tokens(size=2)).judgments.documents.tolist() == [1]


def test_lost_spans_are_rejected_retained_or_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spans: list[dict[str, object]] = [
        {"query_id": "q1", "doc_id": "d", "quote": "one two"},
        {"query_id": "q1", "doc_id": "d", "quote": "gone for good"},
        {"query_id": "q2", "doc_id": "e", "lines": [1, 1]},
    ]
    folder = write_dataset(tmp_path, {"d": "one two three"}, spans)
    with pytest.raises(DatasetError, match=r"2 of 3 spans were not found .*jsonl:2, query 'q1'.*unknown_judged=keep"):
        load(folder)
    kept = load(folder, unknown_judged="keep")
    assert kept.judgments.golds(2).tolist() == [2, 1] and len(kept.judgments.unknown_documents) == 2
    gold = build_token_gold(kept)
    assert gold is not None and gold.lost.tolist() == [3, 1]
    dropped = load(folder, unknown_judged="drop")
    assert dropped.queries.ids == ("q1",) and dropped.judgments.golds(1).tolist() == [1]
    assert "2 of 3 spans were not found in their documents and are left out" in caplog.text


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"doc_id": "d", "quote": "x"}, "'query_id' is missing"),
        ({"query_id": "q", "doc_id": "d"}, "the span has no location; add 'quote'"),
        ({"query_id": "q", "doc_id": "d", "start": 3, "end": 3}, "'start' is 3 and 'end' is 3; expected 0 <="),
        ({"query_id": "q", "doc_id": "d", "start": 3}, "'end' is None; expected a whole number"),
        ({"query_id": "q", "doc_id": "d", "lines": [0, 2]}, r"'lines' is \[0, 2\]; expected 1 <= first <= last"),
        ({"query_id": "q", "doc_id": "d", "lines": 4}, "'lines' is 4; expected the numbers of the first and the last"),
        ({"query_id": "q", "doc_id": "d", "quote": "x", "grade": 0}, "'grade' is 0; a span is gold"),
    ],
)  # fmt: skip
def test_a_malformed_span_is_rejected_with_its_line(tmp_path: Path, row: dict[str, object], problem: str) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=f"spans.jsonl:1: {problem}"):
        read_spans(path)


def test_settings_that_contradict_each_other_are_rejected() -> None:
    for settings, problem in (
        ({"spans": "s.jsonl"}, "set gold=spans too"),
        ({"gold": "spans", "extra_qrels": "q.tsv"}, "grades of documents cannot be added"),
        ({"gold": "spans", "exclude_self": "true"}, "exclude_self=true: not supported"),
    ):
        with pytest.raises(ValueError, match=problem):
            Beir(path="p", **settings)
    with pytest.raises(DatasetError, match=r"set dataset\.spans to the file of spans"):
        Beir(path="missing", gold="spans").read_spans()
