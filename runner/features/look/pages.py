"""The page of a sweep, an evaluation or a comparison, rendered from stored results and kept until they change."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from runner.comparison.compare import TableStatistics, compare_results, read_statistics
from runner.comparison.insights import find_insights
from runner.comparison.report.page import comparison_page
from runner.config.consent import restore_values
from runner.config.objects import ConfigError, build_settings
from runner.evaluation.report.page import result_page
from runner.evaluation.report.rankings import DocumentText
from runner.evaluation.result import Result
from runner.features.look.records import SweepRecords
from runner.features.look.results import StoredResults, describe_failed
from runner.features.look.shown import ShownRuns
from runner.pages.explorer.place import LiveState, PagePlace
from runner.statistics.settings import Statistics
from runner.sweep.boards import build_boards
from runner.sweep.report.page import sweep_page
from runner.tracking.logged import Run
from runner.tracking.pages import create_place

_KEPT_PAGES = 8


@dataclass(frozen=True)
class LivePage:
    """A page, and the results whose rankings it shows, in the order of its systems."""

    state: LiveState
    html: str
    ranked: Sequence[Result] = ()


class PageBuilder:
    """Renders pages one at a time; a page of finished runs is rendered once."""

    def __init__(self, results: StoredResults, statistics: TableStatistics) -> None:
        self.results, self._statistics = results, statistics
        self._pages: dict[tuple[str, int], LivePage] = {}
        self._lock = threading.Lock()

    def read_state(self, shown: ShownRuns) -> LiveState:
        """Return the state of what is shown: another `version` means that the page has changed."""
        if shown.kind == "sweep":
            return self._read_sweep(shown.runs[0])[0]
        rivals = f"-{len(self._list_rivals(shown.runs))}" if shown.kind == "comparison" else ""
        return LiveState(f"{shown.key}{rivals}")

    def build(self, shown: ShownRuns, board: int = 0) -> LivePage:
        """Return the page of runs; `board` numbers the datasets of a sweep. Raises `ConfigError`, `ResultError`."""
        with self._lock:
            state = self.read_state(shown)
            page = self._pages.pop((shown.key, board), None)
            if page is None or page.state != state:
                page = self._render(shown, state, board)
            self._pages[shown.key, board] = page
            while len(self._pages) > _KEPT_PAGES:
                del self._pages[next(iter(self._pages))]
            return page

    def read_texts(self, shown: ShownRuns, query: str, board: int = 0) -> dict[str, DocumentText]:
        """Return the whole texts of the documents of a query, by `ShownDocument.key`; raises `ConfigError`."""
        ranked = self.build(shown, board).ranked
        ids = list(ranked[0].queries.ids) if ranked else []
        if query not in ids:
            raise ConfigError(f"query={query[:80]}: no such query on this page")
        with self._lock:
            return self.results.read_texts(ranked, ids.index(query))

    def _render(self, shown: ShownRuns, state: LiveState, board: int) -> LivePage:
        place = create_place(self.results.runs.tracking, [run.id for run in shown.runs], state)
        if shown.kind == "sweep":
            return self._render_sweep(shown.runs[0], place, state, board)
        ranked = [self.results.read(run) for run in shown.runs]
        corpus = self.results.read_documents(ranked[0])
        if shown.kind == "evaluation":
            html = result_page(ranked[0], find_insights(ranked[0], self.results.read_words(corpus)), corpus, place)
            return LivePage(state, html, ranked)
        rivals = list(self.results.read_combinations(self._list_rivals(shown.runs)).values())
        statistics = read_statistics(rivals[0]) if rivals else self._statistics
        comparison = compare_results(ranked, statistics, sources=[run.id for run in shown.runs], rivals=rivals)
        return LivePage(state, comparison_page(comparison, corpus=corpus, place=place), comparison.results)

    def _render_sweep(self, sweep: Run, place: PagePlace, state: LiveState, board: int) -> LivePage:
        records, finished = self._read_ranked(sweep, state)
        results = self.results.read_combinations(finished)
        if not results:
            raise ConfigError(f"the sweep {sweep.name} has no finished combination yet")
        failures = [describe_failed(run) for run in self.results.runs.of_sweep(sweep, "FAILED")]
        first = next(iter(results.values()))
        recorded = restore_values({"statistics": first.config.get("statistics")}, self.results.consent)
        statistics = build_settings(Statistics, recorded["statistics"], "statistics")
        boards = build_boards(results, failures, first.primary, statistics, records.read_course(results))
        if board >= len(boards):
            raise ConfigError(f"board={board}: the sweep {sweep.name} has {len(boards)} datasets")
        chosen = boards[board]
        if len(boards) > 1:
            summaries = [next(iter(of.results.values())).dataset for of in boards]
            place = replace(place, datasets=tuple(f"{of.name}, {of.split}" for of in summaries))
        best = self.results.read_best(chosen, finished)
        html = sweep_page(chosen.leaderboard, list(chosen.results.values()), place, *best)
        return LivePage(state, html, list(best.results.values()))

    def _list_rivals(self, runs: Sequence[Run]) -> list[Run]:
        """Return the combinations of the sweep that all these runs are combinations of; none without such a sweep."""
        for parent in dict.fromkeys(run.parent for run in runs if run.parent):
            for sweep in self.results.runs.like(parent):
                ranked = self._read_ranked(sweep, self._read_sweep(sweep)[0])[1]
                if {run.id for run in runs} <= {run.id for run in ranked}:
                    return ranked
        return []

    def _read_ranked(self, sweep: Run, state: LiveState) -> tuple[SweepRecords, list[Run]]:
        """Return the records of a sweep, and the combinations that its report ranks."""
        records = SweepRecords(sweep, self.results.runs, has_ended=not state.is_running)
        return records, records.select_ranked(self._read_sweep(sweep)[1])

    def _read_sweep(self, sweep: Run) -> tuple[LiveState, list[Run]]:
        """Return the state of a sweep, and its finished combinations."""
        runs = self.results.runs
        (now,) = runs.like(sweep.id) or [sweep]
        finished, failed = runs.of_sweep(sweep), runs.of_sweep(sweep, "FAILED")
        version = f"{len(finished)}-{len(failed)}-{now.status}"
        return LiveState(version, now.status == "RUNNING", len(finished)), finished
