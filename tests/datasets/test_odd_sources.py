"""Odd corpora in SGML, spans, repositories, click logs, folders and Python values are read right, or refused."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset
from runner.datasets.folder import corpus_of_folder
from runner.datasets.hf import HuggingFace
from runner.datasets.judged import JudgedFiles
from runner.datasets.trec import Trec
from tests.datasets.odd import KEPT, check_refusal, compare, draw_rows, list_content, odd, write
from tests.oracles_of_files import (
    Content,
    Odd,
    content_of,
    field,
    grade_of,
    id_of,
    json_rows,
    kept_text,
    qrels_of,
    refuse,
    text_of,
)
from tests.strategies.odd_files import (
    GRADES,
    IDS,
    LINE_ENDS,
    PLAIN_IDS,
    TEXTS,
    column_files,
    encoded,
    json_line_files,
    markup_files,
)


class Elements(HTMLParser):
    """The text in each innermost element, in order; an element that is open when its like begins is refused."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(content)
        self.close()
        if self.open:
            refuse()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in self.open:
            refuse()
        self.open.append(tag)
        self.elements.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            refuse()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.elements[-1] = (self.elements[-1][0], self.elements[-1][1] + data)

    def split(self, outer: str) -> list[dict[str, str]]:
        """Return the elements within each `outer` one, by tag."""
        parts: list[dict[str, str]] = []
        for tag, text in self.elements:
            parts.append({}) if tag == outer else parts[-1].setdefault(tag, text.strip())
        return parts


@odd
@given(data=st.data())
def test_documents_and_topics_in_sgml(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("sgml")
    written = draw_rows(data, DOCNO=IDS, TITLE=TEXTS, TEXT=TEXTS)
    documents = write(folder / "docs", data.draw(markup_files("DOC", written)))
    topics = write(folder / "topics", data.draw(markup_files("top", draw_rows(data, num=IDS, title=TEXTS))))
    qrels = write(folder / "qrels", data.draw(column_files([["a", 0, data.draw(PLAIN_IDS), data.draw(GRADES)]])))

    def oracle() -> Content:
        read, asked = (Elements(text_of(file.read_bytes())) for file in (documents, topics))
        rows = read.split("doc")
        if not any("text" in row for row in rows):
            refuse()
        return content_of(
            ((row.get("docno") or refuse(), row.get("title", ""), row.get("text", "")) for row in rows),
            (
                (" ".join(row.get("num", "").split()) or refuse(), " ".join(field(row, "title").split()))
                for row in asked.split("top")
            ),
            qrels_of(qrels.read_bytes()),
        )

    compare(
        Trec(documents=str(documents), topics=str(topics), qrels=str(qrels), **KEPT), oracle, [documents, topics, qrels]
    )


@odd
@given(data=st.data())
def test_gold_in_spans(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder, text = tmp_path_factory.mktemp("spans"), "red apple tree"
    write(folder / "corpus.jsonl", b"".join(b'{"_id": "%c", "text": "%s"}\n' % (n, text.encode()) for n in b"abc"))
    write(folder / "queries.jsonl", b'{"_id": "a", "text": "x"}\n{"_id": "7", "text": "y"}\n')
    number = st.sampled_from([0, 3, 4, 9, 14] * 4 + [15, -1, 3.0, "3", None, True])
    columns = {"query_id": st.sampled_from(["a", "a", "7", 7, 7.0, "z", None]), "doc_id": st.sampled_from("abcd")}
    rows = draw_rows(data, **columns, start=number, end=number, grade=GRADES)
    spans = write(folder / "spans.jsonl", data.draw(json_line_files(rows)))

    def oracle() -> Content:
        grades: dict[tuple[str, str], int] = {}
        for row in json_rows(spans.read_bytes()):
            start, end, grade = row["start"], row["end"], grade_of(row["grade"])
            if not all(type(offset) is int for offset in (start, end)) or grade < 1:
                refuse()
            if not 0 <= start < end <= len(text) or not text[start:end].strip() or row["doc_id"] not in "abc":
                refuse()
            pair = id_of(row["query_id"]), row["doc_id"]
            grades[pair] = max(grade, grades.get(pair, 0))
        documents = [(name, "", text) for name in "abc"]
        return content_of(documents, [("a", "x"), ("7", "y")], [(*pair, grade) for pair, grade in grades.items()])

    source = Beir(path=str(folder), gold="spans", spans=str(spans), unjudged_queries="keep")
    compare(source, oracle, [spans])


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
@odd
@given(data=st.data())
def test_repositories_of_a_hub(tmp_path_factory: pytest.TempPathFactory, ending: str, data: st.DataObject) -> None:
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    folder = tmp_path_factory.mktemp("hub")
    corpus = write(
        folder / "corpus.jsonl", data.draw(json_line_files(draw_rows(data, _id=IDS, title=TEXTS, text=TEXTS)))
    )
    queries = write(folder / "queries.jsonl", data.draw(json_line_files(draw_rows(data, _id=IDS, text=TEXTS))))
    names = ("query-id", "corpus-id", "score")
    judged = draw_rows(data, **dict(zip(names, (PLAIN_IDS, PLAIN_IDS, GRADES), strict=True)))
    table = column_files([names, *([*row.values()] for row in judged)])
    qrels = write(folder / "qrels" / f"test.{ending}", data.draw(table if ending == "tsv" else json_line_files(judged)))

    def oracle() -> Content:
        rows = (
            [[field(row, name) for name in names] for row in json_rows(qrels.read_bytes())] if ending != "tsv" else []
        )
        return content_of(
            (
                (id_of(field(r, "_id")), kept_text(r.get("title")), kept_text(field(r, "text")))
                for r in json_rows(corpus.read_bytes())
            ),
            ((id_of(field(r, "_id")), kept_text(field(r, "text"))) for r in json_rows(queries.read_bytes())),
            [(id_of(q), id_of(d), grade_of(g)) for q, d, g in rows] or qrels_of(qrels.read_bytes()),
        )

    with mock.patch("runner.datasets.hf.download_repository", return_value=folder):
        compare(HuggingFace(name="owner/name", **KEPT), oracle, [corpus, queries, qrels])


@odd
@given(data=st.data())
def test_click_logs(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """With one rank, the attractiveness is (clicks + 1/2) / (searches + 1)."""
    searches = draw_rows(data, user_query=st.sampled_from(["red  apple", "sky", "sky"]), hit=IDS)
    clicks = data.draw(st.lists(st.integers(0, len(searches) - 1), min_size=1, max_size=3))
    rows: list[dict[str, Any]] = [
        {"query_id": f"s{n}", "user_query": row["user_query"], "query_response_hit_ids": [row["hit"]]}
        for n, row in enumerate(searches)
    ]
    rows += [
        {"query_id": f"s{n}", "action_name": "click", "event_attributes": {"object": {"object_id": searches[n]["hit"]}}}
        for n in clicks
    ]
    path = write(tmp_path_factory.mktemp("clicks") / "log.jsonl", data.draw(json_line_files(rows)))

    def oracle() -> Content:
        shown, clicked, hits = Counter[tuple[str, str]](), Counter[tuple[str, str]](), {}
        read = json_rows(path.read_bytes())
        for row in (row for row in read if "action_name" not in row):
            pair = " ".join(field(row, "user_query").split()), id_of(field(row, "query_response_hit_ids")[0])
            shown[pair] += 1
            hits[row["query_id"]] = pair
        clicks = {row["query_id"]: row["event_attributes"]["object"] for row in read if "action_name" in row}
        for search, about in clicks.items():
            document = about["object_id"]
            if document not in (None, ""):
                clicked[hits[search]] += id_of(document) == hits[search][1]
        if not clicked.total() or any(document.startswith("[") for _, document in shown):
            refuse()
        grades = {
            pair: sum((clicked[pair] + 0.5) / (n + 1) >= least for least in (0.2, 0.6)) for pair, n in shown.items()
        }
        queries = {query: query for query, _ in shown}
        return {}, *content_of([("none", "", "")], queries.items(), [(*pair, g) for pair, g in grades.items()])[1:]

    settings = {"examination": (1.0,), "max_rank": 1, "min_impressions": 1, "grade_thresholds": (0.2, 0.6)}
    compare(JudgedFiles(qrels=str(path), qrels_format="ubi", **settings, **KEPT), oracle, [path])


@odd
@given(data=st.data())
def test_values_in_python(data: st.DataObject) -> None:
    documents, queries = draw_rows(data, id=IDS, title=TEXTS, text=TEXTS), draw_rows(data, id=IDS, text=TEXTS)
    qrels = [(row["id"], data.draw(st.sampled_from(documents))["id"], data.draw(GRADES)) for row in queries]

    def text_in(row: dict[str, Any]) -> str:
        return refuse() if row["text"] is None else kept_text(row["text"])

    try:
        expected = content_of(
            ((id_of(row["id"]), kept_text(row["title"]), text_in(row)) for row in documents),
            ((id_of(row["id"]), text_in(row)) for row in queries),
            ((id_of(query), id_of(document), grade_of(grade)) for query, document, grade in qrels),
        )
    except Odd:
        with pytest.raises(DatasetError, match=r"^(corpus|queries|qrels)\[[0-9]+\]: "):
            Dataset.of(documents, queries, qrels)
    else:
        assert list_content(Dataset.of(documents, queries, qrels)) == expected


@odd
@given(data=st.data())
def test_folders_of_texts(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("texts")
    names = ["a.txt", "sub/a.md", "b.MD", "é ü.txt", ".hidden.txt", ".git/x.md", "c.html", "b.txt"]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    for name in chosen:
        end, text = data.draw(LINE_ENDS), str(data.draw(TEXTS) or "").lstrip("\ufeff")
        write(folder / name, data.draw(encoded(f"# Title{end}{end}{text}")))

    def oracle() -> dict[str, tuple[str, str]]:
        texts = {}
        for name in sorted(chosen):
            if re.search(r"\.(md|txt)$", name, re.IGNORECASE) and not re.search(r"(^|/)\.", name):
                texts[name] = ("Title" * name.lower().endswith("md"), text_of((folder / name).read_bytes()))
        stems = [name.rpartition(".")[0] for name in texts]
        return {
            stem if stems.count(stem) == 1 else name: texts[name] for stem, name in zip(stems, texts, strict=True)
        } or refuse()

    try:
        expected = oracle()
    except Odd:
        with pytest.raises(DatasetError) as refused:
            corpus_of_folder(folder)
        message = str(refused.value)
        if not re.search("no file (matches|ends with)", message):
            check_refusal(message, [folder / name for name in chosen])
    else:
        corpus = corpus_of_folder(folder)
        titles = corpus.titles or [""] * len(corpus)
        assert dict(zip(corpus.ids, zip(titles, corpus.texts, strict=True), strict=True)) == expected
