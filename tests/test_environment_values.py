from __future__ import annotations

import gzip
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import orjson
import pytest

from retrievers.base import Corpus, Rankings, build_rankings
from retrievers.excerpts import shorten_text
from retrievers.store import NoStore, Store
from runner.__main__ import main
from runner.config.environment import forget_references, hide_values, note_references
from runner.tracking.settings import Tracking

SECRET = "hushfolder"
DATA = ("dataset=beir", "dataset.path=${oc.env:HUSH}", "tracking.background=false")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for runs; the variable HUSH has a dataset elsewhere, in a folder with a secret name."""
    folder, runs = tmp_path / SECRET, tmp_path / "runs"
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": "d1", "title": "", "text": "ships"}, {"_id": "d2", "title": "", "text": "ferries"}]
    (folder / "corpus.jsonl").write_bytes(b"".join(orjson.dumps(d) + b"\n" for d in documents))
    (folder / "queries.jsonl").write_bytes(orjson.dumps({"_id": "q1", "text": "ships"}) + b"\n")
    (folder / "qrels" / "test.tsv").write_text("q1\td1\t1\n")
    shutil.copytree(tmp_path / "mlruns", runs / "mlruns")
    monkeypatch.chdir(runs)
    monkeypatch.setenv("HUSH", str(folder))
    return runs


def files_with(secret: str, folder: Path) -> list[str]:
    """Return the files below a folder, gzipped ones aside, that hold a text or are named by it."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [str(file) for file in files if secret in str(file) or secret.encode() in file.read_bytes()]


@pytest.mark.parametrize("sweep", [[], ["-m", "retriever.k1=0.6,0.9", "sweep.output=reports"]])
def test_values_from_the_environment_reach_no_artifact(
    here: Path, sweep: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*sweep, *DATA]) == 0
    assert files_with(SECRET, here) == []
    assert files_with("${oc.env:HUSH}", here / "mlruns" / "artifacts") != []
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err


def test_public_variables_reach_the_artifacts(here: Path) -> None:
    assert main(["public_environment=[HUSH]", *DATA]) == 0
    assert any(file.endswith("config.yaml") for file in files_with(SECRET, here / "mlruns" / "artifacts"))


TOKEN = "hush/token-4711 'x'"


@dataclass(frozen=True)
class Leaky:
    """Quotes its token in what goes wrong, as a library may do with an address."""

    token: str
    fails: Literal["index", "search", "query", "cut"]

    def index(self, corpus: Corpus, store: Store) -> LeakySearcher:
        if self.fails == "index":
            raise RuntimeError(f"refused: {self.token!r}")
        return LeakySearcher(self, corpus)


@dataclass(frozen=True)
class LeakySearcher:
    settings: Leaky
    corpus: Corpus

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        if self.settings.fails == "search":
            raise ValueError(f"refused:\n{self.settings.token}")
        if self.settings.fails == "cut":
            raise ValueError(f"refused: {self.settings.token[:12]}...{self.settings.token[-8:]}")
        rankings = build_rankings([[(0, 1.0)]] * len(queries), self.corpus.tie_order, k)
        return replace(rankings, errors={0: f"refused: {self.settings.token}"}, addresses={"": self.settings.token})


LEAKY = [f"plugins=[{__name__}]", "retriever=leaky", "--config-dir=configs"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, [*LEAKY, "retriever.fails=index"]),
        (1, [*LEAKY, "retriever.fails=search"]),
        (1, [*LEAKY, "retriever.fails=query"]),
        (1, [*LEAKY, "retriever.fails=cut"]),
        (1, [*LEAKY, "-m", "retriever.fails=index,search,query", "sweep.output=reports"]),
        (1, [*LEAKY, "-m", "retriever.fails=search,query", "sweep.backend=loky", "sweep.workers=1"]),
        (2, ["retriever.variant=${oc.env:HUSH}"]),
        (2, ["-m", "retriever.variant=${oc.env:HUSH},lucene"]),
        (2, ["retriever.k1=${oc.decode:${oc.env:HUSH}}"]),
        (2, ["dataset=beir", "dataset.path=${oc.env:HUSH}"]),
        (2, ["retriever=http/runner", "retriever.base_url=${oc.env:HUSH}", "retriever.retries=0"]),
        (2, ["tracking.uri=${oc.env:HUSH}"]),
        (2, ["compare", "baseline=${oc.env:HUSH}", "candidate=x"]),
        (2, ["synthesize", "source.path=${oc.env:HUSH}"]),
        (2, ["traces", "path=${oc.env:HUSH}", "output=x"]),
    ],
)
def test_values_from_the_environment_reach_no_error(
    tracking: Tracking,
    code: int,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text('[tool.retrieval-runner]\nconf = "configs"\n')
    Path("configs/retriever").mkdir(parents=True)
    Path("configs/retriever/leaky.yaml").write_text(
        f"_target_: {__name__}.Leaky\ntoken: ${{oc.env:HUSH}}\nfails: query\n"
    )
    monkeypatch.setenv("HUSH", TOKEN)
    assert main([*words, "tracking.background=false"]) == code
    captured = capsys.readouterr()
    texts = [captured.out + captured.err, *map(content_of, Path().rglob("*"))]
    assert not [line for text in texts for line in text.splitlines() if "token-4" in line or "4711 'x'" in line]
    assert "${oc.env:HUSH}" in captured.err + captured.out


def test_the_traceback_of_a_crash_shows_no_value_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def crash(source: object) -> None:
        raise RuntimeError(f"cannot read {TOKEN}")

    monkeypatch.setenv("HUSH", TOKEN)
    monkeypatch.setattr("runner.datasets.golden_json.GoldenJson.load", crash)
    assert main(["export", "dataset.name=${oc.env:HUSH}", "output=x"]) == 1
    err = capsys.readouterr().err
    assert "token-4711" not in err
    assert "RuntimeError: cannot read ${oc.env:HUSH}" in err


@pytest.mark.parametrize("shown", [4, 9, len(TOKEN) - 2])
def test_what_a_message_keeps_of_a_value_that_it_cuts_is_hidden(shown: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSH", TOKEN)
    note_references({"token": "${oc.env:HUSH}"})
    long = "x" * 20
    assert (
        hide_values(f"({shorten_text(long + TOKEN, 21 + shown)})") == f"({long}${{oc.env:HUSH}}\N{HORIZONTAL ELLIPSIS})"
    )
    assert hide_values(f"input '{long}...{TOKEN[-shown:]}'") == f"input '{long}...${{oc.env:HUSH}}'"
    assert hide_values(f"{TOKEN[:shown]} and more...") == f"{TOKEN[:shown]} and more..."
    forget_references()


def content_of(file: Path) -> str:
    """Return the name and the content of a file."""
    if not file.is_file():
        return str(file)
    content = file.read_bytes()
    return str(file) + (gzip.decompress(content) if file.suffix == ".gz" else content).decode(errors="replace")
