from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from hypothesis import given

from retrievers.store import MemoryStore
from runner.datasets.anchoring import hash_text
from runner.datasets.synthetic import Synthetic
from runner.features.synthesize.base import Bundle
from runner.features.synthesize.checks import Rejection
from runner.features.synthesize.output import write
from runner.features.synthesize.pipeline import SynthesisResult
from runner.features.synthesize.report import chunks_line, describe_located, reasons_table, types_table
from runner.features.synthesize.summary import count_spans, figures, summarize_types, summary
from tests.features.synthesize.worlds import create_chunks, make_candidate, read_lines
from tests.strategies.synthesis import synthesis_results

CHUNKS = create_chunks([[1, 0], [0, 1], [1, 1]], ["a", "a", "b"])
METRICS = {"bm25_rank": 1.0, "bm25_margin": 0.7, "ragas_context_relevance": 0.9}

OUTCOME = SynthesisResult(
    chunks=CHUNKS,
    source=CHUNKS,
    rejected=[Rejection(1, "too short", "2 tokens, below 5")],
    bundles=[Bundle((0,), (2,)), Bundle((2, 0), (1,))],
    types=["keyword", "long"],
    candidates=[
        make_candidate("w0", "keyword", (0,), **METRICS),
        make_candidate("matter w2", "long", (2, 0)),
        make_candidate("w1", "keyword", (0,), "bm25 rank", bm25_rank=2.0),
        make_candidate("", "long", (2,), "no prose"),
    ],
    exhausted=False,
)


def test_files_have_the_schema_of_a_synthetic_ground_truth(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    write(output, OUTCOME, {"accepted": 2})
    first, second = read_lines(output)
    assert first == {
        "query": "w0",
        "expected_doc_ids": ["a"],
        "context_chunks": [{"doc_id": "a", "chunk_id": "0", "chunk": CHUNKS.texts[0]}],
        "validation": {
            "query_type": "keyword",
            "evaluation": "nonllm",
            "bm25_margin": 0.7,
            "ragas_context_relevance": 0.9,
            "nonllm_metrics": {"bm25_rank": 1.0, "bm25_margin": 0.7},
        },
    }
    assert second["expected_doc_ids"] == ["b", "a"]
    rejected = read_lines(tmp_path / "out.jsonl.rejected.jsonl")
    assert [(row["query"], row["validation"]["reason"]) for row in rejected] == [("w1", "bm25 rank"), ("", "no prose")]
    assert [row["chunk_id"] for row in read_lines(tmp_path / "out.jsonl.chunks.jsonl")] == ["0", "1", "2"]
    assert read_lines(tmp_path / "out.jsonl.rejected_chunks.jsonl") == [
        {"doc_id": "a", "chunk_id": "1", "reason": "too short", "found": "2 tokens, below 5"}
    ]
    spans = read_lines(tmp_path / "out.jsonl.spans.jsonl")
    assert spans[0]["quote"] == CHUNKS.texts[0]  # the chunk is one sentence
    assert [(span["query_id"], span["doc_id"]) for span in spans] == [("s00001", "a"), ("s00002", "b"), ("s00002", "a")]
    assert orjson.loads((tmp_path / "out.jsonl.summary.json").read_bytes()) == {"accepted": 2}


@given(synthesis_results())
def test_every_span_in_the_file_is_the_answer_in_its_chunk(outcome: SynthesisResult) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        write(path, outcome, {})
        spans = Synthetic(path=str(path), gold="spans").load().judgments.spans
    assert spans is not None
    chunks, column = outcome.chunks, iter(spans.anchored)
    for candidate, answers in zip(outcome.accepted, outcome.answers, strict=True):
        for golden, answer in zip(candidate.request.bundle.goldens, answers, strict=True):
            anchored = next(column)
            text = spans.corpus.texts[spans.corpus.positions[anchored.span.document]]
            start = anchored.anchor.start - answer.start
            assert anchored.anchor.method == "exact"
            assert text[start : start + len(chunks.texts[golden])] == chunks.texts[golden]
            assert text[anchored.anchor.start : anchored.anchor.end] == chunks.texts[golden][answer.start : answer.end]
    assert next(column, None) is None


def test_the_span_of_a_repeated_answer_is_in_the_gold_chunk(tmp_path: Path) -> None:
    texts = ["One is old. Two is new. Three is red.", "Four is old. Two is new. Five is blue.", "Six."]
    chunks = replace(CHUNKS, texts=texts)
    candidates = [make_candidate("two new", "keyword", (1,)), make_candidate("old blue", "keyword", (1, 2))]
    outcome = replace(OUTCOME, chunks=chunks, source=chunks, candidates=candidates)
    write(tmp_path / "out.jsonl", outcome, {})
    first, *others = read_lines(tmp_path / "out.jsonl.spans.jsonl")
    text = "\n\n".join(texts[:2])
    assert first == {
        "query_id": "s00001",
        "doc_id": "a",
        "grade": 1,
        "start": text.rindex("Two"),
        "end": text.rindex(" Five"),
        "lines": [3, 3],
        "quote": "Two is new.",
        "before": "One is old. Two is new. Three is red.\n\nFour is old. ",
        "after": " Five is blue.",
        "occurrences": 2,
        "document_hash": hash_text(text),
    }
    assert [span["quote"] for span in others] == texts[1:]
    assert count_spans(outcome) == {"exact": 0, "words": 1, "chunk": 2}
    assert describe_located(count_spans(outcome)).startswith("gold spans: 1 of 3 are sentences")


def test_the_summary_counts_queries_and_measures_their_difficulty() -> None:
    types = summarize_types(OUTCOME, MemoryStore())
    result = summary(OUTCOME, types, {"count": 2})
    assert (result["wanted"], result["requested"], result["accepted"], result["exhausted"]) == (2, 4, 2, False)
    assert result["generated"] == 3  # the fourth was never written
    assert (result["types"]["long"]["requested"], result["types"]["long"]["generated"]) == (2, 1)
    keyword = result["types"]["keyword"]
    assert keyword == {
        "requested": 2,
        "generated": 2,
        "accepted": 1,
        "rejected": {"bm25 rank": 1},
        "mean_words": 1.0,
        "lexical_overlap": 1.0,
        "difficulty": {"bm25_hit_at_1": 1.0, "bm25_hit_at_10": 1.0},
    }
    assert result["types"]["long"]["rejected"] == {"no prose": 1}
    assert result["goldens_per_query"] == {"1": 1, "2": 1}
    assert result["spans"] == {"exact": 0, "words": 0, "chunk": 3}
    assert result["chunks"] == {"read": 3, "kept": 3, "rejected": {"too short": 1}, "asked_about": 2}
    assert result["documents"] == {"read": 2, "asked_about": 2}
    named = figures(types)
    assert (named["accepted"], named["accepted/keyword"], named["lexical_overlap/keyword"]) == (2, 1, 1.0)


def test_tables_show_every_type_and_reason() -> None:
    types = summarize_types(OUTCOME, MemoryStore())
    rows = types_table(types).texts()
    assert types_table(types).columns[4].title == "of the generated"
    assert [row[:5] for row in rows] == [
        ["keyword", "2", "2", "1", "50.0%"],
        ["long", "2", "1", "1", "100.0%"],
        ["all", "4", "3", "2", "66.7%"],
    ]
    assert reasons_table(types).texts() == [["bm25 rank", "1", "keyword 1"], ["no prose", "1", "long 1"]]
    assert chunks_line(3, OUTCOME.rejected, 2) == "3 chunks of 2 documents; left out: too short 1"
