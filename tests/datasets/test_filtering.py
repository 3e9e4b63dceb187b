"""Filters of queries in each format, and the fields of documents that they name."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import NOTHING, Corpus
from retrievers.filters import Filter, parse_filter
from retrievers.lexical.bm25 import BM25
from retrievers.lexical.bm25f import BM25F, FieldWeight
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from runner.config import CONF
from runner.config.objects import locate_class
from runner.datasets.base import DatasetError, Queries
from runner.datasets.beir import Beir
from runner.datasets.chunking import Tokens
from runner.datasets.dataset import Dataset
from runner.datasets.export_formats import Format
from runner.datasets.exporting import export
from runner.datasets.golden_json import GoldenJson
from runner.datasets.judged import JudgedFiles
from runner.datasets.mined import Mined
from runner.datasets.source import DatasetSource
from runner.datasets.tabular import Tabular
from runner.datasets.trec import Trec
from tests.config.files import list_names, load_settings
from tests.datasets.test_tabular import write
from tests.datasets.test_variants import lines

DOCUMENTS: list[dict[str, Any]] = [
    {"year": 2001, "language": "en", "fresh": True, "unused": "x"},
    {"year": 2002, "language": "de", "fresh": False, "unused": "y"},
    {"year": None, "language": "en", "fresh": True, "unused": "z"},
]
FILTER = {"year": {"from": 2000, "to": 2001}, "language": ["en", "fr"], "fresh": True}
FILTERS: list[Any] = [FILTER, {"language": "en"}, None]
QRELS = "".join(f"q{i}\td0\t1\n" for i in range(3))


def beir(folder: Path, filters: list[Any], inside: bool) -> DatasetSource:
    rows = [{"metadata": known} if inside else known for known in DOCUMENTS]
    lines(folder / "corpus.jsonl", [{"_id": f"d{i}", "text": "sea", **row} for i, row in enumerate(rows)])
    about = [{"metadata": {"filter": own}} if inside else {"filter": own} for own in filters]
    lines(folder / "queries.jsonl", [{"_id": f"q{i}", "text": "sea", **row} for i, row in enumerate(about)])
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{QRELS}")
    return Beir(path=str(folder))


def table(folder: Path, filters: list[Any], ending: str) -> DatasetSource:
    documents, queries = folder / f"d.{ending}", folder / f"q.{ending}"
    write(documents, [{"id": f"d{i}", "text": "sea", **known} for i, known in enumerate(DOCUMENTS)])
    texts = [own if own is None or isinstance(own, str) else json.dumps(own) for own in filters]
    write(queries, [{"id": f"q{i}", "text": "sea", "gold": "d0", "filter": own} for i, own in enumerate(texts)])
    return Tabular(documents=str(documents), queries=str(queries))


def judged(folder: Path, filters: list[Any], own: bool) -> DatasetSource:
    documents = [{"_id": f"d{i}", "text": "sea", **known} for i, known in enumerate(DOCUMENTS)]
    topics = [{"_id": f"q{i}", "text": "sea", "filter": f} for i, f in enumerate(filters)]
    places = {"documents": str(lines(folder / "d.jsonl", documents)), "qrels": str(folder / "qrels.tsv")}
    (folder / "qrels.tsv").write_text(QRELS)
    file = str(lines(folder / "q.jsonl", topics))
    return JudgedFiles(queries=file, **places) if own else Trec(topics=file, **places)


def golden(folder: Path, filters: list[Any]) -> DatasetSource:
    items = [{"item_id": f"d{i}", "headline": "sea", "details": known, **known} for i, known in enumerate(DOCUMENTS)]
    (folder / "items.json").write_text(json.dumps(items))
    expected = [{"item_id": "d0", "relevance": "high"}]
    rows = [
        {"query_id": f"q{i}", "query_text": "sea", "expected_items": expected, "filter": own}
        for i, own in enumerate(filters)
    ]
    (folder / "golden.json").write_text(json.dumps({"queries": rows}))
    path, own_items = str(folder / "golden.json"), str(folder / "items.json")
    return GoldenJson(path=path, items=own_items, text_fields=("headline",), metadata_fields=("unused",))


def mined(folder: Path, filters: list[Any]) -> DatasetSource:
    documents = [{"_id": f"d{i}", "text": "sea", "metadata": known} for i, known in enumerate(DOCUMENTS)]
    lines(folder / "m.jsonl.corpus.jsonl", documents)
    context = {"fqn": "d0", "text": "sea"}
    rows = [
        {"id": f"q{i}", "query": "sea", "positive_ctxs": [context], "metadata": {"filter": own}}
        for i, own in enumerate(filters)
    ]
    return Mined(path=str(lines(folder / "m.jsonl", rows)))


SOURCES = {
    "beir": lambda folder, filters: beir(folder, filters, inside=False),
    "beir metadata": lambda folder, filters: beir(folder, filters, inside=True),
    **{e: lambda folder, filters, e=e: table(folder, filters, e) for e in ("jsonl", "csv", "tsv", "parquet")},
    "trec": lambda folder, filters: judged(folder, filters, own=False),
    "judged": lambda folder, filters: judged(folder, filters, own=True),
    "golden": golden,
    "mined": mined,
}


OTHERS = ("HuggingFace", "QuestionFolder")
"""Formats that read filters as another one does: HuggingFace as BEIR, QuestionFolder as tables."""


def test_every_format_is_tested_with_filters_and_named_among_those_that_have_them(tmp_path: Path) -> None:
    tested = set()
    for name, build in SOURCES.items():
        (tmp_path / name).mkdir()
        tested.add(type(build(tmp_path / name, FILTERS)).__name__)
    targets = {name: load_settings(CONF / "dataset" / f"{name}.yaml")["_target_"] for name in list_names("dataset")}
    reading = {name: locate_class(target, "", ()) for name, target in targets.items() if _reads_filters(target)}
    assert {kind.__name__ for kind in reading.values()} == {*tested, *OTHERS}
    page = (CONF.parent / "docs" / "datasets.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"^Queries with filters are supported by [^.]*\.", page, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == reading.keys() - {"golden", "folder"}


def _reads_filters(target: str) -> bool:
    """Return whether the module of a format, or that of a class that it extends, reads the setting `filter_field`."""
    modules = [import_module(base.__module__) for base in locate_class(target, "", ()).__mro__ if base is not object]
    return any("self.filter_field" in Path(str(m.__file__)).read_text("utf-8") for m in modules if m.__spec__.origin)


@pytest.fixture(params=SOURCES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def list_passing(dataset: Dataset) -> list[list[str]]:
    """Return the documents that each query finds with BM25."""
    rankings = search_cached(BM25(), dataset.corpus, dataset.queries.inputs, len(dataset.corpus), MemoryStore())
    return [sorted(dataset.corpus.ids[i] for i in row if i != NOTHING) for row in rankings.documents.tolist()]


def test_a_filter_is_read_and_applied(tmp_path: Path, kind: str) -> None:
    dataset = SOURCES[kind](tmp_path, FILTERS).load()
    assert list(dataset.queries.filters) == [parse_filter(FILTER), parse_filter({"language": "en"}), None]
    assert dataset.corpus.filter_fields == ("fresh", "language", "year")
    assert list_passing(dataset) == [["d0"], ["d0", "d2"], ["d0", "d1", "d2"]]
    assert list_passing(dataset.split_documents(Tokens(size=1))) == [
        ["d0#0"],
        ["d0#0", "d2#0"],
        ["d0#0", "d1#0", "d2#0"],
    ]


@pytest.mark.parametrize("filters", [FILTERS, [None] * 3])
def test_search_fields_are_available_beside_filter_fields(tmp_path: Path, kind: str, filters: list[Any]) -> None:
    source = replace(SOURCES[kind](tmp_path, filters), search_fields=("unused", "language"))
    dataset = source.load()
    pieces = dataset.split_documents(Tokens(size=1))
    for corpus in (dataset.corpus, pieces.corpus):
        assert corpus.search_fields == ("unused", "language")
        assert corpus.read_field("unused") == ["x", "y", "z"]
        assert corpus.read_field("language") == ["en", "de", "en"]
    own = BM25F(fields={"unused": FieldWeight()})
    for data, found in ((dataset, 1), (pieces, 1)):
        rankings = own.index(data.corpus, MemoryStore()).search(["y"], 3).documents
        assert [place for place in rankings[0].tolist() if place != NOTHING] == [found]
    few = replace(source, max_documents=2).load().corpus
    assert (len(few), few.search_fields, few.fingerprint != dataset.corpus.fingerprint) == (
        2,
        ("unused", "language"),
        True,
    )
    missing = replace(source, search_fields=("topic",))
    with pytest.raises(
        DatasetError, match=r"dataset\.search_fields=topic: no document has this field; the fields are "
    ):
        missing.load()


def test_a_field_to_search_may_be_a_list_or_within_an_object(tmp_path: Path) -> None:
    source = beir(tmp_path, [None] * 3, inside=False)
    rows = [{"tags": ["red", "blue"], "about": {"size": 7}}, {"tags": "green"}, {}]
    lines(tmp_path / "corpus.jsonl", [{"_id": f"d{i}", "text": "sea", **row} for i, row in enumerate(rows)])
    corpus = replace(source, search_fields=("tags", "about.size")).load().corpus
    assert corpus.read_field("tags") == ["red blue", "green", ""]
    assert corpus.read_field("about.size") == ["7", "", ""]
    with pytest.raises(
        DatasetError, match=r"corpus\.jsonl:1: 'about' \(dataset\.search_fields\): expected text, found an"
    ):
        replace(source, search_fields=("about",)).load()


def test_a_dataset_without_filters_keeps_no_metadata_for_them(tmp_path: Path, kind: str) -> None:
    plain = SOURCES[kind](tmp_path, [None, {}, None]).load()
    ignored = replace(SOURCES[kind](tmp_path, FILTERS), filter_field=None).load()
    for dataset in (plain, ignored):
        assert (dataset.queries.filters, dataset.corpus.filter_fields) == ((), ())
        assert not any("year" in known for known in dataset.corpus.metadata)
        assert list_passing(dataset) == [["d0", "d1", "d2"]] * 3


def test_the_fingerprint_follows_filters_and_the_fields_that_they_name(tmp_path: Path, kind: str) -> None:
    fingerprints = {SOURCES[kind](tmp_path, filters).load().fingerprint for filters in (FILTERS, FILTERS, [None] * 3)}
    assert len(fingerprints) == 2
    dataset = SOURCES[kind](tmp_path, FILTERS).load()
    moved = [{**known, "year": 2001} for known in dataset.corpus.metadata]
    changed = replace(dataset, corpus=replace(dataset.corpus, metadata=moved))
    assert changed.fingerprint not in fingerprints


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ("{year", r"'filter': invalid JSON"),
        ({"year": {"form": 1}}, r"'filter': year: a range can only have from and to, not form"),
        ({"yeer": 2001}, r"no document has the field 'yeer'; the fields are .*fresh.*language.*unused.*year"),
    ],
)
def test_an_unfit_filter_is_refused_with_its_place(tmp_path: Path, kind: str, own: object, problem: str) -> None:
    with pytest.raises(DatasetError, match=rf"(d|q|queries|golden|m)\.(jsonl?|csv|tsv|parquet)\b.*{problem}") as caught:
        SOURCES[kind](tmp_path, [None, own, None]).load()
    assert "\n" not in str(caught.value)


def test_values_of_another_type_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"queries.jsonl:2: filter: 'year' is compared with text .* have number val"):
        beir(tmp_path, [None, {"year": "2001"}, None], inside=False).load()
    with pytest.raises(
        DatasetError, match=r"corpus.jsonl:1: 'language': filters compare this field with number values, but"
    ):
        beir(tmp_path, [None, {"language": 1}, None], inside=False).load()
    with pytest.raises(DatasetError, match=r"queries.jsonl: year: filters compare it with text .* and with number val"):
        beir(tmp_path, [{"year": "2001"}, {"year": 2001}, None], inside=False).load()


def test_gold_outside_the_filter_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    beir(tmp_path, [{"year": 2002}, {"year": 2001}, {"language": "de"}], inside=False).load()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.endswith(
        "2 relevant documents fail the filter of their query and cannot be found, for example 'd0' of query 'q0'"
    )


def test_a_sample_keeps_filters_with_their_queries(tmp_path: Path) -> None:
    dataset = replace(beir(tmp_path, FILTERS, inside=False), max_queries=2, seed=1).load()
    expected = {f"q{i}": parse_filter(own) for i, own in enumerate(FILTERS)}
    assert dict(zip(dataset.queries.ids, dataset.queries.filters, strict=True)).items() <= expected.items()


@pytest.mark.parametrize("format", ["beir", "jsonl", "mined"])
def test_an_exported_dataset_reads_back_with_its_filters(tmp_path: Path, format: Format) -> None:
    dataset = replace(beir(tmp_path / "from", FILTERS, inside=False), name="sea").load()
    exported = export(dataset, format, tmp_path / "to")
    own = {name.removeprefix("dataset."): value for name, value in exported.settings.items() if name != "dataset"}
    source = {"beir": Beir, "jsonl": Tabular, "mined": Mined}[format](**own)
    again: Dataset = source.load()
    assert list(again.queries.filters) == list(dataset.queries.filters)
    assert list_passing(again) == list_passing(dataset)


@pytest.mark.parametrize("format", ["trec", "synthetic"])
def test_a_format_without_filters_refuses_to_lose_them(tmp_path: Path, format: Format) -> None:
    dataset = beir(tmp_path / "from", FILTERS, inside=False).load()
    with pytest.raises(DatasetError, match=rf"format={format}: cannot store the filters of queries; choose beir"):
        export(dataset, format, tmp_path / "to")


def test_datasets_in_python_have_filters() -> None:
    documents = [{"id": f"d{i}", "text": "sea", **known} for i, known in enumerate(DOCUMENTS)]
    queries = [{"id": f"q{i}", "text": "sea", "filter": own} for i, own in enumerate(FILTERS)]
    of_rows = Dataset.of(documents, queries, {"q0": ["d0"], "q1": ["d0"], "q2": ["d0"]})
    filters: list[Filter | None] = list(map(parse_filter, FILTERS))
    columns = Queries(["q0", "q1", "q2"], ["sea"] * 3, [""] * 3, filters=filters)
    corpus = Corpus(["d0", "d1", "d2"], ["sea"] * 3, metadata=DOCUMENTS)
    of_columns = Dataset.of(corpus, columns, {"q0": ["d0"], "q1": ["d0"], "q2": ["d0"]})
    by_id = {row["id"]: {name: value for name, value in row.items() if name != "id"} for row in documents}
    of_mappings = Dataset.of(by_id, queries, {"q0": ["d0"], "q1": ["d0"], "q2": ["d0"]})
    assert of_rows.fingerprint == of_columns.fingerprint == of_mappings.fingerprint
    assert list_passing(of_rows) == [["d0"], ["d0", "d2"], ["d0", "d1", "d2"]]
    unknown = Queries(["q0"], ["sea"], [""], filters=[parse_filter({"yeer": 1})])
    with pytest.raises(DatasetError, match=r"no document has the field 'yeer'; the fields are fresh, language, unus"):
        Dataset.of(corpus, unknown, {"q0": ["d0"]})
