"""With `--json`, each command prints one JSON document with the documented keys, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from runner.__main__ import main
from runner.commands import list_commands
from runner.evaluation.records import save_record
from runner.pages.console import silence
from runner.testing.features import check_document
from runner.tracking.settings import Tracking
from tests.documentation import DIR, write
from tests.fake_llm import FakeLLM
from tests.features.mine.test_command import WORLD
from tests.features.mine.worlds import write_world
from tests.features.traces.recorded import world
from tests.pages.factory import result

BEIR = ("dataset=beir", "dataset.path=DIR", "statistics.permutations=100")
CHEAP = ("~retriever@retrievers.dense", "~retriever@retrievers.hybrid")
JUDGE = ("llm=openai", "llm.model=m", "judging.backoff_s=0", "judging.depth=3", "output=judged")
SYNTHESIZE = ("count=20", "encoder.dimensions=32", "tracking.background=false", "output=queries.jsonl")

COMMANDS: dict[str, Sequence[str]] = {
    "evaluate": BEIR,
    "evaluate, for a sweep": ("evaluate", "-m", *BEIR, "retriever.k1=0.9,1.2"),
    "plan": (*BEIR, "retriever.k1=0.9,1.2"),
    "audit": ("n=35", "value=0.418", "baseline=0.479"),
    "compare": ("baseline=good", "candidate=good", "statistics.permutations=100", "output=out"),
    "explain": ("baseline=good", "candidate=good", "statistics.permutations=100"),
    "promote": ("run=good", "name=main"),
    "table": ("sweeps=good", "output=paper", "statistics.permutations=100"),
    "reproduce": ("paper@A1",),
    "inspect": (*BEIR[:2], "output=inspection", *CHEAP),
    "export": (*BEIR[:2], "format=jsonl", "output=exported"),
    "cache": (),
    "relocate": (),
    "new": ("project_of_mine",),
    "mine": (*WORLD[1:], "output=out/mined.jsonl"),
    "synthesize": SYNTHESIZE,
    "traces": ("path=runs", "tasks=tasks", "output=traced", "workers=1", "log=false"),
    "judge": JUDGE,
}


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a dataset, a record, benchmark definitions, traces and texts."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, DIR)
    save_record(result("good"), tmp_path / "good")
    return tmp_path


SERVERS = [name for name, command in list_commands().items() if command.serves]


def test_a_command_declares_a_document_unless_it_serves() -> None:
    assert {name for name, command in list_commands().items() if not command.documents} == set(SERVERS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_one_document_with_the_documented_keys(
    name: str, here: Path, tracking: Tracking, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, _, case = name.partition(", ")
    words = [word for word in COMMANDS[name] if word != "evaluate"]
    if verb == "judge":
        assert main([*BEIR, "--json"]) == 0
        run = orjson.loads(capsys.readouterr().out)["run"]
        with FakeLLM() as server:
            check_document("judge", f"run={run}", *words, f"llm.base_url={server.url}")
    else:
        prepare(verb, here)
        check_document(verb, *words, case=case)


def test_the_document_of_any_other_command_is_checked_by_its_own_tests() -> None:
    others = list_commands().keys() - {name.partition(",")[0] for name in COMMANDS} - set(SERVERS)
    own = {name: (Path(__file__).parent / "features" / name).glob("test_*.py") for name in others}
    checked = {name for name, files in own.items() for file in files if f'check_document("{name}"' in file.read_text()}
    assert others == checked


def prepare(verb: str, here: Path) -> None:
    """Write what a command reads."""
    if verb == "mine":
        write_world(here)
    if verb == "traces":
        world(here)
    if verb == "reproduce":
        with silence():
            assert main([*BEIR]) == main(["table", "sweeps=latest", "output=paper"]) == 0


def test_an_error_is_a_document_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "baseline=good", "candidate=gone", "--json"]) == 2
    out, err = capsys.readouterr()
    assert orjson.loads(out) == {"error": err.strip().removeprefix("error: ")}


@pytest.mark.parametrize("verb", SERVERS)
def test_a_command_that_reports_nothing_refuses_the_flag(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--json"]) == 2
    assert f"--json: not supported by {verb}, which runs until it is stopped" in capsys.readouterr().err


def test_the_result_is_that_of_the_record(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BEIR, "--json"]) == 0
    document = orjson.loads(capsys.readouterr().out)
    record = orjson.loads((Path(document["report"]).parent / "result.json").read_bytes())
    assert document["result"] == record
