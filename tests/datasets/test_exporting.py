"""An exported dataset reads back as the same one, and what a format cannot hold is said."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.base import Corpus
from retrievers.files import UNFINISHED
from runner.__main__ import main
from runner.config import CONF
from runner.config.objects import build
from runner.datasets.base import EXPECTED_ANSWER, Queries, Raw
from runner.datasets.beir import Beir
from runner.datasets.chunking import DOCUMENT, Tokens
from runner.datasets.dataset import Dataset
from runner.datasets.export_formats import Format
from runner.datasets.exporting import Exported, export
from runner.datasets.golden_json import GoldenJson
from tests.config.files import load_settings
from tests.datasets.rows import make_dataset
from tests.strategies.datasets import datasets
from tests.strategies.ids import COLUMN_IDS, TOKEN_IDS
from tests.strategies.settings import at_most
from tests.strategies.texts import NON_BLANK_TEXTS, ONE_LINE_TEXTS, TEXTS

QRELS: list[Format] = ["beir", "trec", "jsonl"]
FORMATS: list[Format] = [*QRELS, "mined", "synthetic"]


def small(**changes: Any) -> Dataset:
    told = {
        "documents": {"d1": ("A title", "a text"), "d2": ("", "b")},
        "asked": {"q1": ("one?", "fact", "an answer"), "q2": ("two?", "", "")},
        "judged": {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1}},
    }
    return make_dataset(**{**told, **changes})


def read(done: Exported) -> Dataset:
    """Read a dataset by the settings that were told."""
    values = dict(done.settings)
    config = load_settings(CONF / "dataset" / f"{values.pop('dataset')}.yaml")
    del config["chunking"]
    told = {key.removeprefix("dataset."): value for key, value in values.items()}
    dataset: Dataset = build({**config, **told}, "dataset").load()
    return dataset


def again(dataset: Dataset, format: Format) -> Dataset:
    with tempfile.TemporaryDirectory() as folder:
        return read(export(dataset, format, Path(folder)))


@pytest.mark.parametrize("format", ["beir", "jsonl"])
@settings(max_examples=at_most(30))
@given(dataset=datasets(COLUMN_IDS, TEXTS, typed=True))
def test_what_is_exported_reads_back_with_types_and_expected_answers(format: Format, dataset: Dataset) -> None:
    same = again(dataset, format)
    assert same.fingerprint == dataset.fingerprint
    assert [each.get(EXPECTED_ANSWER, "") for each in same.queries.metadata or [{}] * len(same.queries)] == [
        each.get(EXPECTED_ANSWER, "") for each in dataset.queries.metadata
    ]


@given(dataset=datasets(TOKEN_IDS, ONE_LINE_TEXTS, typed=False))
def test_what_is_exported_as_trec_reads_back_without_types(dataset: Dataset) -> None:
    assert again(dataset, "trec").fingerprint == dataset.fingerprint


@given(dataset=datasets(COLUMN_IDS, TEXTS, typed=True, grades=st.integers(0, 2), fewest=0))
def test_a_mined_export_reads_back_with_types_and_answers(dataset: Dataset) -> None:
    assert same_in(again(dataset, "mined"), dataset)


@given(dataset=datasets(COLUMN_IDS, TEXTS, typed=True, grades=st.just(1), fewest=0, document_texts=NON_BLANK_TEXTS))
def test_a_synthetic_export_reads_back_with_types_and_answers(dataset: Dataset) -> None:
    assert same_in(again(dataset, "synthetic"), dataset)


def same_in(one: Dataset, other: Dataset) -> bool:
    answers = [
        [each.get(EXPECTED_ANSWER, "") for each in dataset.queries.metadata or [{}] * len(dataset.queries)]
        for dataset in (one, other)
    ]
    return one.fingerprint == other.fingerprint and answers[0] == answers[1]


@given(
    st.lists(
        st.tuples(COLUMN_IDS, COLUMN_IDS, TEXTS, NON_BLANK_TEXTS),
        min_size=1,
        max_size=5,
        unique_by=lambda row: "#".join(row[:2]),
    ),
    st.data(),
)
def test_chunks_are_exported_as_synthetic_under_their_documents(
    rows: list[tuple[str, str, str, str]], data: st.DataObject
) -> None:
    corpus = Corpus(
        [f"{document}#{chunk}" for document, chunk, *_ in rows],
        [text for *_, text in rows],
        [title for *_, title, _ in rows],
        [{DOCUMENT: document} for document, *_ in rows],
    )
    golds = data.draw(st.sets(st.sampled_from(corpus.ids), min_size=1))
    queries = Queries(["q"], ["what?"], [""])
    raw = Raw(corpus, queries, [("q", gold, 1) for gold in golds])
    dataset = Beir(path="x").assemble(raw)
    with tempfile.TemporaryDirectory() as folder:
        done = export(dataset, "synthetic", Path(folder))
        (row,) = map(orjson.loads, (Path(folder) / "synthetic_ground_truth.jsonl").read_bytes().splitlines())
        same = read(done)
    assert set(row["expected_doc_ids"]) == {document for document, chunk, *_ in rows if f"{document}#{chunk}" in golds}
    assert same.fingerprint == dataset.fingerprint
    assert [about[DOCUMENT] for about in same.corpus.metadata] == [document for document, *_ in rows]


def test_rows_are_as_the_schemas_of_mining_and_synthesis_have_them(tmp_path: Path) -> None:
    dataset = small(asked={"q1": ("one?", "fact", "an answer"), "q2": ("two?", "", "")}, judged={"q1": {"d1": 1}})
    done = export(dataset, "synthetic", tmp_path / "synthetic")
    assert orjson.loads((tmp_path / "synthetic/synthetic_ground_truth.jsonl").read_bytes().splitlines()[0]) == {
        "id": "q1",
        "query": "one?",
        "expected_doc_ids": ["d1"],
        "context_chunks": [{"doc_id": "d1", "chunk_id": "0", "chunk": "a text"}],
        "validation": {"expected_answer": "an answer", "query_type": "fact"},
    }
    assert done.notes == []
    export(small(), "mined", tmp_path / "mined")
    assert orjson.loads((tmp_path / "mined/retrieval_dataset.jsonl").read_bytes().splitlines()[0]) == {
        "id": "q1",
        "source": "x",
        "query": "one?",
        "positive_ctxs": [{"fqn": "d1", "text": "a text", "rank_relevance": 1}],
        "negative_ctxs": [{"fqn": "d2", "text": "b", "is_hard_negative": True}],
        "metadata": {"expected_answer": "an answer", "suite": "fact"},
    }


@pytest.mark.parametrize("format", FORMATS)
def test_judged_documents_that_are_not_in_the_corpus_stay_so(format: Format) -> None:
    dataset = small(asked={"q1": ("one?", "", "")}, judged={"q1": {"d1": 1, "gone": 1}})
    same = again(dataset, format)
    assert list(same.judgments.unknown_documents) == ["gone"]
    assert same.fingerprint == dataset.fingerprint


@pytest.mark.parametrize("format", QRELS)
def test_a_right_answer_of_nothing_becomes_a_judgment_of_grade_0_and_stays_that(format: Format, tmp_path: Path) -> None:
    dataset = small(asked={"q1": ("one?", "", ""), "q2": ("two?", "", "")}, judged={"q1": {"d2": 1}})
    done = export(dataset, format, tmp_path)
    assert [note for note in done.notes if "queries without a relevant document (1) are written" in note]
    same = read(done)
    assert list(same.queries.ids) == ["q1", "q2"]
    assert same.judgments.golds(2).tolist() == [1, 0]
    assert again(same, format).fingerprint == same.fingerprint


def test_beir_exports_all_metadata_of_queries() -> None:
    same = again(small(), "beir")
    assert list(same.queries.metadata) == [{EXPECTED_ANSWER: "an answer", "type": "fact"}, {"type": ""}]


def test_what_trec_has_no_place_for_is_said(tmp_path: Path) -> None:
    assert export(small(), "trec", tmp_path).notes == [
        "query types and metadata are left out, because topics cannot store them"
    ]


def test_expectations_of_one_search_type_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    golden = GoldenJson(
        path="bundled:queries.json", items="bundled:items.jsonl", title_field="title", text_fields=("text",)
    )
    dataset = golden.load()
    notes = " ".join(export(dataset, "jsonl", tmp_path).notes)
    assert all(name in notes for name in dataset.judgments.by_search_type)


@pytest.mark.parametrize(
    ("format", "changes", "problem"),
    [
        (
            "trec",
            {"documents": {"d 1": ("", "")}, "judged": {"q1": {"d 1": 1}}},
            "document id 'd 1' contains white space",
        ),
        (
            "trec",
            {"asked": {"q": ("a\tb", "", "")}, "judged": {"q": {"d1": 1}}},
            "query 'q' contains a tab.*choose beir or jsonl",
        ),
        ("jsonl", {"documents": {"": ("", "")}, "judged": {"q1": {"": 1}}}, "the id of a document is empty"),
        ("mined", {"documents": {"": ("", "")}, "judged": {"q1": {"": 1}}}, "the id of a document is empty"),
        (
            "mined",
            {"judged": {"q1": {"d1": 3}}},
            "grade 3 of query 'q1' and document 'd1' would be lost .rank_relevance.*; choose beir, trec or jsonl$",
        ),
        (
            "synthetic",
            {"judged": {"q1": {"d1": 2}}},
            "grade 2 of query .* and document 'd1' .*lost.*cannot store grades.*; choose beir, trec, jsonl or mined$",
        ),
        (
            "synthetic",
            {"judged": {"q1": {"d1": 1, "d2": 0}}},
            "grade 0 of query .* and document 'd2' would be.*lost.*; choose beir, trec, jsonl or mined$",
        ),
        (
            "synthetic",
            {"judged": {"q1": {"d1": 2, "d2": 3}}},
            "grade 2 of query .* and document 'd1' would be.*lost.*; choose beir, trec or jsonl$",
        ),
        (
            "synthetic",
            {"documents": {"d1": ("A", " \n")}, "judged": {"q1": {"d1": 1}}},
            "document 'd1' has no text",
        ),
    ],
)
def test_what_a_format_cannot_hold_is_refused_before_anything_is_written(
    format: Format, changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        export(small(**changes), format, tmp_path / "out")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_chunked_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"judgments refer to documents.*chunking=none"):
        export(small().split_documents(Tokens(1)), "beir", tmp_path)


def test_a_folder_that_is_not_empty_is_written_to_only_with_overwrite(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("precious")
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(ValueError, match=r"the folder is not empty; .*overwrite=true"):
        export(small(), "beir", tmp_path)
    assert (tmp_path / "corpus.jsonl").read_text() == "precious"
    assert read(export(small(), "beir", tmp_path, overwrite=True)).fingerprint == small().fingerprint
    assert (tmp_path / "notes.txt").read_text() == "precious"


def test_what_is_cut_short_leaves_no_file_and_the_same_command_does_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_short(row: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("runner.datasets.export_formats._json", cut_short)
        with pytest.raises(KeyboardInterrupt):
            export(small(), "beir", tmp_path / "out")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    (tmp_path / "out" / f".corpus.jsonl.0123abcd{UNFINISHED}").touch()  # as a kill leaves it
    assert read(export(small(), "beir", tmp_path / "out")).fingerprint == small().fingerprint


def test_the_same_dataset_is_the_same_bytes(tmp_path: Path) -> None:
    for format in FORMATS:
        dataset = small(judged={"q1": {"d1": 1}, "q2": {"d1": 1, "d2": 1}})
        first, second = (export(dataset, format, tmp_path / format / each) for each in "ab")
        assert [path.read_bytes() for path in first.files] == [path.read_bytes() for path in second.files]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_verb_says_how_the_dataset_is_read_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "dataset=golden", "format=beir", "output=golden"]) == 0
    shown = capsys.readouterr().out
    (told,) = (line for line in shown.splitlines() if line.startswith("read it with: "))
    assert (here / "golden/corpus.jsonl").is_file()
    assert main(["export", *told.removeprefix("read it with: ").split(), "format=jsonl", "output=again"]) == 0
    capsys.readouterr()
    assert len((here / "again/queries.jsonl").read_bytes().splitlines()) == 64


@pytest.mark.parametrize("folder", ["a, b", "ü", "k=v", "it's"])
def test_the_printed_settings_can_be_typed_for_any_folder_name(
    folder: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "dataset=golden", "format=jsonl", f'output="{folder}"']) == 0
    told = capsys.readouterr().out.partition("read it with: ")[2]
    assert main(["export", *shlex.split(told), "format=beir", "output=again"]) == 0


def test_a_folder_named_by_a_number_is_printed_so_that_it_can_be_read(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "dataset=golden", "format=jsonl", "output=2024"]) == 0
    told = capsys.readouterr().out.partition("read it with: ")[2]
    assert main(["export", *shlex.split(told), "format=beir", "output=20250101"]) == 0
    assert {path.name for path in here.iterdir()} >= {"2024", "20250101"}


def test_a_file_in_the_place_of_the_folder_is_refused_even_to_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ValueError, match=r"output=.*file: expected a folder, found a file"):
        export(small(), "beir", tmp_path / "file", overwrite=True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["format=beir"], "output: is required"),
        (["format=xml", "output=o"], "format=xml"),
        (["dataset=beir", "output=o"], "dataset.path: is required"),
        (["chunking=tokens", "output=o"], "set chunking=none"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], problem: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *words]) == 2
    assert problem in " ".join(capsys.readouterr().err.split())
    assert not (here / "o").exists()
