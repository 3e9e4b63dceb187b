"""The identities of combinations, sweeps and reports, by which commands reuse and continue earlier work.

A combination is identified by everything that affects its result: settings, data, code and libraries. A sweep is
identified by its name or, without one, by its axes and fixed settings; its commands share finished combinations. A
report is identified by the combinations of its parent run and by how these are selected and compared. Settings that
only affect where or how fast work is done do not count.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from retrievers.code import code_of
from retrievers.index_facts import describe_indexes, remember_facts
from retrievers.store import fingerprint
from runner.comparison.notes import list_some
from runner.config.values import VOLATILE
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.records import VERSION
from runner.pages import console
from runner.system.environment import describe_environment

SPENDING = frozenset({"llm.max_calls", "llm.max_cost", "llm.budget", "llm.price_in", "llm.price_out"})
"""Settings of the budget. They do not identify a sweep, so that it can resume with a larger budget."""


def identify_combinations(experiments: Sequence[Experiment], bench: Bench) -> dict[str, Experiment]:
    """Return experiments by identity; of duplicates, the first one."""
    distinct: dict[str, Experiment] = {}
    repeats: list[str] = []
    with remember_facts():
        experiments = [replace(one, index=describe_indexes(one.retriever)) for one in experiments]
    for experiment in experiments:
        identity = combination_id(experiment, bench.dataset(experiment))
        if identity in distinct:
            repeats.append(f"[{experiment.name}] repeats [{distinct[identity].name}]")
        distinct.setdefault(identity, experiment)
    for reading in filter(None, dict.fromkeys(bench.dataset(one).reading for one in distinct.values())):
        console.note(reading)
    if repeats:
        are = "is a duplicate and runs" if len(repeats) == 1 else "are duplicates and run"
        console.note(f"{len(repeats):,} of {len(experiments):,} combinations {are} only once: {list_some(repeats, 3)}")
    return distinct


def combination_id(experiment: Experiment, dataset: Dataset) -> str:
    """Return the identity of a combination, 32 hexadecimal digits.

    An external index is identified by what it reported about itself, so that a changed index gives another identity.
    Settings are identified by the repr of their objects, so that two spellings of the same settings are one
    combination. The repr leaves out settings that cannot change a result, such as a device or a batch size.
    """
    settings = [repr(experiment.retriever), repr(experiment.metrics), repr(experiment.statistics)]
    if dataset.whole is not None:
        settings.append(dataset.corpus.fingerprint)  # the chunks of the documents
    if dataset.judgments.select(experiment.search_type) is not dataset.judgments:
        settings.append(experiment.search_type)
    code = sorted(code_of(Bench.__module__, experiment.retriever, experiment.metrics).values())
    if experiment.index:
        settings.append(json.dumps(dict(experiment.index), sort_keys=True))
    if experiment.features:
        settings.append(json.dumps(experiment.features, sort_keys=True))
    if experiment.grading is not None:
        settings.append(experiment.grading.identity(dataset.queries))
    return fingerprint("combination", *settings, dataset.fingerprint, dataset.split, _versions(), *code)


def sweep_id(name: str, arguments: Iterable[str]) -> str:
    """Return the identity of a sweep from its name and its fixed overrides, in any order."""
    keys = {argument: argument.lstrip("+~").partition("=")[0] for argument in arguments}
    fixed = [a for a, key in keys.items() if key not in SPENDING and key.partition(".")[0] not in VOLATILE]
    return fingerprint("sweep", name, *sorted(fixed))


def report_id(experiments: Iterable[Experiment], choice: Mapping[str, object]) -> str:
    """Return the identity of the report of a parent run.

    It depends on the settings of the experiments, including those of the statistics, and on `choice`: all other
    settings by name, as for JSON, that affect which combinations exist and which one wins, such as the split or the
    sampler of a search.
    """
    settings = {
        json.dumps(sorted((key, value) for key, value in e.parameters.items() if key not in SPENDING))
        for e in experiments
    }
    return fingerprint("report", json.dumps(choice, sort_keys=True), *sorted(settings))


@cache
def _versions() -> str:
    env = describe_environment()
    return json.dumps([VERSION, env["python"], env["packages"], sqlite3.sqlite_version], sort_keys=True)
