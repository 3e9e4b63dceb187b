"""Data files in an object store give the dataset that a folder gives; the store is one in memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from runner.datasets import mirror
from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.files import json_lines, matching, resolve_path
from runner.datasets.trec import Trec

DATA = {
    "corpus.jsonl": '{"_id": "a", "title": "t", "text": "red"}\n{"_id": "b", "title": "", "text": "blue"}\n',
    "queries.jsonl": '{"_id": "q", "text": "red"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\ta\t1\n",
    "qrels/dev.tsv": "query-id\tcorpus-id\tscore\nq\tb\t1\n",
}


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a folder in BEIR's layout."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    address = f"memory://bucket/{uuid.uuid4().hex}"
    write(address, DATA)
    yield address
    fsspec.filesystem("memory").rm(address, recursive=True)


def write(address: str, contents: dict[str, str]) -> None:
    for name, content in contents.items():
        fsspec.filesystem("memory").pipe_file(f"{address}/{name}", content.encode())
    mirror.mirror.cache_clear()  # as in the next process


def test_a_folder_in_an_object_store_is_the_same_dataset(address: str, tmp_path: Path) -> None:
    for name, content in DATA.items():
        (tmp_path / "beir" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "beir" / name).write_text(content)
    local, remote = Beir(path=str(tmp_path / "beir")), Beir(path=address)
    assert remote.load().fingerprint == local.load().fingerprint
    assert remote.splits() == ["dev", "test"]


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_a_compressed_file_in_an_object_store_is_named_without_its_extension(
    address: str, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    fsspec.filesystem("memory").pipe_file(f"{address}/docs/d.jsonl{ending}", pack(DATA["corpus.jsonl"].encode()))
    (path,) = matching(f"{address}/docs/d.jsonl", "documents")
    assert path.name == f"d.jsonl{ending}"
    assert [record.fields["_id"] for record in json_lines(path)] == ["a", "b"]


def test_only_what_changed_is_fetched_again(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Beir(path=address).load()
    fetched: list[str] = []
    download = mirror.Objects.download

    def note(objects: mirror.Objects, name: str, file: Path) -> None:
        fetched.append(name.rpartition("/")[2])
        download(objects, name, file)

    monkeypatch.setattr(mirror.Objects, "download", note)
    mirror.mirror.cache_clear()
    Beir(path=address).load()
    assert fetched == []
    write(address, {"queries.jsonl": '{"_id": "q", "text": "red and blue"}\n'})
    assert Beir(path=address).load().queries.texts == ["red and blue"]
    assert fetched == ["queries.jsonl"]


def test_the_copy_of_a_removed_file_goes(address: str) -> None:
    assert Beir(path=address).splits() == ["dev", "test"]
    fsspec.filesystem("memory").rm(f"{address}/qrels/dev.tsv")
    mirror.mirror.cache_clear()
    assert Beir(path=address).splits() == ["test"]


def test_splits_and_globs_are_those_of_the_object_store(address: str) -> None:
    trec = Trec(topics=f"{address}/queries.jsonl", qrels=f"{address}/qrels/{{split}}.tsv", documents=f"{address}/cor*")
    assert trec.splits() == ["dev", "test"]
    assert list(trec.load().corpus.ids) == ["a", "b"]
    assert [file.name for file in matching(f"{address}/q*.jsonl", "documents")] == ["queries.jsonl"]


def test_a_packed_file_and_a_file_beside_a_copy_are_resolved(address: str) -> None:
    write(address, {"x.jsonl.gz": "packed", "y.jsonl": "{}"})
    copy = resolve_path(f"{address}/x.jsonl", "path")
    assert copy.name == "x.jsonl.gz"
    assert resolve_path(copy.with_name("y.jsonl"), "corpus").read_text() == "{}"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("memory://bucket/nowhere", r"memory://bucket/nowhere: no such file or folder$"),
        ("https://host/x", r"https://host/x: set a local path, or an address such as s3://BUCKET/FOLDER"),
    ],
)
def test_what_is_not_there_is_one_line(path: str, message: str, address: str) -> None:
    assert address
    with pytest.raises(DatasetError, match=rf"^dataset\.path={message}"):
        Beir(path=path).load()
