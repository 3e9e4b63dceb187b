"""Run commands on generated records in this process, and print what they did besides computing.

It is a program of its own because an audit hook cannot be removed:  python -m tests.hostile_records EXAMPLES

It works in the current folder, which should be empty, beside a folder `elsewhere`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import shutil
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import orjson
from starlette.testclient import TestClient
from starlette.types import ASGIApp

import runner.features.judge.command
import runner.features.look.command
from release.security import list_classes
from runner.__main__ import main
from runner.features.look.app import create_look_app
from runner.system.environment import describe_environment
from runner.web.guard import LoopbackAccess
from tests.features.look.stores import DATA, write_dataset
from tests.strategies.records import hostile_configs

STARTED = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
)
CONNECTED = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "ftplib.connect")
OWN_SERVER = ("127.0.0.1", 0)
"""The address that `look` resolves to listen there."""


class Watch:
    """The events of the interpreter that a record must not cause, while it is on."""

    def __init__(self) -> None:
        places = {Path.cwd(), Path(__file__).parent.parent, Path("/proc/self"), Path("/usr"), Path("/sys")}
        places |= {Path(sys.prefix), Path(sys.base_prefix), *map(Path, sysconfig.get_paths().values())}
        self.allowed = tuple({f"{place}/" for given in places for place in (given, given.resolve())})
        self.events: list[str] = []
        self.is_on = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event that starts a process, opens a connection, or opens a file elsewhere."""
        if not self.is_on:
            return
        if event.startswith((*STARTED, *CONNECTED)) and arguments[:2] != OWN_SERVER:
            self.events.append(f"{event} {str(arguments)[:200]}")
        elif event == "open" and isinstance(arguments[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith(self.allowed) and path not in ("/dev/null", "/dev/urandom"):
                self.events.append(f"open {path}")


def create_runs() -> list[str]:
    """Write a dataset, log three evaluations, write a table of the first; return the ids of the runs."""
    write_dataset(Path("data"))
    Path("link").symlink_to(Path.cwd().parent / "elsewhere")
    Path("folder").mkdir()
    Path("folder/corpus.jsonl").symlink_to(Path.cwd().parent / "elsewhere" / "secret.jsonl")
    for module in ("evil.py", "stranger/hubconf.py", "stranger/__init__.py"):
        Path(module).parent.mkdir(exist_ok=True)
        Path(module).write_text("open('PWNED', 'w')\ndef build(**_): return lambda query: []\n")
    write_rankings(Path("x.trec"))
    runs: list[str] = []
    for words in (
        ["retriever=bm25"],
        ["retriever=run", "retriever.path=x.trec"],
        ["retriever.k1=0.5", "retriever.b=0.5"],
    ):
        assert main([*DATA, *words]) == 0
        runs += [folder.name for folder in Path("mlruns/artifacts").glob("[!.]*") if folder.name not in runs]
    assert main(["table", f"sweeps={runs[0]}", "output=paper"]) == 0
    shutil.copytree(find_record(runs[0]).parent, "bad")
    return runs


def find_record(run: str) -> Path:
    """Return the record of a run."""
    return Path("mlruns/artifacts", run, "artifacts", "result.json")


def write_rankings(file: Path) -> None:
    """Write rankings with a document that the dataset lacks."""
    file.write_text("".join(f"q{i} Q0 STRANGE{i} 1 2.0 t\nq{i} Q0 d1 2 1.0 t\n" for i in range(2)))


def visit(app: ASGIApp, access: LoopbackAccess, run: str) -> ASGIApp:
    """Open the page of a run, the texts of a query and the desk; raises `RuntimeError` if there is no such page."""
    cookies = {access.cookie_name: access.token}
    client = TestClient(app, access.address, cookies=cookies, raise_server_exceptions=False)
    for page in (f"/show/{run}/", f"/show/{run}/texts?query=q0", f"/show/{run}/desk/"):
        if (status := client.get(page).status_code) in (403, 404):
            raise RuntimeError(f"{page}: {status}")
    return app


def iter_commands(runs: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands that read the records."""
    yield ["look", f"run={runs[1]}", "port=0"]
    yield ["judge", "by=hand", f"run={runs[1]}", "port=0", "assessor=a"]
    yield ["compare", "baseline=bad", f"candidate={runs[2]}", "output=compared"]
    yield ["explain", f"baseline={runs[0]}", f"candidate={runs[2]}"]
    yield ["reproduce", "paper@A1"]
    yield ["table", f"sweeps={runs[0]}", "output=paper2"]


def write_records(records: Mapping[Path, Mapping[str, Any]], config: object) -> None:
    """Write a config into the records that the commands read; one of them has other data."""
    for file, content in records.items():
        changed = {**content, "config": config, "environment": {**content["environment"], "code": {}}}
        if file.parent.name == "bad":
            changed["dataset"] = {**content["dataset"], "fingerprint": "0" * 32, "corpus_fingerprint": "1" * 32}
        file.write_bytes(orjson.dumps(changed))


def run_commands(examples: int) -> dict[str, object]:
    """Run the commands on so many records; return what happened, and how often each command ended in which way."""
    runs = create_runs()
    places = [
        find_record(runs[0]),
        find_record(runs[1]),
        Path("bad/result.json"),
        *Path("paper").glob("*/*/result.json"),
    ]
    records = {place: orjson.loads(place.read_bytes()) for place in places}
    config = records[places[0]]["config"]
    list_classes()
    importlib.import_module("torch")  # it asks ldconfig for libraries
    describe_environment()  # it runs git, once
    vars(runner.features.look.command)["create_look_app"] = lambda *given: visit(
        create_look_app(*given), given[-1], runs[1]
    )
    vars(runner.features.look.command)["serve"] = lambda *_: None
    vars(runner.features.judge.command)["judge_by_hand"] = lambda *_: None
    os.environ["HUSH"] = "s3cret"
    watch, ends = Watch(), Counter[str]()
    write_records(records, config)
    controls = {words[0]: run_command(watch, words) for words in iter_commands(runs)}
    sys.addaudithook(watch)  # now that libraries are loaded

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(hostile_configs(config))
    def attack(changed: Mapping[str, Any]) -> None:
        write_records(records, changed)
        ends.update(f"{words[0]} {run_command(watch, words)}" for words in iter_commands(runs))
        assert not watch.events, (changed, watch.events)
        assert not Path("PWNED").exists(), changed

    error = ""
    try:
        attack()
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    return {"events": watch.events, "error": error, "controls": controls, "ends": dict(sorted(ends.items()))}


def run_command(watch: Watch, words: Sequence[str]) -> str:
    """Run a command under watch, without its output; return how it ended."""
    watch.is_on = True
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return str(main(words))
    except Exception as error:
        return type(error).__name__
    finally:
        watch.is_on = False


if __name__ == "__main__":
    sys.stdout.write(orjson.dumps(run_commands(int(sys.argv[1]))).decode() + "\n")
