"""Golden sets as other programs and people write them are read without settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import yaml
from pyarrow import parquet

from runner.__main__ import main
from runner.datasets.base import EXPECTED_ANSWER, DatasetError
from runner.datasets.dataset import Dataset
from runner.datasets.needle import Needle
from runner.datasets.question_folder import QuestionFolder
from runner.datasets.tabular import Tabular

DOCUMENTS = {
    "tower": "# Tower\n\nThe lighthouse shines for ships at night.\n",
    "ferry": "# Ferry\n\nFerries leave for the islands every hour.\n",
    "museum": "# Museum\n\nThe museum shows old ships.\n",
}
QUESTIONS = ["When does the lighthouse shine?", "How often do ferries leave?", "Where are ships?"]
GOLD = [["tower"], ["ferry"], ["museum", "tower"]]


def write_folder(folder: Path) -> Path:
    """Write the documents as Markdown files, and return their folder."""
    docs = folder / "docs"
    (docs / "guide").mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        (docs / "guide" / f"{name}.md").write_text(text)
    return docs


def write_table(folder: Path) -> Path:
    path = folder / "documents.json"
    path.write_text(json.dumps([{"doc_id": name, "contents": text} for name, text in DOCUMENTS.items()]))
    return path


def list_gold(dataset: Dataset) -> list[list[str]]:
    """Return the names of the documents that are gold for each query, without folders."""
    names = [*dataset.corpus.ids, *dataset.judgments.unknown_documents]
    golds: list[list[str]] = [[] for _ in range(len(dataset.queries))]
    for query, document, grade in dataset.judgments.list_rows():
        golds[query] += [Path(names[document]).name] if grade > 0 else []
    return [sorted(gold) for gold in golds]


def as_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1))


def as_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def by_index(make: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    return [make(number) for number in range(len(QUESTIONS))]


def quote(name: str) -> str:
    return DOCUMENTS[name].split("\n")[2]


SHAPES: dict[str, tuple[str, Any, str]] = {
    "ragas": (
        "testset.jsonl",
        by_index(
            lambda i: {
                "user_input": QUESTIONS[i],
                "retrieved_contexts": None,
                "reference_contexts": [quote(name) for name in GOLD[i]],
                "reference": "an answer",
                "synthesizer_name": "single_hop",
            }
        ),
        "3 questions from `user_input`, gold from `reference_contexts` (texts), each text as a whole document "
        "(dataset.gold=spans: as a passage), answers from `reference`, "
        "no ids: numbered",
    ),
    "DeepEval": (
        "goldens.json",
        by_index(
            lambda i: {
                "input": QUESTIONS[i],
                "expected_output": "an answer",
                "context": [quote(name) for name in GOLD[i]],
                "retrieval_context": ["what was returned"],
            }
        ),
        "3 questions from `input`, gold from `context` (texts), each text as a whole document (dataset.gold=spans: as "
        "a passage), answers from `expected_output`, no ids: numbered",
    ),
    "promptfoo": (
        "promptfooconfig.yaml",
        {
            "prompts": ["Answer {{question}}"],
            "tests": by_index(lambda i: {"vars": {"question": QUESTIONS[i], "expected_files": GOLD[i]}}),
        },
        "3 questions from `vars.question`, gold from `vars.expected_files` (file names, matched without suffix), "
        "no ids: numbered",
    ),
    "LangSmith": (
        "dataset.jsonl",
        by_index(
            lambda i: {
                "id": f"e{i}",
                "inputs": {"question": QUESTIONS[i]},
                "outputs": {"answer": "an answer", "sources": [f"docs/guide/{name}.md" for name in GOLD[i]]},
                "metadata": None,
            }
        ),
        "3 questions from `inputs.question`, gold from `outputs.sources` (paths), answers from `outputs.answer`, "
        "ids from `id`",
    ),
    "Langfuse": (
        "items.json",
        by_index(
            lambda i: {
                "id": f"i{i}",
                "datasetId": "d",
                "status": "ACTIVE",
                "input": {"query": QUESTIONS[i]},
                "expectedOutput": {"expected_doc_ids": GOLD[i]},
            }
        ),
        "3 questions from `input.query`, gold from `expectedOutput.expected_doc_ids` "
        "(file names, matched without suffix), ids from `id`",
    ),
    "nested lists": (
        "qa.json",
        {"version": 1, "questions": by_index(lambda i: {"qid": i, "query": QUESTIONS[i], "retrieval_gt": [GOLD[i]]})},
        "3 questions from `query`, gold from `retrieval_gt` (file names, matched without suffix), ids from `qid`",
    ),
    "YAML": (
        "questions.yaml",
        by_index(lambda i: {"question": QUESTIONS[i], "expected_sources": [f"{name}.md" for name in GOLD[i]]}),
        "3 questions from `question`, gold from `expected_sources` (file names), no ids: numbered",
    ),
    "objects by id": (
        "golden.json",
        {f"q{i}": {"question": text, "relevant_docs": GOLD[i]} for i, text in enumerate(QUESTIONS)},
        "3 questions from `question`, gold from `relevant_docs` (file names, matched without suffix), ids from `id`",
    ),
    "grades": (
        "graded.json",
        by_index(lambda i: {"question": QUESTIONS[i], "relevant": dict.fromkeys(GOLD[i], 2)}),
        "3 questions from `question`, gold from `relevant` (file names, matched without suffix), no ids: numbered",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_golden_set_of_another_program_needs_no_settings(tmp_path: Path, shape: str) -> None:
    name, content, reading = SHAPES[shape]
    path = tmp_path / name
    if path.suffix == ".yaml":
        path.write_text(yaml.safe_dump(content))
    elif path.suffix == ".jsonl":
        as_lines(path, content)
    else:
        as_json(path, content)
    dataset = Tabular(queries=str(path), documents=str(write_folder(tmp_path))).load()
    assert [*dataset.queries.texts] == QUESTIONS
    assert list_gold(dataset) == GOLD
    assert dataset.reading.removeprefix("3 documents (3 .md); ") == reading
    answers = [about.get(EXPECTED_ANSWER) for about in dataset.queries.metadata or [{}]]
    assert answers == ["an answer"] * 3 if "answers from" in reading else not any(answers)


def test_the_finetuning_dataset_of_llamaindex_has_its_own_documents(tmp_path: Path) -> None:
    ids = [f"q{number}" for number in range(3)]
    content = {
        "queries": dict(zip(ids, QUESTIONS, strict=True)),
        "corpus": DOCUMENTS,
        "relevant_docs": dict(zip(ids, GOLD, strict=True)),
        "mode": "text",
    }
    as_json(tmp_path / "val_dataset.json", content)
    dataset = Tabular(queries=str(tmp_path / "val_dataset.json")).load()
    assert [*dataset.queries.ids] == ids
    assert [*dataset.corpus.texts] == [*DOCUMENTS.values()]
    assert list_gold(dataset) == GOLD
    as_json(tmp_path / "val_dataset.json", content | {"relevant_docs": {"q9": ["tower"]}})
    with pytest.raises(
        DatasetError, match=r"val_dataset\.json: relevant_docs names the query 'q9', which queries lacks"
    ):
        Tabular(queries=str(tmp_path / "val_dataset.json")).load()


def test_files_of_autorag_need_no_settings(tmp_path: Path) -> None:
    questions = by_index(
        lambda i: {"qid": f"u{i}", "query": QUESTIONS[i], "retrieval_gt": [GOLD[i]], "generation_gt": ["an answer"]}
    )
    documents = [{"doc_id": name, "contents": text, "metadata": {"path": name}} for name, text in DOCUMENTS.items()]
    for name, rows in (("qa", questions), ("corpus", documents)):
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    dataset = Tabular(queries=str(tmp_path / "qa.parquet"), documents=str(tmp_path / "corpus.parquet")).load()
    assert [*dataset.queries.ids] == ["u0", "u1", "u2"]
    assert list_gold(dataset) == GOLD


def test_the_tables_of_ms_marco_have_no_header(tmp_path: Path) -> None:
    texts = [*DOCUMENTS.values()]
    (tmp_path / "collection.tsv").write_text(
        "".join(f"{i}\t{text.split(chr(10))[2]}\n" for i, text in enumerate(texts))
    )
    (tmp_path / "queries.tsv").write_text("".join(f"10{i}\t{text}\n" for i, text in enumerate(QUESTIONS)))
    (tmp_path / "qrels.tsv").write_text("100\t0\t0\t1\n101\t0\t1\t1\n102\t0\t2\t1\n102\t0\t0\t1\n")
    paths = {
        name: str(tmp_path / f"{file}.tsv")
        for name, file in (("documents", "collection"), ("queries", "queries"), ("qrels", "qrels"))
    }
    dataset = Tabular(**dict[str, Any](paths)).load()
    assert [*dataset.queries.texts] == QUESTIONS
    assert list_gold(dataset) == [["0"], ["1"], ["0", "2"]]


def test_in_a_table_of_pairs_the_id_is_that_of_the_document_and_questions_merge(tmp_path: Path) -> None:
    rows = [("ferry", 1), ("tower", 0), ("museum", 2), ("tower", 2), ("tower", 2)]
    (tmp_path / "ground-truth.csv").write_text(
        "question,course,document\n" + "".join(f"{QUESTIONS[i]},harbour,{name}\n" for name, i in rows)
    )
    (tmp_path / "ids.csv").write_text("id,question\n" + "".join(f"{name},{QUESTIONS[i]}\n" for name, i in rows))
    for file, column in (("ground-truth.csv", "document"), ("ids.csv", "id")):
        dataset = Tabular(queries=str(tmp_path / file), documents=str(write_table(tmp_path))).load()
        assert dict(zip(dataset.queries.ids, dataset.queries.texts, strict=True)) == {
            "q0001": QUESTIONS[1],
            "q0002": QUESTIONS[0],
            "q0003": QUESTIONS[2],
        }
        assert list_gold(dataset) == [["ferry"], ["tower"], ["museum", "tower"]]
        assert dataset.reading == (
            "3 documents from `contents`, ids from `doc_id`; "
            f"3 questions from `question`, gold from `{column}` (ids), no ids: numbered, "
            "5 rows, of which repeated questions became one"
        )


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        ("guide/tower", "ids"),
        ("tower.md", "file names"),
        ("TOWER.md", "file names"),
        ("tower", "file names, matched without suffix"),
        ("tower.pdf", "file names, matched without suffix"),
        ("docs/guide/tower.md", "paths"),
        ("./guide/tower.md", "paths"),
        ("docs\\guide\\tower.md", "paths"),
        ("https://example.org/docs/guide/tower", "paths, matched without suffix"),
        ("tower.md#opening-hours", "places in files"),
        ("tower.md:12", "places in files"),
        ("tower.md:12-14", "places in files"),
        ("tower.md, p. 3", "places in files"),
        ("Tower", "file names, matched without suffix"),
        ("the lighthouse shines for ships", "texts"),
        ('["tower.md"]', "file names"),
        ("['tower.md']", "file names"),
        ('{"source": "tower.md", "relevance": 1}', "file names"),
    ],
)
def test_gold_may_be_written_in_many_ways(tmp_path: Path, gold: str, kind: str) -> None:
    as_json(tmp_path / "golden.json", [{"question": "When?", "gold": gold}])
    dataset = Tabular(queries=str(tmp_path / "golden.json"), documents=str(write_folder(tmp_path))).load()
    assert list_gold(dataset) == [["tower"]]
    how = ", each text as a whole document (dataset.gold=spans: as a passage)" if kind == "texts" else ""
    reading = f"3 documents (3 .md); 1 question from `question`, gold from `gold` ({kind}){how}, no ids: numbered"
    assert dataset.reading == reading


@pytest.mark.parametrize(
    ("gold", "cause"),
    [
        ("lantern.md", "ids look like 'guide/ferry'"),
        ("the lighthouse stays dark forever", "no document contains this text"),
    ],
)
def test_gold_that_is_no_document_is_refused_with_its_likely_cause(tmp_path: Path, gold: str, cause: str) -> None:
    rows = [{"question": "When?", "gold": "tower"}, {"question": "Where?", "gold": gold}]
    as_json(tmp_path / "golden.json", rows)
    paths = {"queries": str(tmp_path / "golden.json"), "documents": str(write_folder(tmp_path))}
    with pytest.raises(DatasetError) as refused:
        Tabular(**paths).load()
    assert (
        f"golden.json, row 2: 1 judged document is not among the 3 documents of the corpus, for example {gold!r} "
        in str(refused.value)
    )
    assert f"({cause})" in str(refused.value)
    kept = Tabular(**paths, unknown_judged="keep").load()
    assert "1 of 2 without a document" in kept.reading


@pytest.mark.parametrize("mark", ["|", ", ", ";", "\n", " "])
def test_the_last_of_several_paths_is_not_the_path_of_all(tmp_path: Path, mark: str) -> None:
    as_json(tmp_path / "golden.json", [{"question": "When?", "gold": f"tower.md{mark}docs/guide/ferry.md"}])
    source = QuestionFolder(path=str(write_folder(tmp_path)), questions=str(tmp_path / "golden.json"))
    assert list_gold(source.load()) == [["ferry", "tower"]]


def test_the_name_of_a_hidden_file_is_no_suffix(tmp_path: Path) -> None:
    (tmp_path / "documents.json").write_text(json.dumps({".pdf": "A format.", "tower": "A tower."}))
    as_json(tmp_path / "golden.json", [{"question": "When?", "gold": "docs/.md"}])
    source = Tabular(queries=str(tmp_path / "golden.json"), documents=str(tmp_path / "documents.json"))
    with pytest.raises(DatasetError, match=r"golden\.json, row 1: 1 judged document is not among the 2 documents"):
        source.load()


@pytest.mark.parametrize("name", ["golden.jsonl", "golden.json"])
def test_a_single_question_may_have_a_list_of_objects(tmp_path: Path, name: str) -> None:
    question = {"question": "When?", "gold": [{"source": "tower.md", "page": 1}, {"source": "ferry.md", "page": 2}]}
    (tmp_path / name).write_text(json.dumps(question) + "\n")
    source = QuestionFolder(path=str(write_folder(tmp_path)), questions=str(tmp_path / name))
    assert list_gold(source.load()) == [["ferry", "tower"]]


def test_a_name_of_two_files_is_refused_with_both(tmp_path: Path) -> None:
    docs = write_folder(tmp_path)
    (docs / "old").mkdir()
    (docs / "old" / "tower.md").write_text("The old tower.\n")
    as_json(tmp_path / "golden.json", [{"question": "When?", "gold": "tower.md"}])
    with pytest.raises(DatasetError, match=r"such as guide/tower\.md or old/tower\.md"):
        Tabular(queries=str(tmp_path / "golden.json"), documents=str(docs)).load()
    as_json(tmp_path / "golden.json", [{"question": "When?", "gold": "old/tower.md"}])
    dataset = Tabular(queries=str(tmp_path / "golden.json"), documents=str(docs)).load()
    assert [dataset.corpus.ids[document] for _, document, _ in dataset.judgments.list_rows()] == ["old/tower"]


def test_two_columns_of_gold_are_refused_with_the_settings_to_paste(tmp_path: Path) -> None:
    rows = [
        {"question": "When?", "expected_file": "tower.md", "source": "docs/guide/tower.md", "relevant_docs": ["ferry"]}
    ]
    as_json(tmp_path / "golden.json", rows)
    paths = {"queries": str(tmp_path / "golden.json"), "documents": str(write_folder(tmp_path))}
    with pytest.raises(DatasetError) as refused:
        Tabular(**paths).load()
    assert str(refused.value) == (
        f"{tmp_path}/golden.json: several columns may be the gold of a question: 'expected_file', 'relevant_docs'; set "
        "dataset.query_golds=expected_file or dataset.query_golds=relevant_docs"
    )
    assert list_gold(Tabular(**paths, query_golds="source").load()) == [["tower"]]


def test_questions_without_gold_are_counted_in_the_reading(tmp_path: Path) -> None:
    (tmp_path / "golden.csv").write_text("question,file\nWhen?,tower.md\nWhere?,\nWho?,\n")
    dataset = Tabular(queries=str(tmp_path / "golden.csv"), documents=str(write_folder(tmp_path))).load()
    assert list_gold(dataset) == [["tower"], [], []]
    assert f"2 without gold, the first at {tmp_path}/golden.csv:3" in dataset.reading


def test_rows_in_another_order_are_the_same_questions_with_other_numbers(tmp_path: Path) -> None:
    def read(order: list[int]) -> Dataset:
        as_json(tmp_path / "golden.json", [{"question": QUESTIONS[i], "gold": GOLD[i]} for i in order])
        return Tabular(queries=str(tmp_path / "golden.json"), documents=str(write_table(tmp_path))).load()

    one, other = read([0, 1, 2]), read([2, 0, 1])
    assert [*one.queries.ids] == [*other.queries.ids] == ["q0001", "q0002", "q0003"]
    assert [*other.queries.texts] == [QUESTIONS[i] for i in (2, 0, 1)]
    assert one.fingerprint != other.fingerprint


def test_a_file_with_several_lists_is_refused_with_the_setting_of_the_key(tmp_path: Path) -> None:
    row = {"question": "When?", "gold": "tower"}
    as_json(tmp_path / "golden.json", {"easy": [row], "hard": [row | {"question": "Where?"}]})
    paths = {"queries": str(tmp_path / "golden.json"), "documents": str(write_table(tmp_path))}
    with pytest.raises(DatasetError, match=r"rows under several keys: easy, hard; set dataset\.queries_key to one"):
        Tabular(**paths).load()
    assert [*Tabular(**paths, queries_key="hard").load().queries.texts] == ["Where?"]


FORMATS = {
    "tower.md": "---\ntitle: Tower\n---\nThe lighthouse shines.\n",
    "guide.mdx": "# Guide\n\n<Tip>Ask at the harbour.</Tip>\n",
    "ferry.rst": "Ferry\n=====\n\nFerries leave every hour.\n",
    "museum.html": "<html><head><title>Old  ships</title><style>p {}</style></head><body><h1>Museum</h1>"
    "<p>The <b>museum</b>&nbsp;shows</p><p>old ships.</p><script>let a = 1</script></body></html>",
    "pier.adoc": "= Pier\n\nThe pier is closed.\n",
    "nets.ipynb": json.dumps({"cells": [{"source": ["# Nets\n", "\n", "Mend them."]}, {"source": "knot()"}]}),
    "tide.pdf": "%PDF",
    "log.csv": "a,b\n1,2\n",
    ".hidden.md": "hidden",
}


def test_documents_of_a_folder_may_have_several_formats_and_others_are_counted(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, content in FORMATS.items():
        (tmp_path / "docs" / name).write_text(content)
    as_json(tmp_path / "golden.json", [{"question": "When?", "file": "museum.html"}])
    dataset = QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "golden.json")).load()
    corpus = dataset.corpus
    assert dict(zip(corpus.ids, zip(corpus.titles, corpus.texts, strict=True), strict=True)) == {
        "tower": ("Tower", FORMATS["tower.md"]),
        "guide": ("Guide", FORMATS["guide.mdx"]),
        "ferry": ("", FORMATS["ferry.rst"]),
        "museum": ("Old ships", "Museum\nThe museum shows\nold ships."),
        "pier": ("Pier", FORMATS["pier.adoc"]),
        "nets": ("Nets", "# Nets\n\nMend them.\n\nknot()"),
    }
    assert dataset.reading == (
        "6 documents (1 .rst, 1 .mdx, 1 .html, 1 .ipynb, 1 .adoc, 1 .md; left out 2: 1 .csv, 1 .pdf); "
        "1 question from `question`, gold from `file` (file names), no ids: numbered"
    )
    assert list_gold(dataset) == [["museum"]]
    (tmp_path / "docs" / "nets.ipynb").write_text("{}")
    with pytest.raises(DatasetError, match=r"nets\.ipynb: the notebook has no list of cells"):
        QuestionFolder(path=str(tmp_path / "docs"), questions=str(tmp_path / "golden.json")).load()


def test_a_wrong_question_of_a_folder_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(
        '{"question": "When?", "file": "tower"}\n{"question": "Who?", "file": "crew"}\n'
    )
    source = QuestionFolder(path=str(write_folder(tmp_path)), questions=str(tmp_path / "golden.jsonl"))
    with pytest.raises(DatasetError, match=r"golden\.jsonl:2: 1 judged document is not among the 3 documents"):
        source.load()


def test_the_reading_is_printed_before_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    as_json(
        tmp_path / "golden.json", [{"question": text, "gold": gold} for text, gold in zip(QUESTIONS, GOLD, strict=True)]
    )
    own = [f"dataset.path={write_folder(tmp_path)}", f"dataset.questions={tmp_path / 'golden.json'}"]
    assert main(["dataset=folder", *own, "tracking=none"]) == 0
    printed = capsys.readouterr()
    assert "3 documents (3 .md); 3 questions from `question`, gold from `gold`" in printed.err
    assert "3 documents, 3 queries, 4 judgments" in printed.out


@pytest.mark.parametrize("name", ["golden.jsonl", "golden.yaml"])
def test_needles_may_be_json_lines_or_yaml(tmp_path: Path, name: str) -> None:
    rows = [{"question": text, "doc_id": gold[0]} for text, gold in zip(QUESTIONS, GOLD, strict=True)]
    (tmp_path / name).write_text("".join(f"{'- ' * name.endswith('yaml')}{json.dumps(row)}\n" for row in rows))
    dataset = Needle(questions=str(tmp_path / name), documents=str(write_folder(tmp_path) / "guide")).load()
    assert list_gold(dataset) == [gold[:1] for gold in GOLD]
