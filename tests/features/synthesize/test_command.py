"""From chunks to a dataset that is evaluated, from the command line to MLflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
import pytest
from hydra.core.config_loader import ConfigLoader
from mlflow.tracking import MlflowClient
from omegaconf import OmegaConf

from runner.__main__ import main
from runner.config import CONF
from runner.config.composing import open_loader
from runner.features.synthesize.base import QUERY_TYPES
from runner.features.synthesize.command import _build_synthesis
from runner.tracking.settings import Tracking
from tests.fake_llm import FakeLLM
from tests.features.synthesize.pages import TEXTS
from tests.features.synthesize.worlds import list_rows, read_lines, scatter_chunks, write_chunks, write_reply

QUIET = "tracking.background=false"
SIDES = ("", ".chunks.jsonl", ".spans.jsonl", ".rejected.jsonl", ".rejected_chunks.jsonl", ".summary.json")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a store of runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_golden_corpus_gives_the_same_dataset_twice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["synthesize", "count=60", "encoder.dimensions=32", QUIET]
    assert main([*command, "output=a.jsonl"]) == 0
    assert main([*command, "output=b.jsonl", "store.path=another"]) == 0
    for side in SIDES:
        assert (here / f"a.jsonl{side}").read_bytes() == (here / f"b.jsonl{side}").read_bytes()
    queries = read_lines(here / "a.jsonl")
    assert len(queries) == 60
    for row in queries:
        assert row["query"]
        if row["validation"]["query_type"] == "exact_snippet":
            assert any(row["query"] in chunk["chunk"] for chunk in row["context_chunks"])
        assert not any(document in row["query"] for document in row["expected_doc_ids"])
    summary = orjson.loads((here / "a.jsonl.summary.json").read_bytes())
    assert summary["accepted"] == 60 == sum(of["accepted"] for of in summary["types"].values())
    for of in summary["types"].values():
        assert of["requested"] == of["accepted"] + sum(of["rejected"].values())
        assert of["accepted"] <= of["generated"] <= of["requested"]
    shown = capsys.readouterr().out
    assert "By query type" in shown
    assert "120 chunks of 120 documents" in shown
    client = MlflowClient(f"sqlite:///{here}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("retrieval")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert {run.data.tags["kind"] for run in runs} == {"synthesis"}
    assert {run.data.metrics["accepted"] for run in runs} == {60}
    assert runs[0].data.params["selection.distractors"] == "3"
    assert main(["dataset=synthetic", "dataset.path=a.jsonl", "retriever=bm25", QUIET]) == 0
    assert "By query type" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["source.path=nowhere"], "error: source.path=nowhere: no such file or folder"),
        (
            ["source.path=beir"],
            "error: beir/corpus.jsonl:1: 'doc_id' is missing; the fields are _id, text. A chunk needs doc_id",
        ),
        (["source.path=x.py"], "x.py: unknown format; name a .jsonl, .parquet or .json file of chunks, a folder of"),
        (
            ["generator=llm"],
            "error: generator=llm: needs a language model; set, for example, llm=openai llm.model=MODEL",
        ),
        (["validation=llm"], "error: validation: mode=llm: needs a language model"),
        (
            ["generator.types=[keywords]"],
            "generator.types: 'keywords' is not a query type; did you mean keyword?",
        ),
        (
            ["generator.types=[long]"],
            "Deterministic cannot generate long queries; choose from exact_snippet, web_search_like, fact_seeking, "
            "keyword, misspellings, short, or have a language model write them with generator=llm llm=openai",
        ),
        (["output=null"], "error: output=null: cannot be null; set output=VALUE"),
        (["output="], "error: output=: should not be empty"),
        (["output=."], "error: output=.: expected a file, found a folder"),
        (["output=2024"], "error: output=2024: expected a file, found a folder"),
        (["llm=openai"], "error: llm.model: is required"),
        (["count=0"], "error: count=0: should be greater than or equal to 1"),
        (["selection.distractor=2"], "error: selection.distractor: no such setting; did you mean selection.dist"),
        (["sampling.weights.keyword=-1"], "error: sampling.weights.keyword=-1: should be greater than"),
        (["limits.caps.keyword=0"], "error: generator.limits.caps.keyword=0: should be greater than"),
    ],
)
def test_a_mistake_is_an_error_of_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], overrides: list[str], message: str
) -> None:
    (here / "2024").mkdir()
    (here / "beir").mkdir()
    (here / "beir/corpus.jsonl").write_text('{"_id": "d1", "text": "a"}\n')
    (here / "x.py").touch()
    assert main(["synthesize", "output=out.jsonl", *overrides, QUIET]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not list(here.glob("out.jsonl*"))


def test_the_command_fails_with_a_remedy_if_no_query_is_accepted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_chunks(here / "c.jsonl", list_rows(scatter_chunks(12, 6)))
    command = [
        "synthesize",
        "source.path=c.jsonl",
        "output=out.jsonl",
        "generator.types=[keyword]",
        "validation.gates.min_margin=99",
    ]
    assert main([*command, QUIET]) == 1
    out, err = capsys.readouterr()
    assert "error: no query was accepted; see the reasons in out.jsonl.rejected.jsonl" in err
    assert "evaluate them" not in out


def test_the_command_shows_samples_their_author_and_skipped_files(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = here / "pages"
    pages.mkdir()
    for number, text in enumerate(TEXTS):
        (pages / f"p{number}.md").write_text(text)
    (pages / "left.qmd").write_text("# Text that is not read")
    (pages / "also.qmd").write_text("More of it")
    (pages / "table.adoc").write_text("= Text")
    (pages / "photo.png").write_bytes(b"\x89PNG\x00\xff")
    (pages / ".hidden.qmd").write_text("hidden")
    command = ["synthesize", "source.path=pages", "output=out.jsonl", "count=12", "validation=none", QUIET]
    assert main([*command, "encoder.dimensions=4"]) == 0
    out, err = capsys.readouterr()
    notes = " ".join(err.split())
    assert "text files skipped: 2 .qmd, 1 .adoc; documents end with .md," in notes
    assert "these queries were generated by rules" in notes
    assert "concept_seeking, low_overlap, long, medium, comparison need a language model: set generator=llm" in notes
    shown = out[out.index("Samples") :]
    written = read_lines(here / "out.jsonl")
    assert len(written) > 3
    assert sum(row["query"] in shown for row in written) >= min(10, len(written))
    types = {row["validation"]["query_type"] for row in read_lines(here / "out.jsonl")}
    assert types <= {"keyword", "exact_snippet", "fact_seeking", "short", "web_search_like", "misspellings"}


def test_the_command_reports_fewer_queries_than_requested(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_chunks(here / "c.jsonl", list_rows(scatter_chunks(12, 6)))
    command = ["synthesize", "source.path=c.jsonl", "output=out.jsonl", "count=500", "generator.types=[keyword,short]"]
    assert main([*command, QUIET]) == 0
    assert " of 500 queries were accepted, although every type was requested from all 12 bundles" in " ".join(
        capsys.readouterr().err.split()
    )
    assert orjson.loads((here / "out.jsonl.summary.json").read_bytes())["exhausted"] is True


def test_the_same_command_resumes_after_a_language_model_stops(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeLLM(lambda question, system: f"what is said of {crc32(question.encode())}") as server:
        command = [
            "synthesize", "output=out.jsonl", "count=20", "validation=none", "generator=llm",
            "generator.types=[medium]", "llm=openai", "llm.model=m", f"llm.base_url={server.url}",
            "generator.retries=0", QUIET,
        ]  # fmt: skip
        assert main([*command, "llm.max_calls=5", "llm.budget=a"]) == 1
        assert "Run the same command to resume" in " ".join(capsys.readouterr().err.split())
        assert (here / "out.jsonl.journal.jsonl").exists()
        assert not (here / "out.jsonl").exists()
        paid = len(server.asked)
        assert paid == 5
        assert main([*command, "llm.budget=b"]) == 0
        assert len({asked.question for asked in server.asked}) == len(server.asked)
    assert (here / "out.jsonl").exists()
    assert not (here / "out.jsonl.journal.jsonl").exists()
    config = orjson.loads((here / "out.jsonl.summary.json").read_bytes())["config"]
    assert set(config["generator"]["llm"]) == {
        "_target_", "model", "base_url", "temperature", "max_tokens", "seed"
    }  # nothing of a machine, nor of a budget  # fmt: skip


def test_a_model_writes_every_type_and_a_resumed_run_is_equal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "synthesize", "count=30", "selection.mode=cluster", "selection.golden_similarity=0.3", "encoder.dimensions=32",
        "sampling.mode=all_per_bundle", "generator=llm", "validation=llm", "llm=openai", "llm.model=m", QUIET,
    ]  # fmt: skip
    with FakeLLM(write_reply) as server:
        assert main([*command, "output=whole.jsonl", f"llm.base_url={server.url}"]) == 0
        calls = len(server.asked)
    with FakeLLM(write_reply, script=("ok", "rate_limited", "cut", "ok", "server")) as server:
        codes = [1]
        while codes[-1] == 1 and len(codes) < 10:
            budget = ["llm.max_calls=60", f"llm.budget=start{len(codes)}", "llm.backoff_s=0.01"]
            address = f"llm.base_url={server.url}"
            codes.append(main([*command, "output=cut.jsonl", address, *budget, "store.path=another"]))
        served = [asked.question for asked in server.asked if asked.behaviour == "ok"]
    assert codes[-1] == 0 and len(codes) > 3
    assert len(set(served)) == len(served) == calls, "nothing is paid for twice"
    assert (here / "cut.jsonl").read_bytes() == (here / "whole.jsonl").read_bytes()
    rows = read_lines(here / "whole.jsonl")
    assert {row["validation"]["query_type"] for row in rows} == set(QUERY_TYPES)
    assert {row["validation"]["ragas_context_relevance"] for row in rows} == {1.0}
    assert not any(re.search(r"[*`\n]|^Sure|^Query|<think>|^1\.", row["query"]) for row in rows)


@pytest.fixture
def loader() -> Iterator[ConfigLoader]:
    with open_loader("synthesize", []) as (loader, _):
        yield loader


@pytest.mark.parametrize("preset", sorted(file.stem for file in (CONF / "experiment" / "synthesis").glob("*.yaml")))
@pytest.mark.parametrize(
    ("generator", "validation"),
    [("deterministic", "nonllm"), ("deterministic", "hybrid"), ("llm", "none"), ("llm", "llm")],
)
def test_each_preset_is_valid_with_each_choice(
    preset: str, generator: str, validation: str, loader: ConfigLoader
) -> None:
    overrides = [f"experiment=synthesis/{preset}", f"generator={generator}", f"validation={validation}"]
    overrides += ["llm=openai", "llm.model=m"]
    cfg = loader.load_configuration("synthesize", overrides, run_mode=None)  # type: ignore[arg-type]  # as Hydra calls it
    config: Any = OmegaConf.to_container(cfg, resolve=False)
    config.pop("hydra")
    config = OmegaConf.to_container(OmegaConf.create(config), resolve=True)
    synthesis = _build_synthesis(config)
    assert synthesis.validation.mode == validation
