"""`python -m runner mine`, on a small world and on real definitions."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from mlflow.tracking import MlflowClient

from runner.__main__ import main
from runner.datasets.mined import Mined
from tests.conftest import DATA
from tests.fake_llm import FakeLLM
from tests.features.mine.worlds import answer_from_gold, read_rows, write_world
from tests.warm import start_command

KINDS = [
    f"+source.kinds.{name}._target_=runner.features.mine.extraction.{kind}"
    for name, kind in (("api", "NamedAnswers"), ("fix", "Imports"))
]
WORLD = ["mine", "source=definitions", "source.definitions=suites", "source.targets=targets.yaml", *KINDS]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has the small world."""
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path)
    return tmp_path


def test_the_dataset_of_mine_loads_and_the_commands_to_use_it_are_shown(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORLD, "output=out/mined.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "evaluate it: python -m runner dataset=mined dataset.path=out/mined.jsonl" in out
    assert "inspect it: python -m runner inspect dataset=mined dataset.path=out/mined.jsonl output=out/mined" in out
    assert "ambiguous" in out
    dataset = Mined(path="out/mined.jsonl").load()
    assert len(dataset.queries) == 4
    assert len(dataset.corpus) == 8
    assert not (here / "out/mined.jsonl.journal.jsonl").exists()


def test_mining_logs_a_run_with_settings_and_figures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORLD, "mining.seed=3", "output=mined.jsonl"]) == 0
    client = MlflowClient(f"sqlite:///{here}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("retrieval")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert f"run: {run.info.run_id}" in capsys.readouterr().out
    assert (run.data.tags["kind"], run.info.run_name) == ("mining", "mined")
    assert (run.data.metrics["cases"], run.data.metrics["queries_kept"], run.data.metrics["verdict/rejected"]) == (
        6,
        4,
        2,
    )
    assert (run.data.params["mining.seed"], run.data.params["source.targets"]) == ("3", "targets.yaml")
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["summary.json"]


def test_the_same_command_again_gives_the_same_bytes(here: Path) -> None:
    def files() -> dict[str, bytes]:
        assert main([*WORLD, "mining.random_negatives=2", "output=out/mined.jsonl"]) == 0
        return {file.name: file.read_bytes() for file in (here / "out").iterdir()}

    assert files() == files()


def test_mining_without_any_query_fails(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "targets.yaml").write_text("- {id: kit.Other, type: CLASS, docstring: Does something else altogether.}")
    assert main([*WORLD, "output=mined.jsonl"]) == 1
    out, err = capsys.readouterr()
    assert "error: no query was kept; see the reasons in mined.jsonl.rejected.jsonl" in err
    assert "evaluate it" not in out


def test_a_package_is_mined(here: Path) -> None:
    assert main(["mine", "source=package", "source.package=json", "output=json.jsonl"]) == 0
    assert {row["metadata"]["suite"] for row in read_rows(here / "json.jsonl")} == {"json"}  # type: ignore[index]  # rows of JSON
    assert "json.encoder.JSONEncoder" in Mined(path="json.jsonl").load().corpus.ids


def test_documents_may_be_a_package(here: Path) -> None:
    nothing_of_it = [*WORLD[:3], "source.targets=package:json", *KINDS, "output=mined.jsonl"]
    assert main(nothing_of_it) == 1
    summary = orjson.loads((here / "mined.jsonl.summary.json").read_bytes())
    assert summary["total"]["queries_kept"] == 0
    assert summary["total"]["verdicts"]["rejected"] == 6


def test_the_same_command_resumes_after_a_budget_ends(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeLLM(answer_from_gold) as server:
        model = ["llm=openai", "llm.model=m", f"llm.base_url={server.url}", "output=mined.jsonl"]
        assert main([*WORLD, *model, "llm.budget=first", "llm.max_calls=5"]) == 0
        assert "queries have missing answers. Run the same command to resume." in capsys.readouterr().err
        assert (here / "mined.jsonl.doubtful.jsonl").read_text().count("not checked") > 0
        assert main([*WORLD, *model, "llm.budget=second"]) == 0
        assert "language model: 9 calls" in capsys.readouterr().err
    assert len({each.question for each in server.asked}) == len(server.asked) == 2 + 3 * 4
    assert read_rows(here / "mined.jsonl.doubtful.jsonl") == []
    assert not (here / "mined.jsonl.journal.jsonl").exists()
    assert all("forward_check" in row["metadata"] for row in read_rows(here / "mined.jsonl"))  # type: ignore[operator]  # rows of JSON


def test_a_kill_costs_at_most_the_call_in_flight(here: Path) -> None:
    with FakeLLM(answer_from_gold, delay_s=0.05) as server:
        model = ["llm=openai", "llm.model=m", f"llm.base_url={server.url}", "llm.concurrency=1"]
        process = start_command([*WORLD, *model, "output=killed.jsonl"], here)
        while len(server.asked) < 4 and process.is_alive():
            time.sleep(0.01)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (here / "killed.jsonl").exists()
        assert main([*WORLD, *model, "output=killed.jsonl"]) == 0
        assert len(server.asked) <= 2 + 3 * 4 + 1
        assert main([*WORLD, *model, "output=whole.jsonl"]) == 0
    for end in ("", ".corpus.jsonl", ".spans.jsonl", ".doubtful.jsonl", ".rejected.jsonl", ".summary.json"):
        assert (here / f"killed.jsonl{end}").read_bytes() == (here / f"whole.jsonl{end}").read_bytes()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "output"),
        (["output="], "output=: should not be empty"),
        (["output=targets.yaml"], "output=targets.yaml: would change the input"),
        (["output=suites/api/benchmark.yaml"], "output=suites/api/benchmark.yaml: would change the input"),
        (["output=suites"], "output=suites: expected a file, found a folder"),
        (["output=targets.yaml/mined.jsonl"], "output=targets.yaml/mined.jsonl: cannot be written"),
        (["output=/proc/none/mined.jsonl"], "output=/proc/none/mined.jsonl: cannot be written"),
        (["output=o", "source.definitions=gone"], "source.definitions=gone: no such folder"),
        (["output=o", "source.definitions=suites/api"], "the folder contains no */benchmark.yaml"),
        (["output=o", "source.targets=gone.yaml"], "source.targets=gone.yaml: no such file"),
        (["output=o", "source.targets=package:gone"], "source.targets=package:gone: cannot be imported"),
        (["output=o", "source.suites=[gone]"], "source.suites=gone: no such suite; choose api"),
        (["output=o", "source.imports=gone"], "source.imports=gone: no such file"),
        (["output=o", "source.kinds.api.colour=red"], "source.kinds.api.colour: no such setting"),
        (["output=o", "mining.depth=0"], "mining.depth=0: should be greater than or equal to 1"),
        (["output=o", "mining.retriever=bm25"], "mining: retriever=bm25: expected a retriever"),
    ],
)
def test_a_mistake_is_an_error_of_one_line_before_any_work(
    here: Path, overrides: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {word.partition("=")[0].lstrip("+"): word for word in [*WORLD[1:], *overrides]}
    assert main(["mine", *given.values()]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset mined from real definitions, or skip."""
    folder = DATA / "mining"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set RETRIEVAL_DATA to a folder that has mining/")
    path = tmp_path_factory.mktemp("mined") / "mined.jsonl"
    files = (f"source.definitions={folder}/benchmark_definitions", f"source.targets={folder}/ranked_targets.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        assert main(["mine", "source=definitions", *files, f"output={path}"]) == 0
    return path


@pytest.fixture(scope="module")
def summary(real: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads(Path(f"{real}.summary.json").read_bytes())
    return loaded


def test_real_names_are_resolved_as_counted_by_hand(summary: dict[str, Any]) -> None:
    suite = summary["suites"]["api_understanding"]
    assert suite["golds"] == {"exact": 56, "alias": 10, "name": 18, "ambiguous": 0, "unresolved": 21}
    assert (suite["cases"], suite["queries_kept"]) == (41, 41)
    assert summary["suites"]["fix_errors"]["cases"] == 23
    assert (summary["targets"]["documents"], summary["targets"]["without_docstring"]) == (1697, 536)


def test_real_tasks_have_the_primary_gold_of_their_description(real: Path) -> None:
    primary = {row["id"]: row["positive_ctxs"][0]["fqn"].rpartition(".")[2] for row in read_rows(real)}  # type: ignore[index]  # rows of JSON
    about = {
        "04_sequential_agent": "SequentialAgent",
        "05_parallel_agent": "ParallelAgent",
        "06_loop_agent": "LoopAgent",
        "08_custom_agent": "BaseAgent",
        "12_app_with_plugin": "App",
        "13_code_executor": "BuiltInCodeExecutor",
        "14_agent_with_litellm_openai": "LiteLlm",
    }
    assert {case: primary[f"fix_errors:{case}"] for case in about} == about


def test_real_negatives_are_never_gold(real: Path) -> None:
    dataset = Mined(path=str(real)).load()
    assert len(dataset.queries) == 64
    for row in read_rows(real):
        gold = {context["fqn"] for context in row["positive_ctxs"]}  # type: ignore[attr-defined]  # rows of JSON
        negatives = {context["fqn"] for context in row["negative_ctxs"]}  # type: ignore[attr-defined]  # rows of JSON
        assert len(negatives) == 5
        assert not gold & negatives
