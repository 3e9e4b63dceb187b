"""The figures of a task in one configuration, each a value: its names, unit, direction and definition.

Records, tables, the explorer, MLflow and the documentation take what they show of a figure from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from runner.features.traces.measures.stages import AT_CUTOFFS
from runner.features.traces.measures.taxonomy import LABELS

PRIMARY = "file_recall"
"""The figure by which tasks are ordered: the share of the gold that was found."""

Stage = Literal["files", "sizes", "chunks", "probes", "errors", "outcome"]
"""The part of an artifact that has a figure; sizes and measures of files are in the same part."""

Unit = Literal["share", "files", "tokens", "seconds", "dollars", "reward"]
"""What a figure counts, which decides how it is formatted; a reward is on the scale of its verifier."""

Better = Literal["larger", "smaller", "neither"]


@dataclass(frozen=True)
class TaskFigure:
    """A number of a task.

    `name` is its key in records and `title` its name in tables; `better` says which values are. The mean of a figure
    that `is_logged` is a metric in MLflow; the others are logged there under the names of retrievers' measures, or
    describe only the task.
    """

    name: str
    title: str
    definition: str
    stage: Stage
    unit: Unit = "share"
    better: Better = "larger"
    is_logged: bool = True

    @property
    def is_cost(self) -> bool:
        """Return whether it says what a result took: time, tokens or money."""
        return self.better == "smaller" and self.unit != "files"

    @property
    def mlflow(self) -> str:
        """Return the name of its mean in MLflow."""
        return f"agent/{self.name}"


_BEFORE_CUTOFFS = (
    TaskFigure("mrr", "MRR", "Reciprocal rank of the first gold file", "files", is_logged=False),
    TaskFigure(
        "map_score",
        "MAP",
        "Average precision of the files, in the order in which they were first seen",
        "files",
        is_logged=False,
    ),
    TaskFigure("file_recall", "recall", "Share of the gold files that were found", "files"),
    TaskFigure("context_efficiency", "efficiency", "Share of the retrieved files that are gold", "files"),
)
_AFTER_CUTOFFS = (
    TaskFigure(
        "ttfr_seconds", "first gold", "Time until the first gold file was seen", "files", "seconds", better="smaller"
    ),
    TaskFigure(
        "ttfr_tokens", "tokens to first gold", "Tokens until the first gold file was seen", "files", "tokens",
        better="smaller",
    ),
    TaskFigure("n_retrieved", "n retrieved", "Retrieved files", "sizes", "files", "neither"),
    TaskFigure("n_ground_truth", "n ground truth", "Gold files", "sizes", "files", "neither", is_logged=False),
    TaskFigure("n_overlap", "n overlap", "Gold files that were found", "sizes", "files", is_logged=False),
    TaskFigure("chunk_recall", "chunk recall", "Share of the gold line ranges whose file was seen", "chunks"),
    TaskFigure("line_recall", "line recall", "Share of the gold lines that were read", "chunks"),
    TaskFigure(
        "util_read_overlap_with_relevant_files", "read overlap with relevant files",
        "Share of the gold files that were read", "probes",
    ),
    TaskFigure(
        "util_write_overlap_with_relevant_files_proxy", "write overlap with relevant files proxy",
        "Share of the gold files that were written", "probes",
    ),
    TaskFigure(
        "util_write_overlap_with_expected_edit_files", "write overlap with expected edit files",
        "Share of the files with expected edits that were written", "probes",
    ),
    TaskFigure(
        "util_read_before_write_ratio", "read before write ratio",
        "Share of the written files that were read before", "probes",
    ),
    *(
        TaskFigure(label, label.replace("_", " "), counts, "errors", "files", "smaller")
        for label, counts in LABELS.items()
    ),
    TaskFigure("reward", "reward", "Reward of the verifier", "outcome", "reward"),
    TaskFigure("cost", "cost, $", "Cost in dollars", "outcome", "dollars", better="smaller"),
    TaskFigure("seconds", "time", "Duration of the task", "outcome", "seconds", better="smaller"),
    TaskFigure("tokens", "tokens", "Tokens of the task", "outcome", "tokens", better="smaller"),
)  # fmt: skip

_SYMBOLS: Mapping[str, str] = {name: symbol for name, symbol in AT_CUTOFFS.items()}


def list_task_figures(cutoffs: Sequence[int] = ()) -> tuple[TaskFigure, ...]:
    """Return every figure, with ranking measures at these cutoffs, in the order of records and tables."""
    at_cutoffs = (f"{measure}@{k}" for k in cutoffs for measure in AT_CUTOFFS)
    return (*_BEFORE_CUTOFFS, *map(find_figure, at_cutoffs), *_AFTER_CUTOFFS)


def list_names(*stages: Stage) -> tuple[str, ...]:
    """Return the names of the figures of some stages, without those at cutoffs."""
    return tuple(figure.name for figure in list_task_figures() if figure.stage in stages)


@cache
def find_figure(name: str) -> TaskFigure:
    """Return the figure of this name, such as "cost" or "ndcg@10"; raises `KeyError` if there is none."""
    measure, at, cutoff = name.partition("@")
    if not at:
        return {figure.name: figure for figure in list_task_figures()}[name]
    title = f"{_SYMBOLS[measure]}@{cutoff}"
    return TaskFigure(
        name, title, f"{title} of the files, in the order in which they were first seen", "files", is_logged=False
    )
