"""Files for other machines are well formed: the CI workflow and the Dockerfile."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
INSTRUCTIONS = re.compile(r"^(FROM|WORKDIR|RUN|COPY|ENV|ENTRYPOINT|USER)\b")


def read_instructions() -> list[str]:
    """Return the instructions of the Dockerfile, each on one line."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_workflow_runs_what_ci_runs_here_on_three_systems() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["run"]
    systems = {entry["os"].partition("-")[0] for entry in job["strategy"]["matrix"]["include"]}
    assert systems == {"ubuntu", "macos", "windows"}
    (command,) = (step["run"] for step in job["steps"] if "run" in step)
    assert os.access(ROOT / command, os.X_OK)


def test_the_dockerfile_has_known_instructions_only() -> None:
    assert [line for line in read_instructions() if not INSTRUCTIONS.match(line)] == []


@pytest.mark.parametrize("target", ["slim", "full"])
def test_an_image_runs_the_program_as_a_user_of_its_own(target: str) -> None:
    lines = read_instructions()
    start = next(i for i, line in enumerate(lines) if line.endswith(f" AS {target}"))
    stage = lines[start + 1 :]
    end = next((i for i, line in enumerate(stage) if line.startswith("FROM")), len(stage))
    assert stage[end - 1] == "USER runner"
    assert lines[start].split()[1] == "base"
    assert 'ENTRYPOINT ["runner"]' in lines


def test_stages_are_declared_before_they_are_used() -> None:
    known: set[str] = set()
    for line in read_instructions():
        if line.startswith("FROM"):
            _, image, _, name = line.split()
            assert image in known or ":" in image
            known.add(name)
        for source in re.findall(r"--from=(\S+)", line):
            assert source in known
