"""The CI jobs that `runner new` writes are valid, quote what users set, and run the gate."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.__main__ import main
from runner.commands.new import BASELINE
from runner.evaluation.records import save_record
from runner.tracking.settings import Tracking
from tests.documentation import DIR, blocks, chapters, page, write
from tests.pages.factory import result

INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
SETTINGS = ("retriever=bm25", "dataset=beir", "dataset.path=DIR", "statistics.permutations=100")
STUB = '#!/bin/sh\nfor word in "$@"; do printf "%s\\037" "$word"; done >> "$CALLS"\nprintf "\\n" >> "$CALLS"\n'


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a dataset, the jobs, and a `python` that only notes its arguments."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, DIR)
    assert main(["new", "action", "template=github_action"]) == 0
    assert main(["new", "ci", "template=gitlab"]) == 0
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(STUB)
    (tmp_path / "bin" / "python").chmod(0o755)
    return tmp_path


def read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def run_script(here: Path, script: str, shell: str, variables: dict[str, str]) -> list[list[str]]:
    """Run a script and return the arguments of each call of python."""
    calls = here / "calls"
    calls.unlink(missing_ok=True)
    path = f"{here / 'bin'}:{os.environ['PATH']}"
    subprocess.run(
        [shell, "-e", "-c", script], cwd=here, env={**variables, "PATH": path, "CALLS": str(calls)}, check=True
    )
    return [line.split("\x1f")[:-1] for line in calls.read_text().splitlines()]


def run_program(call: list[str]) -> int:
    assert call[:2] == ["-m", "runner"]
    return main(call[2:])


def test_a_gate_that_can_never_fail_is_announced_when_its_job_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for size, announced in ((5, True), (30, False)):
        shutil.rmtree(BASELINE, ignore_errors=True)
        save_record(result(queries=size, types=()), BASELINE)
        assert main(["new", f"ci{size}", "template=gitlab"]) == 0
        err = capsys.readouterr().err
        warning = (
            "baselines/main: warning: with 5 queries, no drop can be significant (at least 6 are needed), so a gate"
        )
        assert (warning in err) == announced


def steps(action: dict[str, Any], **inputs: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the script and the variables of each step that runs one, given the inputs."""
    values = {name: of.get("default", "") for name, of in action["inputs"].items()} | inputs
    for step in action["runs"]["steps"]:
        if "run" in step:
            variables = {name: INPUT.sub(lambda m: values[m[1]], text) for name, text in step.get("env", {}).items()}
            yield step["run"], variables


def test_the_action_has_what_github_requires(here: Path) -> None:
    text = (here / "action" / "action.yml").read_text()
    action = yaml.safe_load(text)
    assert action["name"]
    assert action["description"]
    assert action["runs"]["using"] == "composite"
    assert all(of["description"] for of in action["inputs"].values())
    assert set(INPUT.findall(text)) == set(action["inputs"])
    for step in action["runs"]["steps"]:
        assert ("run" in step) != ("uses" in step)
        assert "run" not in step or step["shell"] == "bash"
        assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
        assert "${{" not in step.get("run", ""), "an input in a script is code"


def test_the_job_has_what_gitlab_requires(here: Path) -> None:
    ((name, job),) = read(here / "ci" / "retrieval-gate.yml").items()
    assert name == ".retrieval-gate"
    assert job["artifacts"]["reports"]["junit"] == "retrieval-report/junit.xml"
    assert all(isinstance(line, str) for line in job["script"])
    used = set(re.findall(r"\$(\w+)|\$\{(\w+)\}", "\n".join(job["script"])))
    assert {one or other for one, other in used} == set(job["variables"])


def test_the_steps_of_the_action_install_evaluate_and_compare(here: Path) -> None:
    assert main([*SETTINGS]) == 0
    assert main(["promote", "run=latest", "name=main"]) == 0
    action = read(here / "action" / "action.yml")
    inputs = {
        "install": "retrieval-runner @ git+https://a.b/c\nyour-package\n",
        "evaluate": "\n".join(SETTINGS) + "\n",
        "compare": "statistics.permutations=100\n",
    }
    install, evaluate, compare = [run_script(here, script, "bash", v) for script, v in steps(action, **inputs)]
    assert install == [
        ["-m", "pip", "install", "--quiet", "--no-compile", "retrieval-runner @ git+https://a.b/c", "your-package"]
    ]
    (call,) = evaluate
    assert call[2:] == [*SETTINGS, "tracking.experiment=ci"]
    assert run_program(call) == 0
    (call,) = compare
    assert run_program(call) == 0
    assert (here / "retrieval-report" / "junit.xml").is_file()
    assert (here / "retrieval-report" / "comparison.html").is_file()


def test_jobs_name_no_package_of_an_index(here: Path) -> None:
    assert read(here / "action" / "action.yml")["inputs"]["install"].keys() == {"description", "required"}
    (job,) = read(here / "ci" / "retrieval-gate.yml").values()
    with pytest.raises(subprocess.CalledProcessError, match="exit status 2"):
        run_script(here, "\n".join(job["script"]), "sh", job["variables"])


def test_an_input_is_never_run_as_code(here: Path) -> None:
    action = read(here / "action" / "action.yml")
    hostile = "a=$(touch pwned)\nb=`touch pwned`; touch pwned\nc='d e'"
    scripts = list(steps(action, evaluate=hostile, compare=hostile, baseline=hostile, install=hostile))
    calls = [run_script(here, script, "bash", variables) for script, variables in scripts]
    assert not (here / "pwned").exists()
    assert "c='d e'" in calls[1][0]


def test_the_job_of_gitlab_evaluates_and_compares(here: Path) -> None:
    (job,) = read(here / "ci" / "retrieval-gate.yml").values()
    variables = {**job["variables"], "RETRIEVAL_EVALUATE": " ".join(SETTINGS), "RETRIEVAL_INSTALL": "x.whl y.whl"}
    install, evaluate, compare = run_script(here, "\n".join(job["script"]), "sh", variables)
    assert install[-2:] == ["x.whl", "y.whl"]
    assert run_program(evaluate) == 0
    assert main(["promote", "run=latest", "name=main", "tracking.experiment=ci"]) == 0
    assert run_program(evaluate) == 0
    assert run_program(compare) == 0
    assert (here / "retrieval-report" / "junit.xml").is_file()


def test_the_documented_workflow_uses_the_inputs_of_the_action(here: Path) -> None:
    (workflow,) = map(
        yaml.safe_load, blocks(chapters(page("docs/ci.md"))["A repository with a RAG application"], "yaml")
    )
    (step,) = [step for step in workflow["jobs"]["gate"]["steps"] if "with" in step]
    assert step["uses"] == "./.github/actions/retrieval-gate"
    inputs = read(here / "action" / "action.yml")["inputs"]
    assert set(step["with"]) <= set(inputs)
    assert all("=" in line for name in ("evaluate", "compare") for line in step["with"][name].splitlines())
