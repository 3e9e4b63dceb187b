"""A dataset of ir_datasets is the dataset that a folder with the same files gives."""

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

pytest.importorskip("ir_datasets", reason="ir_datasets is not installed: pip install '.[datasets]'")

LOAD = """
import json, sys
from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.ir_datasets import IrDatasets
from runner.testing.datasets import check_source

def load(arguments):
    try:
        dataset = check_source((IrDatasets if "id" in arguments else Beir)(**arguments))
    except DatasetError as error:
        return str(error)
    return [dataset.fingerprint, list(dataset.queries.ids), dataset.corpus.texts[0], len(dataset.judgments)]

print(json.dumps([load(arguments) for arguments in json.loads(sys.argv[1])]))
"""


def load(home: Path, *datasets: Mapping[str, str]) -> list[list[object] | str]:
    """Load datasets, by id or by path, in one process: ir_datasets reads the environment when it is imported."""
    environment = {**os.environ, "IR_DATASETS_HOME": str(home), "IR_DATASETS_DL_TRIES": "1"}
    proxies = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}  # nothing is downloaded
    command = [sys.executable, "-c", LOAD, json.dumps(datasets)]
    done = subprocess.run(command, capture_output=True, text=True, env={**environment, **proxies})
    assert done.returncode == 0, done.stderr
    loaded: list[list[object] | str] = json.loads(done.stdout)
    return loaded


def write_beir(folder: Path) -> Path:
    """Write a folder in the layout of BEIR."""
    documents = [{"_id": f"d{i}", "title": f"title {i}" if i % 2 else "", "text": f"café number {i}"} for i in range(9)]
    queries = [{"_id": f"q{i}", "text": f"where is number {i}?"} for i in range(4)]
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps({**d, "metadata": {}}) + "\n" for d in documents))
    (folder / "queries.jsonl").write_text("".join(json.dumps({**q, "metadata": {}}) + "\n" for q in queries))
    for split, first in (("train", 0), ("test", 2)):
        rows = "".join(f"q{i}\td{i}\t1\n" for i in range(first, first + 2))
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def fill_cache(home: Path, folder: Path) -> None:
    """Put a folder in the layout of BEIR where ir_datasets keeps the download of beir/scifact."""
    (home / "beir" / "scifact").mkdir(parents=True)
    with zipfile.ZipFile(home / "beir" / "scifact" / "source.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in ("corpus.jsonl", "queries.jsonl"):
            lines = ({"metadata": {}, **json.loads(line)} for line in (folder / file).read_text().splitlines())
            archive.writestr(f"scifact/{file}", "".join(json.dumps(line) + "\n" for line in lines))
        for file in ("qrels/train.tsv", "qrels/test.tsv"):
            archive.write(folder / file, f"scifact/{file}")


def write_cranfield(home: Path, folder: Path) -> None:
    """Write the documents, queries and judgments of a folder in the layout of BEIR as Cranfield's own archive."""
    names = ("corpus.jsonl", "queries.jsonl")
    rows = {name: [json.loads(line) for line in (folder / name).read_text().splitlines()] for name in names}
    qrels = (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]
    files: Mapping[str, str] = {
        "cran.all.1400": "".join(
            f".I {r['_id']}\n.T\n{r['title']}\n.A\nsomebody\n.B\n\n.W\n{r['text']}\n" for r in rows["corpus.jsonl"]
        ),
        "cran.qry": "".join(f".I {r['_id']}\n.W\n{r['text']}\n" for r in rows["queries.jsonl"]),
        "cranqrel": "".join(f"{' '.join(line.split())}\n" for line in qrels),
    }
    (home / "cranfield").mkdir(parents=True)
    with tarfile.open(home / "cranfield" / "cran.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))


BY_ID: Sequence[Mapping[str, str]] = [{"id": f"beir/scifact/{split}"} for split in ("train", "test")]
ERRORS: Sequence[tuple[Mapping[str, str], str]] = [
    (
        {"id": "beir/scifac/test"},
        "dataset.id=beir/scifac/test: ir_datasets has no such dataset; did you mean beir/scifact/test",
    ),
    (
        {"id": "beir/scifact"},
        "dataset.id=beir/scifact: has no qrels; choose one of its parts: beir/scifact/test, beir/scifact/train",
    ),
    (
        {**BY_ID[1], "document_text": "body"},
        "dataset.document_text=body: beir/scifact/test has no such field; choose from text, title",
    ),
    (
        {**BY_ID[1], "query_text": "desc"},
        "dataset.query_text=desc: beir/scifact/test has no such field; choose from text",
    ),
    ({"id": "beir/nq"}, "dataset.id=beir/nq: ir_datasets cannot read it: "),
]


def test_a_dataset_by_id_equals_its_folder(tmp_path: Path) -> None:
    folder, home = write_beir(tmp_path / "scifact"), tmp_path / "home"
    fill_cache(home, folder)
    by_path = [{"path": str(folder), "split": split} for split in ("train", "test")]
    titles = {**BY_ID[1], "document_text": "title"}
    train, test, train_folder, test_folder, titled, *messages = load(
        home, *BY_ID, *by_path, titles, *(arguments for arguments, _ in ERRORS)
    )
    assert (train, test) == (train_folder, test_folder)
    assert train != test
    assert titled[2] == ""  # the first document has no title
    for message, (_, expected) in zip(messages, ERRORS, strict=True):
        assert expected in message


def test_a_real_collection_equals_its_folder(collections: Path, tmp_path: Path) -> None:
    fill_cache(tmp_path, collections / "scifact")
    write_cranfield(tmp_path, collections / "cranfield")
    by_path = [{"path": str(collections / name)} for name in ("scifact", "cranfield")]
    scifact, cranfield, *folders = load(tmp_path, {"id": "beir/scifact/test"}, {"id": "cranfield"}, *by_path)
    assert [scifact, cranfield] == folders
