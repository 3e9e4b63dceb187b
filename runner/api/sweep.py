"""Run a sweep from Python; it has the same identity as on the command line, so either can resume the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.types import RunMode
from omegaconf import OmegaConf

from hydra_plugins.retrieval_runner import report_writer
from retrievers.files import replace_texts
from runner.api.data import check_overrides, list_overrides, locate
from runner.api.notebook import render_leaderboard, render_page
from runner.api.plots import plot_leaderboards
from runner.api.results import RunResult, with_run
from runner.comparison.leaderboard import FailedCombination
from runner.config.composing import explain_errors, open_loader, take_choices
from runner.config.objects import ConfigError
from runner.config.values import settle
from runner.datasets.dataset import Dataset
from runner.datasets.settings import build_dataset
from runner.evaluation.result import ResultError
from runner.pages import console
from runner.sweep.boards import Board
from runner.sweep.closing import SweepEnding
from runner.sweep.declared import Declared
from runner.sweep.execute import sweep
from runner.sweep.outcome import INTERRUPTED
from runner.sweep.reporting import ReportWriter, build_reports
from runner.sweep.search import search
from runner.system.processes import main_module_not_imported_again
from runner.tracking.logged import LoggedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series


@dataclass(frozen=True)
class SweepReport:
    """The files of a sweep's report by name: pages, Markdown and tables."""

    files: Mapping[str, str] = field(repr=False)

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the files to a folder, which is created if necessary, and return their paths."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        replace_texts(place, self.files)
        return [place / name for name in self.files]

    def _repr_html_(self) -> str:
        return "".join(render_page(text) for name, text in self.files.items() if name.endswith(".html"))


@dataclass(frozen=True, eq=False)
class SweepBoard:
    """The leaderboards of a sweep, one for each dataset, with their results."""

    ending: SweepEnding = field(repr=False)
    parallel: bool
    writer: ReportWriter = field(repr=False)

    @property
    def boards(self) -> Sequence[Board]:
        """Return a leaderboard for each dataset."""
        return self.ending.boards

    @property
    def parent(self) -> LoggedRun | None:
        """Return the parent run of the sweep, None if nothing was logged."""
        return self.ending.parent

    @property
    def runs(self) -> list[RunResult]:
        """Return the results in the order of the leaderboard, best first."""
        results = []
        for board in self.boards:
            values = list(board.results.values())
            runs = self.ending.runs
            results += [with_run(values[row.position], runs.get(row.run)) for row in board.leaderboard.rows]
        return results

    @property
    def best(self) -> RunResult:
        """Return the winner; raises `ResultError` if there are no results, or several datasets."""
        if len(self.boards) > 1:
            raise ResultError("the sweep has several datasets, each with its own best run; choose one of `runs`")
        if self.ending.chosen is not None:
            return with_run(self.ending.chosen, None)
        if not (runs := self.runs):
            raise ResultError(f"no combination finished; {len(self.failures):,} failed: see `failures`")
        return runs[0]

    @property
    def failures(self) -> list[FailedCombination]:
        """Return the combinations that failed."""
        return [failure for board in self.boards for failure in board.leaderboard.failures]

    @property
    def frame(self) -> DataFrame:
        """Return the leaderboard as a data frame; the leaderboards of several datasets are concatenated.

        Swept settings are numbers or booleans if all their values are, and else categories, as retrievers are.
        """
        import pandas as pd

        frames = []
        for board in self.boards:
            frame, dataset = board.leaderboard.to_frame(), board.leaderboard.dataset
            if len(self.boards) > 1 and dataset is not None:
                frame.insert(0, "dataset", dataset.name)
                frame.insert(1, "split", dataset.split)
            frames.append(frame)
        frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
        swept = {key for board in self.boards for row in board.leaderboard.rows for key in row.swept}
        for column in ("dataset", "split", "retriever", *sorted(swept)):
            if column in frame:
                frame[column] = _type_settings(frame[column])
        return frame

    def plot(self) -> Figure:
        """Return a figure of the means with their intervals, a panel for each dataset; needs Matplotlib."""
        return plot_leaderboards([board.leaderboard for board in self.boards])

    def report(self) -> SweepReport:
        """Return the report of the sweep."""
        return SweepReport(build_reports(self.boards, self.parallel, self.writer))

    def __repr__(self) -> str:
        best = "" if len(self.boards) != 1 or not self.runs else f", best: {self.best!r}"
        return f"SweepBoard({len(self.runs):,} results, {len(self.failures):,} failed{best})"

    def _repr_html_(self) -> str:
        return "".join(render_leaderboard(board.leaderboard, list(board.results.values())) for board in self.boards)


def _type_settings(values: Series[Any]) -> Series[Any]:
    """Return the values of a setting as numbers or booleans if all of them are, and else as categories."""
    import pandas as pd

    given = values.dropna().astype(str)
    if len(given) and given.isin(["True", "False"]).all():
        return values.map(lambda value: pd.NA if pd.isna(value) else str(value) == "True").astype("boolean")
    if len(given) and pd.to_numeric(given, errors="coerce").notna().all():
        return pd.to_numeric(values)
    return values.astype("category")


def run_sweep(
    *overrides: str,
    dataset: Dataset | None = None,
    tracking_uri: str | None = None,
    store_path: str | PathLike[str] | None = None,
) -> SweepBoard:
    """Run every combination of a sweep, log it, and return its leaderboard; finished combinations are loaded.

    `overrides` are the same as on the command line: "retriever=bm25", "retriever.k1=0.6,0.9,1.2", "experiment=tour". A
    command with the same overrides, and those of `load_dataset`, runs the same sweep. Without `dataset`, the overrides
    choose one. `tracking_uri` is where the sweep is logged ("none": not logged) and `store_path` where work is cached;
    for both, None means the default of the command line.

    An interrupted call raises `KeyboardInterrupt`; to resume, make the same call again. Raises `ConfigError` or
    `DatasetError` for mistakes, before any work.
    """
    check_overrides(overrides, dataset)
    chosen = [] if dataset is None else list_overrides(dataset)
    words = [*chosen, *overrides, *locate(tracking_uri, store_path)]
    with open_loader("evaluate", words) as (loader, ordered):
        config = loader.load_configuration("evaluate", ordered, run_mode=RunMode.MULTIRUN)
        arguments = list(config.hydra.overrides.task)
        node: dict[str, Any] = OmegaConf.to_container(config.hydra.sweeper, resolve=True)  # type: ignore[assignment]  # a mapping
        declared = Declared(loader, config, arguments, node.pop("params", None) or {}, dataset)
        if dataset is not None:
            single = settle(*take_choices(loader.load_configuration("evaluate", chosen, run_mode=RunMode.RUN)))
            declared.bench.datasets.add(*build_dataset(single.config["dataset"]), dataset)
    if declared.settings.dry_run:
        raise ConfigError("sweep.dry_run: run_sweep cannot return a plan; use the plan command")
    kind = str(node.pop("_target_")).rpartition(".")[2]
    node.pop("_convert_", None)
    writer = report_writer(declared)
    with explain_errors("evaluate", words), console.silence(), main_module_not_imported_again():
        if kind == "OptunaSweeper":
            ending = search(declared, node, writer)
        elif kind == "GridSweeper":
            ending = sweep(declared, writer)
        else:
            raise ConfigError(f"hydra/sweeper: {kind} returns no leaderboard; choose grid or optuna")
    if ending.exit_code == INTERRUPTED:
        raise KeyboardInterrupt
    return SweepBoard(ending, declared.settings.backend != "sequential", writer)
