"""What a page shows: a sweep, an evaluation, or a comparison of several runs; and its name in an address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from runner.config.objects import ConfigError
from runner.results.lookup import find_best_run, find_run, find_sweep
from runner.tracking.fetching import Runs
from runner.tracking.logged import Run

MOST_COMPARED = 5
"""Most runs that a page compares: their rankings stand side by side."""


@dataclass(frozen=True)
class ShownRuns:
    """The runs of a page; the best combination of a sweep stands for it if there are several."""

    runs: tuple[Run, ...]

    @property
    def kind(self) -> Literal["sweep", "evaluation", "comparison"]:
        """Return which page shows them."""
        if len(self.runs) > 1:
            return "comparison"
        return "sweep" if self.runs[0].kind == "sweep" else "evaluation"

    @property
    def key(self) -> str:
        """Return the name in the address of the page: the ids of the runs."""
        return ",".join(run.id for run in self.runs)

    @property
    def title(self) -> str:
        """Return the names of the runs."""
        return " and ".join(run.name for run in self.runs)


def select_shown(words: Sequence[str], sweep: str | None, runs: Runs) -> ShownRuns:
    """Return what `run` and `sweep` name, without either the newest sweep or evaluation; raises `ConfigError`."""
    if words and sweep is not None:
        raise ConfigError(f"sweep={sweep}: cannot be combined with run={','.join(words)}; remove one of them")
    if sweep is not None:
        return ShownRuns((find_sweep(sweep, runs),))
    if words:
        return resolve_runs(words, runs)
    listed = list_shown(runs)
    if not listed:
        place = f"experiment {runs.tracking.experiment} of {runs.tracking.uri}"
        raise ConfigError(f"run: no run in {place}; evaluate first, or set tracking.experiment=NAME")
    return ShownRuns((listed[0],))


def resolve_runs(words: Sequence[str], runs: Runs) -> ShownRuns:
    """Return the runs that words name; raises `ConfigError` if they cannot be shown together."""
    chosen = [find_run(word, runs) for word in words]
    if len(chosen) > 1:
        chosen = [find_best_run(run, runs) if run.kind == "sweep" else run for run in chosen]
    if len(chosen) > MOST_COMPARED:
        raise ConfigError(f"run: at most {MOST_COMPARED} runs can be compared on a page, not {len(chosen)}")
    if len({run.id for run in chosen}) < len(chosen):
        raise ConfigError(f"run={','.join(words)}: names a run twice; remove one of them")
    for run in chosen:
        if run.kind not in ("sweep", "evaluation"):
            raise ConfigError(
                f"run={run.id}: is a {run.kind or 'run of another program'}, not a sweep or an evaluation"
            )
    return ShownRuns(tuple(chosen))


def list_shown(runs: Runs) -> list[Run]:
    """Return the sweeps, also those that are running, and the finished evaluations of the experiment, newest first."""
    return [run for run in runs.list_started() if run.kind == "sweep" or run.status == "FINISHED"]
