"""A dataset of the Hugging Face hub is the dataset that a folder with the same files gives."""

import gzip
import hashlib
import io
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

from runner.datasets.base import DatasetError
from runner.datasets.beir import Beir
from runner.datasets.hf import HuggingFace
from runner.testing.datasets import check_source

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed: pip install '.[datasets]'")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CORPUS = [{"_id": f"d{i}", "title": f"title {i}" if i % 2 else "", "text": f"café number {i}"} for i in range(9)]
QUERIES = [{"_id": f"q{i}", "text": f"where is number {i}?"} for i in range(4)]
QRELS = {"train": [("q0", "d0", 1), ("q1", "d1", 2)], "test": [("q2", "d2", 1), ("q3", "d3", 0), ("q3", "d4", 1)]}

Repository = Mapping[str, bytes]


def write_lines(rows: list[dict[str, str]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def write_parquet(rows: list[dict[str, str]] | pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer)
    return buffer.getvalue()


def write_tsv(split: str) -> bytes:
    return "\n".join(["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in QRELS[split])]).encode()


def table(split: str) -> pd.DataFrame:
    return pd.DataFrame(QRELS[split], columns=["query-id", "corpus-id", "score"])


LAYOUTS: Mapping[str, Mapping[str, Repository]] = {
    "BEIR: tables, and judgments in a repository of their own": {
        "owner/name": {
            "README.md": b"about",
            "corpus.jsonl.gz": gzip.compress(write_lines(CORPUS)),
            "queries.jsonl.gz": gzip.compress(write_lines(QUERIES)),
        },
        "owner/name-qrels": {f"{split}.tsv": write_tsv(split) for split in QRELS},
    },
    "MTEB: JSONL": {
        "owner/name": {
            "corpus.jsonl": write_lines(CORPUS),
            "queries.jsonl": write_lines(QUERIES),
            **{f"qrels/{split}.jsonl": table(split).to_json(orient="records", lines=True).encode() for split in QRELS},
        }
    },
    "MTEB: Parquet in parts": {
        "owner/name": {
            "corpus/corpus-00000-of-00002.parquet": write_parquet(CORPUS[:5]),
            "corpus/corpus-00001-of-00002.parquet": write_parquet(CORPUS[5:]),
            "queries/queries-00000-of-00001.parquet": write_parquet(QUERIES),
            **{f"data/{split}-00000-of-00001.parquet": write_parquet(table(split)) for split in QRELS},
        }
    },
    "a folder of BEIR": {
        "owner/name": {
            "corpus.jsonl": write_lines(CORPUS),
            "queries.jsonl": write_lines(QUERIES),
            **{f"qrels/{split}.tsv": write_tsv(split) for split in QRELS},
        }
    },
}


class Hub(ThreadingHTTPServer):
    """What of the hub's protocol a download of a dataset needs."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: Mapping[str, Repository] = {}
        self.requests: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        self.server.requests.append(path)
        owner, name, rest = (path.removeprefix("/api").removeprefix("/datasets/") + "//").split("/", 2)
        files = self.server.repositories.get(f"{owner}/{name}")
        if files is None or (rest.startswith("revision/") and rest.strip("/")[9:] not in ("main", COMMIT)):
            self.answer(404, {"X-Error-Code": "RepoNotFound" if files is None else "RevisionNotFound"}, b"{}")
        elif path.startswith("/api") and rest.startswith("tree/"):
            tree = [{"type": "file", "path": file, "size": len(content)} for file, content in files.items()]
            entries = [{**entry, "oid": hashlib.sha1(files[str(entry["path"])]).hexdigest()} for entry in tree]
            self.answer(200, {"Content-Type": "application/json"}, json.dumps(entries).encode())
        elif path.startswith("/api"):
            listed = [{"rfilename": file} for file in files]
            about = {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": listed, "private": False, "tags": []}
            self.answer(200, {"Content-Type": "application/json"}, json.dumps(about).encode())
        else:
            content = files[rest.strip("/").removeprefix(f"resolve/{COMMIT}/")]
            self.answer(200, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT}, content)

    do_HEAD = do_GET

    def answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    from huggingface_hub import close_session, constants

    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.partition("/{repo_id}")[1:]
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "".join(template))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    close_session()  # of another test, which may have been offline
    yield server
    close_session()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_dataset_of_the_hub_equals_its_folder(
    layout: str, hub: Hub, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.repositories = LAYOUTS[layout]
    folder = tmp_path / "folder"
    for name, content in LAYOUTS["a folder of BEIR"]["owner/name"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    source = HuggingFace(name="owner/name", split="test")
    assert check_source(source).fingerprint == Beir(path=str(folder)).load().fingerprint
    assert capfd.readouterr().err == "", "no bar of the hub"
    assert source.splits() == ["test", "train"]
    assert source.places("document", "d7")[0].endswith(("corpus.jsonl:8", ".gz:8", "row 3"))


def test_a_second_load_needs_no_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    hub.repositories = LAYOUTS["MTEB: JSONL"]
    source = HuggingFace(name="owner/name", revision=COMMIT)
    first = source.load().fingerprint
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert source.load().fingerprint == first
    assert not hub.requests


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"name": "owner/other"},
            "dataset.name=owner/other: the hub has no such dataset, or HF_TOKEN does not give access to it",
        ),
        ({"split": "dev"}, "dataset.split=dev: owner/name has no such split; choose from: test, train"),
        ({"revision": "v9"}, "dataset.name=owner/name dataset.revision=v9: cannot be downloaded: "),
        ({"qrels": "owner/none"}, "dataset.qrels=owner/none: the hub has no such dataset"),
        (
            {"qrels": "owner/name", "qrels_revision": "v9"},
            "dataset.qrels=owner/name dataset.qrels_revision=v9: cannot be downloaded: ",
        ),
    ],
)
def test_an_error_names_the_setting(settings: dict[str, str], message: str, hub: Hub) -> None:
    hub.repositories = LAYOUTS["MTEB: JSONL"]
    with pytest.raises(DatasetError) as error:
        HuggingFace(**{"name": "owner/name", **settings}).load()
    assert message in str(error.value)


def test_a_repository_without_documents_is_refused(hub: Hub) -> None:
    files = {"queries.jsonl": write_lines(QUERIES), "data/test.parquet": write_parquet(table("test"))}
    hub.repositories = {"owner/name": files}
    with pytest.raises(DatasetError, match=r"has no corpus\.jsonl or corpus/\*\.parquet"):
        HuggingFace(name="owner/name").load()


def test_a_dataset_that_is_not_cached_needs_the_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DatasetError, match="is not in the cache, and the hub cannot be reached"):
        HuggingFace(name="owner/name").load()
