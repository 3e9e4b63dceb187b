"""Find a result by the name that a user gives: the start of an MLflow run's id, a record, a report, or a baseline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.config.objects import ConfigError, suggestion
from runner.evaluation.records import is_record, load_record
from runner.evaluation.result import Result
from runner.results.golden_reports import is_report, read_report, report_content
from runner.results.needle_results import describe_unknown
from runner.tracking.fetching import Runs, format_runs
from runner.tracking.logged import Run
from runner.tracking.record import LONGEST_NAME
from runner.tracking.settings import Tracking

LATEST = "latest"
"""The name of the latest finished run of the experiment."""

BASELINE = "baseline:"
"""The prefix of the name of a baseline."""

RUN_ID = re.compile("[0-9a-f]{4,32}")
"""An MLflow run's id, or its first characters (at least 4)."""


@dataclass(frozen=True)
class Named:
    """A result and its source: "run 0123abcd", "baseline main" or a file.

    `remark` tells a user which result was chosen, if the name did not identify it.
    """

    result: Result
    source: str
    remark: str = ""


def find_run_id(source: str) -> str:
    """Return the id of the run that a source of `Named` names, "" for another source or a re-evaluation."""
    match = re.fullmatch(r"run ([0-9a-f]{32})(, the best of sweep \w+)?", source)
    return match[1] if match else ""


def results_called(word: str, tracking: Tracking, baselines: Path) -> list[Named]:
    """Return the results that a word names; raises `ConfigError`.

    A report of several search types has several results; `FILE@TYPE` names one of them.
    """
    if word == LATEST:
        return [_load_latest(Runs(tracking))]
    if word.startswith(BASELINE):
        return [_baseline(word.removeprefix(BASELINE), baselines)]
    path, search_type = Path(word), ""
    if not path.exists() and "@" in word:
        file, _, search_type = word.rpartition("@")
        path = Path(file)
    if path.exists():
        return _of_file(path, search_type)
    if RUN_ID.fullmatch(word.lower()):
        return [_of_run(word.lower(), Runs(tracking))]
    raise ConfigError(
        f"{word}: no such file; name a file, an MLflow run id (at least its first 4 characters), {LATEST} or "
        f"{BASELINE}NAME"
    )


def choose_only(key: str, words: Sequence[str], named: Sequence[Named]) -> Named:
    """Return the only result that the words of a setting name; raises `ConfigError` for several."""
    if len(named) > 1:
        choices = ", ".join(f"{key}={one.source}" for one in named)
        raise ConfigError(f"{key}={','.join(words)}: matches several results; choose one: {choices}")
    return named[0]


def find_run(word: str, runs: Runs) -> Run:
    """Return the run that a word names; raises `ConfigError`.

    The word is the start of a run's id, the name of a sweep (the newest one), or `latest`, for the latest finished run.
    """
    if word == LATEST:
        finished, _ = _find_latest(runs)
        return finished
    if RUN_ID.fullmatch(word.lower()) and (matches := runs.like(word.lower())):
        return _select_run(word, matches)
    return find_sweep(word, runs)


def find_sweep(name: str, runs: Runs) -> Run:
    """Return the newest sweep with a name; raises `ConfigError`."""
    sweeps = [run for run in runs.list_started() if run.kind == "sweep"]
    if named := [run for run in sweeps if run.name == name[:LONGEST_NAME]]:
        return named[0]
    names = list(dict.fromkeys(run.name for run in sweeps))
    hint = f"; {suggestion(name, names[:20])}" if names else ""
    raise ConfigError(
        f"{name}: no run id starts with this (at least 4 characters), and no sweep has this name, in experiment "
        f"{runs.tracking.experiment} of {runs.tracking.uri}{hint}"
    )


def results_of_run(word: str, tracking: Tracking) -> tuple[str, list[Result]]:
    """Return the full id of a run and its results: those of a sweep's combinations, or that of a single evaluation.

    The word is as for `find_run`. Raises `ConfigError`.
    """
    runs = Runs(tracking)
    run = find_run(word, runs)
    if run.kind != "sweep":
        return run.id, [runs.record(run)]
    return run.id, [runs.record(combination) for combination in list_combinations(run, runs)]


def list_results(word: str, tracking: Tracking, baselines: Path) -> list[Result]:
    """Return all results that a word names: those of a sweep, of a folder of records, or a single one.

    Raises `ConfigError`.
    """
    path = Path(word)
    if path.is_dir() and not (path / "result.json").exists() and (records := sorted(path.glob("*/result.json"))):
        return [load_record(record) for record in records]
    if (word == LATEST or RUN_ID.fullmatch(word.lower())) and not path.exists():
        return results_of_run(word, tracking)[1]
    return [named.result for named in results_called(word, tracking, baselines)]


def baseline_names(baselines: Path) -> list[str]:
    """Return the names of the baselines in a folder."""
    return sorted(file.parent.name for file in baselines.glob("*/result.json"))


def _baseline(name: str, baselines: Path) -> Named:
    names = baseline_names(baselines)
    if name not in names:
        way_out = suggestion(name, names) if names else "create one: python -m runner promote run=RUN name=NAME"
        raise ConfigError(f"{BASELINE}{name}: no such baseline in {baselines}; {way_out}")
    return Named(load_record(baselines / name), f"baseline {name}")


def _of_file(path: Path, search_type: str) -> list[Named]:
    content = None if path.is_dir() else _json(path)
    if not is_report(content):
        if content is not None and not is_record(content):
            raise ConfigError(f"{path}: {describe_unknown(content)}")
        if search_type:
            raise ConfigError(
                f"{path}@{search_type}: a search type can be chosen only in a report with several search types; remove "
                f"@{search_type}"
            )
        return [Named(load_record(path), str(path))]
    results = {result.retriever: result for result in read_report(path)}
    if search_type and search_type not in results:
        raise ConfigError(f"{path}@{search_type}: no such search type; {suggestion(search_type, results)}")
    return [
        Named(result, f"{path}@{name}" if len(results) > 1 else str(path))
        for name, result in results.items()
        if search_type in ("", name)
    ]


def _json(path: Path) -> object:
    try:
        return report_content(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: expected a record or a report ({error})") from None


def _of_run(beginning: str, runs: Runs) -> Named:
    return _load_run(_the_run(beginning, runs), runs)


def _load_latest(runs: Runs) -> Named:
    """Return the latest finished run; its remark names the run, and any later run that is not finished."""
    finished, last = _find_latest(runs)
    named = _load_run(finished, runs)
    remark = f"{LATEST}: {named.source} ({named.result.name})"
    if last is not finished:
        remark += f"; the later run {last.id} ({last.name}) is {last.status}"
    return replace(named, remark=remark)


def _find_latest(runs: Runs) -> tuple[Run, Run]:
    """Return the latest finished run, and the latest run that has ended, which may be the same; both top-level."""
    ended = runs.list_ended()
    finished = next((run for run in ended if run.status == "FINISHED"), None)
    if finished is None:
        place = f"experiment {runs.tracking.experiment} of {runs.tracking.uri}"
        if ended:
            raise ConfigError(
                f"{LATEST}: no finished run in {place}; the newest one, {ended[0].id[:8]} ({ended[0].name}), is "
                f"{ended[0].status}: name it to take what it has"
            )
        raise ConfigError(f"{LATEST}: no finished run in {place}; evaluate first, or set tracking.experiment=NAME")
    return finished, ended[0]


def _load_run(run: Run, runs: Runs) -> Named:
    if run.kind == "sweep":
        best = find_best_run(run, runs)
        return Named(runs.record(best), f"run {best.id}, the best of sweep {run.id}")
    return Named(runs.record(run), f"run {run.id}")


def _the_run(beginning: str, runs: Runs) -> Run:
    """Return the only run whose id starts with `beginning`: a sweep, or a finished evaluation."""
    matches = runs.like(beginning)
    if not matches:
        raise ConfigError(
            f"{beginning}: no such file, and no run in {runs.tracking.uri} has an id that starts with this"
        )
    return _select_run(beginning, matches)


def _select_run(beginning: str, matches: Sequence[Run]) -> Run:
    """Return the only run of some; raises `ConfigError` if there are several, or if it has no result."""
    if len(matches) > 1:
        raise ConfigError(
            f"{beginning}: {len(matches)} runs have ids that start with this; choose one: {format_runs(matches)}"
        )
    (run,) = matches
    if run.kind != "sweep" and run.status != "FINISHED":
        raise ConfigError(f"{beginning}: run {run.id} ({run.name}) is {run.status} and has no result")
    return run


def list_combinations(sweep: Run, runs: Runs) -> list[Run]:
    """Return the finished combinations of a sweep; raises `ConfigError` if there are none."""
    finished = runs.of_sweep(sweep)
    if not finished:
        raise ConfigError(f"{sweep.id}: no combination of the sweep {sweep.name} is finished")
    return finished


def find_best_run(sweep: Run, runs: Runs) -> Run:
    """Return the best combination of a sweep; raises `ConfigError` if it is not recorded."""
    combinations = list_combinations(sweep, runs)
    best = [run for run in combinations if run.id == sweep.best_run] or [
        run for run in combinations if sweep.best and run.name == sweep.best[:LONGEST_NAME]
    ]
    if len(best) == 1:
        return best[0]
    raise ConfigError(
        f"{sweep.id}: the best combination of the sweep {sweep.name} is not recorded; choose one: "
        f"{format_runs(combinations)}"
    )


def as_typed(value: object, key: str, overrides: Sequence[str]) -> list[str]:
    """Return the values of a setting as they were typed; raises `ConfigError` if there are none.

    Hydra parses a run's id such as 12e4567 as a number, so the original text is read from the overrides.
    """
    words = list(value) if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(word, str) for word in words):
        typed = [line.partition("=")[2] for line in overrides if line.lstrip("+").partition("=")[0] == key]
        words = re.split(r"\s*,\s*", typed[-1].strip("[] ")) if typed else []
    texts = [str(word).strip("'\"") for word in words]
    if not texts or not all(texts) or "???" in texts or texts == ["null"]:
        raise ConfigError(f"{key}: is required; set {key}={'NAME' if key == 'name' else 'RUN'}")
    return texts
