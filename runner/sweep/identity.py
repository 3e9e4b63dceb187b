"""What makes a combination the same one again, and a sweep.

A combination is what decides its result: settings, data, code and libraries. A sweep is what its user calls by one
name; without a name it is what varies and what is held fixed: its commands share their finished combinations. A report
is what one such command reports in its parent run: which combinations, chosen and compared how. Where and how fast work
is done is part of none.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from retrievers.code import code_of, hash_code, modules_behind
from retrievers.store import fingerprint
from runner.config.values import VOLATILE
from runner.datasets.base import Dataset
from runner.environment import describe_environment
from runner.experiment import Experiment
from runner.records import VERSION

SPENDING = frozenset({"llm.max_calls", "llm.max_cost", "llm.budget", "llm.price_in", "llm.price_out"})
"""What says how far a sweep may go with a language model, not what it is: a greater budget goes on with it."""


def combination_id(experiment: Experiment, dataset: Dataset) -> str:
    """Return the identity of a combination, as 32 hexadecimal digits.

    Its settings are the objects that its config describes, whose repr leaves out what changes no result (a device, a
    batch size), so that two ways to write one thing are one combination.
    """
    measured = replace(experiment.metrics, alpha=0.5, permutations=1)  # which compare results, and make none
    settings = [repr(experiment.retriever), repr(measured)]
    if dataset.whole is not None:
        settings.append(dataset.corpus.fingerprint)  # which chunks they are cut into
    if dataset.judgments_for(experiment.search_type) is not dataset.judgments:
        settings.append(experiment.search_type)
    code = sorted({*code_of(experiment.retriever), *code_of(experiment.metrics), *_evaluating()})
    if experiment.grading is not None:
        settings.append(experiment.grading.identity(dataset.queries))
    return fingerprint(
        "combination", *settings, dataset.fingerprint, dataset.split, _versions(), *(hash_code(m) for m in code)
    )


def sweep_id(name: str, arguments: Iterable[str]) -> str:
    """Return the identity of a sweep from its name and the overrides that all of it has, in any order."""
    keys = {argument: argument.lstrip("+~").partition("=")[0] for argument in arguments}
    fixed = [a for a, key in keys.items() if key not in SPENDING and key.partition(".")[0] not in VOLATILE]
    return fingerprint("sweep", name, *sorted(fixed))


def report_id(experiments: Iterable[Experiment], *choice: str) -> str:
    """Return the identity of what a parent run reports: its combinations, statistics, and how the winner is chosen.

    The settings of an experiment include those of the statistics. `choice` is everything else that decides which
    combinations there are and which of them wins: the split, the folds, a search's sampler.
    """
    settings = {
        json.dumps(sorted((key, value) for key, value in e.parameters.items() if key not in SPENDING))
        for e in experiments
    }
    return fingerprint("report", *choice, *sorted(settings))


@cache
def _evaluating() -> frozenset[str]:
    """Return the modules of this program that turn rankings into results."""
    own = frozenset(
        {"runner.evaluation", "runner.measuring", "runner.analysis.significance", "runner.analysis.clusters"}
    )
    return own | modules_behind("runner.metrics.scores") | modules_behind("runner.metrics.abstention")


@cache
def _versions() -> str:
    env = describe_environment()
    return json.dumps([VERSION, env["python"], env["packages"], sqlite3.sqlite_version], sort_keys=True)
