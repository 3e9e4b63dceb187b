"""The case of a new machine: the steps of the CI template, from a bare Python to the verdict of a gate."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.cases import DATA, RUNNER, folder_of_runs
from benchmarks.measure import Figure, spend
from release.check import build, create_environment

ACTION = Path(__file__).parents[1] / "runner" / "templates" / "github_action" / "action.yml"

INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")

LIMIT_S = 60.0


def first_gate() -> list[Figure]:
    """Install the wheel, evaluate BM25 on scifact and compare with a baseline, as the GitHub action does."""
    settings = ("retriever=bm25", "dataset=beir", f"dataset.path={DATA / 'scifact'}")
    with folder_of_runs() as folder:
        _, wheel = build(folder / "dist")
        main = folder / "main"
        main.mkdir()
        spend([*RUNNER, *settings, "tracking.experiment=ci"], main)
        spend([*RUNNER, "promote", "run=latest", "name=main", "tracking.experiment=ci"], main)
        inputs = {"evaluate": "\n".join(settings), "install": str(wheel)}
        seconds = [_run_job(folder / f"job{n}", main / "baselines", inputs) for n in range(2)]
    return [Figure("from a bare Python to a BM25 gate, scifact, pip's cache filled", "s", seconds[1], LIMIT_S, 1)]


def _run_job(job: Path, baselines: Path, inputs: dict[str, str]) -> float:
    """Return the seconds of a job in a new environment; the first one fills pip's cache."""
    shutil.copytree(baselines, job / "baselines")
    start = time.perf_counter()
    commands = Path(create_environment(job / "environment")).parent
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    for script, variables in _iter_scripts(inputs):
        spend(["bash", "-e", "-c", script], job, **variables, PATH=path)
    return time.perf_counter() - start


def _iter_scripts(given: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the script and the variables of each step of the action that runs a script."""
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    inputs = {name: what.get("default", "") for name, what in action["inputs"].items()} | given
    for step in action["runs"]["steps"]:
        if "run" in step:
            values = {name: INPUT.sub(lambda found: inputs[found[1]], text) for name, text in step["env"].items()}
            yield step["run"], values


FIRST_GATE = (first_gate,)
