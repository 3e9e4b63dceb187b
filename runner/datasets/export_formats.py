"""Write a dataset in each format that can be exported: the lines of its files, and the settings that read them back.

Content without which a score would change, and which a format cannot store, is rejected.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import orjson

from runner.datasets.base import EXPECTED_ANSWER, DatasetError, GradeInterval, Qrel
from runner.datasets.chunk_files import corpus_id
from runner.datasets.chunking import DOCUMENT
from runner.datasets.dataset import Dataset
from runner.datasets.spans import iter_rows, report_spans

RatingsFormat = Literal["ratings", "quepid", "rank_eval", "opensearch"]
"""Formats of judgments that name a query by its text; queries and documents are written next to them, in JSONL."""

Format = Literal["beir", "trec", "jsonl", "mined", "synthetic", "spans"] | RatingsFormat

_LINE_ENDS = "\r\n"
_BYTE_ORDER_MARK = "\ufeff"

Written = tuple[Mapping[Path, Iterable[bytes]], Mapping[str, object]]
"""The lines of each file, and the settings with which the dataset is read back."""

Graded = list[tuple[str, int]]
"""Documents, by id, with their grades."""


def _beir(dataset: Dataset, folder: Path) -> Written:
    _check_ids(dataset, "beir", lambda _: False, "")
    if Path(dataset.split).name != dataset.split or not dataset.split:
        raise DatasetError(
            f"dataset.split={dataset.split}: format=beir uses the split as a file name; rename the split"
        )
    typed = any(dataset.queries.types)
    queries = (
        {"_id": i, "text": text, "metadata": {**known, **({"type": kind} if typed else {})}}
        for i, text, kind, known in _queries(dataset)
    )
    qrels = (f"{q}\t{d}\t{grade}\n".encode() for q, d, grade in _qrels(dataset))
    files = {
        folder / "corpus.jsonl": map(_json, _documents(dataset, "_id")),
        folder / "queries.jsonl": map(_json, queries),
        folder / "qrels" / f"{dataset.split}.tsv": chain([b"query-id\tcorpus-id\tscore\n"], qrels),
    }
    return files, {"path": folder, **({"type_field": "type"} if typed else {})}


def _trec(dataset: Dataset, folder: Path) -> Written:
    _check_filters(dataset, "trec")
    _check_ids(dataset, "trec", lambda character: character.isspace() or character == _BYTE_ORDER_MARK, "white space")
    for identifier, text, *_ in _queries(dataset):
        if not {"\t", *_LINE_ENDS}.isdisjoint(text):
            raise DatasetError(
                f"format=trec: the text of query {identifier!r} contains a tab or a line break; choose beir or jsonl"
            )
    files = {
        folder / "documents.jsonl": map(_json, _documents(dataset, "id")),
        folder / "topics.tsv": (f"{i}\t{text}\n".encode() for i, text, *_ in _queries(dataset)),
        folder / "qrels.txt": (f"{q} 0 {d} {grade}\n".encode() for q, d, grade in _qrels(dataset)),
    }
    return files, dict(zip(("documents", "topics", "qrels"), files, strict=True))


def _jsonl(dataset: Dataset, folder: Path) -> Written:
    _check_ids(dataset, "jsonl", lambda _: False, "")
    queries = (
        {"id": i, "text": text, "type": kind, EXPECTED_ANSWER: str(known.get(EXPECTED_ANSWER) or ""), "metadata": known}
        for i, text, kind, known in _queries(dataset)
    )
    judgments = ({"query_id": q, "document_id": d, "grade": grade} for q, d, grade in _qrels(dataset))
    files = {
        folder / "documents.jsonl": map(_json, _documents(dataset, "id")),
        folder / "queries.jsonl": map(_json, queries),
        folder / "judgments.jsonl": map(_json, judgments),
    }
    columns = {"document_title": "title", "query_type": "type", "query_answer": EXPECTED_ANSWER}
    return files, {**dict(zip(("documents", "queries", "qrels"), files, strict=True)), **columns}


def _export_mined(dataset: Dataset, folder: Path) -> Written:
    _check_ids(dataset, "mined", lambda _: False, "")
    _check_grades(
        dataset, "mined", "rank_relevance distinguishes only primary golds (grade 2) from other golds (grade 1)"
    )
    texts = dict(zip(dataset.corpus.ids, dataset.corpus.texts, strict=True))

    def row(identifier: str, text: str, kind: str, known: Mapping[str, Any], judged: Graded) -> dict[str, Any]:
        contexts = [({"fqn": document, "text": texts.get(document, "")}, grade) for document, grade in judged]
        golds = sorted((context for context in contexts if context[1]), key=lambda context: -context[1])
        return {
            "id": identifier,
            "source": dataset.name,
            "query": text,
            "positive_ctxs": [{**context, "rank_relevance": 1 if grade == 2 else 2} for context, grade in golds],
            "negative_ctxs": [{**context, "is_hard_negative": True} for context, grade in contexts if not grade],
            "metadata": {**known, "suite": kind},
        }

    path = folder / "retrieval_dataset.jsonl"
    rows = (row(*query, judged) for query, judged in zip(_queries(dataset), _list_judged(dataset), strict=True))
    files = {
        path.with_name(f"{path.name}.corpus.jsonl"): map(_json, _documents(dataset, "_id")),
        path: map(_json, rows),
    }
    return files, {"path": path}


def _synthetic(dataset: Dataset, folder: Path) -> Written:
    _check_filters(dataset, "synthetic")
    _check_ids(dataset, "synthetic", lambda _: False, "")
    _check_grades(dataset, "synthetic", "expected_doc_ids cannot store grades or irrelevant documents")
    corpus = dataset.corpus
    for identifier, text in zip(corpus.ids, corpus.texts, strict=True):
        if not text.strip():
            raise DatasetError(f"format=synthetic: the document {identifier!r} has no text, but every chunk needs text")
    chunks = _chunk_ids(dataset)
    named = chunks or {identifier: (identifier, "0") for identifier in corpus.ids}
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))

    def chunk(identifier: str) -> dict[str, Any]:
        doc_id, chunk_id = named.get(identifier, (identifier, "0"))
        return {"doc_id": doc_id, "chunk_id": chunk_id, "chunk": texts.get(identifier, "")}

    def row(identifier: str, text: str, kind: str, known: Mapping[str, Any], judged: Graded) -> dict[str, Any]:
        golds = [chunk(document) for document, _ in judged]
        return {
            "id": identifier,
            "query": text,
            "expected_doc_ids": list(dict.fromkeys(gold["doc_id"] for gold in golds)),
            "context_chunks": golds,
            "validation": {**known, "query_type": kind},
        }

    path = folder / "synthetic_ground_truth.jsonl"
    titles = corpus.titles or [""] * len(corpus)
    cut = ({**chunk(identifier), "title": title} for identifier, title in zip(corpus.ids, titles, strict=True))
    rows = (row(*query, judged) for query, judged in zip(_queries(dataset), _list_judged(dataset), strict=True))
    files = {path.with_name(f"{path.name}.chunks.jsonl"): map(_json, cut), path: map(_json, rows)}
    return files, {"path": path, "level": "chunk" if chunks else "document"}


def _export_spans(dataset: Dataset, folder: Path) -> Written:
    if dataset.judgments.spans is None:
        raise DatasetError(
            "format=spans: the gold is documents; set dataset.gold=spans, or set documents to the folder or JSONL file "
            "of the whole documents that the judged chunks come from"
        )
    anchored = dataset.judgments.spans.anchored
    queries = (
        {"_id": i, "text": text, "metadata": {**known, "type": kind}} for i, text, kind, known in _queries(dataset)
    )
    path = folder / "spans.jsonl"
    files = {
        folder / "corpus.jsonl": map(_json, _documents(dataset, "_id")),
        folder / "queries.jsonl": map(_json, queries),
        folder / "spans.report.json": [orjson.dumps(report_spans(anchored), option=orjson.OPT_INDENT_2)],
        path: map(_json, iter_rows(anchored, dataset.corpus)),
    }
    typed = {"type_field": "type"} if any(dataset.queries.types) else {}
    return files, {"path": folder, "gold": "spans", "spans": path, **typed}


def _export_ratings(dataset: Dataset, folder: Path) -> Written:
    rows = (row for text, judged in _list_rated(dataset, "ratings") for row in ((text, *pair) for pair in judged))
    return _write_judged(dataset, folder, "ratings", "ratings.csv", _csv(("query", "docid", "rating"), rows))


def _export_quepid(dataset: Dataset, folder: Path) -> Written:
    ratings = [
        {"query_text": text, "doc_id": document, "rating": grade}
        for text, judged in _list_rated(dataset, "quepid")
        for document, grade in judged
    ]
    return _write_judged(dataset, folder, "quepid", "quepid_ratings.json", [_json({"ratings": ratings})])


def _export_rank_eval(dataset: Dataset, folder: Path) -> Written:
    index = _index_name(dataset)
    requests = [
        {
            "id": identifier,
            "request": {"query": {"multi_match": {"query": text}}},
            "ratings": [{"_index": index, "_id": document, "rating": grade} for document, grade in judged],
        }
        for identifier, (text, judged) in zip(dataset.queries.ids, _list_rated(dataset, "rank_eval"), strict=True)
    ]
    body = {"requests": requests, "metric": {"dcg": {"k": 10, "normalize": True}}}
    return _write_judged(dataset, folder, "rank_eval", "rank_eval.json", [_json(body)])


def _export_opensearch(dataset: Dataset, folder: Path) -> Written:
    rows = [
        {"query": text, "ratings": [{"docId": document, "rating": f"{grade:.3f}"} for document, grade in judged]}
        for text, judged in _list_rated(dataset, "opensearch")
    ]
    about = {"name": dataset.name, "description": f"Judgments of {dataset.name}, {dataset.split}"}
    body = {**about, "type": "IMPORT_JUDGMENT", "judgmentRatings": rows}
    return _write_judged(dataset, folder, "opensearch", "opensearch_judgments.json", [_json(body)])


def _write_judged(
    dataset: Dataset, folder: Path, format: RatingsFormat, name: str, judgments: Iterable[bytes]
) -> Written:
    """Return the files of `dataset=judged`: the judgments in a format, the queries, and documents if there are any."""
    _check_ids(dataset, format, lambda _: False, "")
    queries = ({"id": i, "text": text, "type": kind, "metadata": known} for i, text, kind, known in _queries(dataset))
    files: dict[Path, Iterable[bytes]] = {folder / name: judgments, folder / "queries.jsonl": map(_json, queries)}
    settings: dict[str, object] = {
        "qrels": folder / name, "qrels_format": format, "queries": folder / "queries.jsonl", "query_id": "id",
        "query_type": "type",
    }  # fmt: skip
    if len(dataset.corpus):
        files[folder / "documents.jsonl"] = map(_json, _documents(dataset, "_id"))
        settings["documents"] = folder / "documents.jsonl"
    return files, settings


def _list_rated(dataset: Dataset, format: RatingsFormat) -> list[tuple[str, Graded]]:
    """Return the text and the judged documents of each query; raises if queries are not unique by their text."""
    unanswerable = {dataset.queries.ids[position] for position in list_unanswerable(dataset)}
    rows: list[tuple[str, Graded]] = []
    first: dict[str, str] = {}
    for identifier, text, judged in zip(dataset.queries.ids, dataset.queries.texts, _list_judged(dataset), strict=True):
        plain = " ".join(text.split())
        if not plain:
            raise DatasetError(
                f"format={format}: the query {identifier!r} has no text, but this format identifies queries by their "
                "text; add one"
            )
        other = first.setdefault(plain, identifier)
        if other != identifier:
            raise DatasetError(
                f"format={format}: the queries {other!r} and {identifier!r} have the same text, but this format "
                "identifies queries by their text; choose beir, trec or jsonl"
            )
        rows.append((plain, [(dataset.corpus.ids[0], 0)] if identifier in unanswerable else judged))
    return rows


def _index_name(dataset: Dataset) -> str:
    """Return the dataset's name in a form that Elasticsearch accepts for an index."""
    return re.sub(r"[^a-z0-9_.-]+", "-", dataset.name.lower()).strip("-_.") or "documents"


def write_intervals(dataset: Dataset) -> Iterable[bytes]:
    """Return the lines of the file of grade intervals."""
    names = [field.name for field in fields(GradeInterval)]
    return _csv(names, ([getattr(interval, name) for name in names] for interval in dataset.judgments.intervals))


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    line = io.StringIO(newline="")
    writer = csv.writer(line, lineterminator="\r\n")  # so that fields with \r or \n are quoted
    for row in chain([header], rows):
        writer.writerow(row)
        yield line.getvalue().encode()
        line.seek(0)
        line.truncate()


WRITERS: Mapping[Format, Callable[[Dataset, Path], Written]] = {
    "beir": _beir,
    "trec": _trec,
    "jsonl": _jsonl,
    "mined": _export_mined,
    "synthetic": _synthetic,
    "spans": _export_spans,
    "ratings": _export_ratings,
    "quepid": _export_quepid,
    "rank_eval": _export_rank_eval,
    "opensearch": _export_opensearch,
}

_GRADES: Mapping[Format, set[int]] = {"mined": {0, 1, 2}, "synthetic": {1}}
"""The grades that a format can store, for formats that cannot store all."""


def _documents(dataset: Dataset, identifier: str) -> Iterator[dict[str, Any]]:
    corpus = dataset.corpus
    for position, (name, text) in enumerate(zip(corpus.ids, corpus.texts, strict=True)):
        row = {identifier: name, "title": corpus.titles[position] if corpus.titles else "", "text": text}
        yield {**row, "metadata": corpus.metadata[position]} if corpus.metadata else row


def _queries(dataset: Dataset) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    queries = dataset.queries
    metadata: Sequence[Mapping[str, Any]] = queries.metadata or [{}] * len(queries)
    if any(queries.filters):
        pairs = zip(metadata, queries.filters, strict=True)
        metadata = [known if own is None else {**known, "filter": json.loads(str(own))} for known, own in pairs]
    return zip(queries.ids, queries.texts, queries.types, metadata, strict=True)


def _qrels(dataset: Dataset) -> Iterator[Qrel]:
    """Yield the judgments by id, and a judgment of grade 0 for each query that has none."""
    for query, judged in zip(dataset.queries.ids, _list_judged(dataset), strict=True):
        yield from ((query, document, grade) for document, grade in judged)
    for position in list_unanswerable(dataset):
        yield dataset.queries.ids[position], dataset.corpus.ids[0], 0


def _list_judged(dataset: Dataset) -> list[Graded]:
    """Return the judged documents of each query, by id, with their grades."""
    rows: list[Graded] = [[] for _ in dataset.queries.ids]
    documents, judgments = [*dataset.corpus.ids, *dataset.judgments.unknown_documents], dataset.judgments
    for query, document, grade in judgments.list_rows():
        rows[query].append((documents[document], grade))
    return rows


def _chunk_ids(dataset: Dataset) -> dict[str, tuple[str, str]]:
    """Return the document and the chunk id of each chunk; empty unless all documents are chunks."""
    ids, metadata = dataset.corpus.ids, dataset.corpus.metadata or [{}] * len(dataset.corpus)
    of = [str(about.get(DOCUMENT) or "") for about in metadata]
    chunks = [identifier.removeprefix(f"{document}#") for identifier, document in zip(ids, of, strict=True)]
    whole = all(of) and all(chunks) and [*map(corpus_id, of, chunks)] == [*ids]
    return (
        dict(zip(ids, zip(of, chunks, strict=True), strict=True))
        if whole and not dataset.judgments.unknown_documents
        else {}
    )


def list_unanswerable(dataset: Dataset) -> list[int]:
    """Return the positions of the queries without gold for which no document is judged."""
    judged = np.bincount(dataset.judgments.queries, minlength=len(dataset.queries))
    return np.flatnonzero(judged == 0).tolist()


def _check_ids(dataset: Dataset, format: Format, refused: Callable[[str], bool], what: str) -> None:
    ids = (("document", [*dataset.corpus.ids, *dataset.judgments.unknown_documents]), ("query", dataset.queries.ids))
    for kind, identifier in ((kind, identifier) for kind, column in ids for identifier in column):
        if not identifier:
            raise DatasetError(f"format={format}: the id of a {kind} is empty")
        if any(map(refused, identifier)):
            raise DatasetError(
                f"format={format}: the {kind} id {identifier!r} contains {what}, which separates columns in this format"
            )


def _check_filters(dataset: Dataset, format: Format) -> None:
    if any(dataset.queries.filters):
        raise DatasetError(f"format={format}: cannot store the filters of queries; choose beir, jsonl or mined")


def _check_grades(dataset: Dataset, format: Format, why: str) -> None:
    """Raise for a grade that a format cannot store, because scores would change without it."""
    grades = set(dataset.judgments.grades.tolist())
    whole = (name for name in WRITERS if name not in (*get_args(RatingsFormat), "spans"))
    *others, last = (name for name in whole if grades <= _GRADES.get(name, grades))
    for query, judged in zip(dataset.queries.ids, _list_judged(dataset), strict=True):
        for document, grade in judged:
            if grade not in _GRADES[format]:
                raise DatasetError(
                    f"format={format}: the grade {grade} of query {query!r} and document {document!r} would be "
                    f"lost ({why}); choose {', '.join(others)} or {last}"
                )


def _json(row: Mapping[str, Any]) -> bytes:
    return orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)
