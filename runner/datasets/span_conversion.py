"""Convert judgments of chunks to gold spans: each gold chunk's text is found in the document that it is from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from retrievers.base import Corpus
from runner.datasets import files
from runner.datasets.anchoring import Anchor, Quote, find_quote, lose
from runner.datasets.base import DatasetError, corpus_of
from runner.datasets.beir import iter_documents
from runner.datasets.chunking import DOCUMENT
from runner.datasets.dataset import Dataset
from runner.datasets.folder import corpus_of_folder
from runner.datasets.overlap import attach_spans
from runner.datasets.spans import AnchoredSpan, GoldSpan


def read_documents(path: str) -> Corpus:
    """Return whole documents: a folder of Markdown or text files, or a JSONL file with `_id`, `title` and `text`."""
    place = Path(path).expanduser()
    if not place.exists():
        raise DatasetError(f"documents={path}: no such file or folder")
    if place.is_dir():
        return corpus_of_folder(place)
    return corpus_of(iter_documents(files.json_lines(place)))


def convert_judgments(dataset: Dataset, documents: Corpus, least: float) -> Dataset:
    """Return a dataset of whole documents whose gold is the text of the gold chunks of another dataset.

    A chunk names its document in its metadata (`document_id`) or in its id, before the last "#". Otherwise its text
    must occur in one document only. A text that was edited must have a similarity of at least `least`.
    """
    spans = list(_iter_spans(dataset, documents, least))
    return attach_spans(replace(dataset, corpus=documents, whole=None), spans, (), 0.5)


def _iter_spans(dataset: Dataset, documents: Corpus, least: float) -> Iterator[AnchoredSpan]:
    judgments, chunks = dataset.judgments, dataset.corpus
    places: dict[int, tuple[str, Anchor]] = {}
    for query, chunk, grade in judgments.list_rows():
        if grade < 1:
            continue
        identifier = dataset.queries.ids[query]
        if chunk >= len(chunks):
            name = dataset.judgments.unknown_documents[chunk - len(chunks)]
            yield AnchoredSpan(GoldSpan(identifier, name, grade), lose("the dataset has no such chunk"))
            continue
        if chunk not in places:
            places[chunk] = _find_chunk(chunks, chunk, documents, least)
        document, anchor = places[chunk]
        yield AnchoredSpan(GoldSpan(identifier, document, grade, Quote(chunks.texts[chunk])), anchor)


def _find_chunk(chunks: Corpus, chunk: int, documents: Corpus, least: float) -> tuple[str, Anchor]:
    """Return the document of a chunk and its place there."""
    text, name = chunks.texts[chunk].strip(), chunks.ids[chunk]
    of = _list_parents(chunks, chunk, documents)
    if not of:
        of = [
            document for document, whole in zip(documents.ids, documents.texts, strict=True) if text and text in whole
        ]
    if len(of) != 1:
        reason = f"{len(of)} documents contain the text" if of else "no document contains the text"
        return name, lose(f"the chunk names no document, and {reason}")
    return of[0], find_quote(Quote(text), documents.texts[documents.positions[of[0]]], least)


def _list_parents(chunks: Corpus, chunk: int, documents: Corpus) -> Sequence[str]:
    """Return the document that a chunk names, if it exists."""
    about = chunks.metadata[chunk] if chunks.metadata else {}
    candidates = (str(about.get(DOCUMENT) or ""), chunks.ids[chunk].rpartition("#")[0])
    return [name for name in candidates if name in documents.positions][:1]
