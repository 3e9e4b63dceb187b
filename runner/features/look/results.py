"""The results of stored runs, each read once, and the documents of their datasets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from retrievers.base import Corpus, RetrieverError
from retrievers.texts import fetch_documents
from runner.comparison.leaderboard import FailedCombination
from runner.config.consent import Consent, NotAllowedError, restore_values
from runner.config.objects import ConfigError, build
from runner.evaluation.bench import Bench
from runner.evaluation.failures import Lexicon
from runner.evaluation.report.rankings import DEPTH, MOST_GOLD, DocumentText, ShownDocument
from runner.evaluation.result import Result, ResultError
from runner.pages import console
from runner.results.re_evaluation import load_documents
from runner.sweep.boards import BestRankings, Board
from runner.tracking.fetching import Runs
from runner.tracking.logged import Run

_NO_DOCUMENTS = Corpus([], [])


class StoredResults:
    """Reads results and documents, and keeps them; of the combinations of a sweep, without their rankings."""

    def __init__(self, runs: Runs, bench: Bench, consent: Consent) -> None:
        self.runs, self.bench, self.consent = runs, bench, consent
        self._light: dict[str, Result] = {}
        self._whole: dict[str, Result] = {}
        self._documents: dict[str, Corpus] = {}
        self._refusals: set[str] = set()

    def read(self, run: Run) -> Result:
        """Return the result of a run with its rankings; raises `ResultError`."""
        if run.id not in self._whole:
            self._whole[run.id] = self.runs.record(run)
        return self._whole[run.id]

    def read_combinations(self, runs: Iterable[Run]) -> dict[str, Result]:
        """Return the results of combinations by run id, without their rankings; raises `ResultError`."""
        results = {}
        for run in runs:
            if run.id not in self._light:
                self._light[run.id] = self.runs.record(run, rankings=False)
            results[run.id] = self._light[run.id]
        return results

    def read_best(self, board: Board, finished: Iterable[Run]) -> BestRankings:
        """Return the best results of a leaderboard with their rankings, and the documents that these name."""
        runs = {run.id: run for run in finished}
        best: dict[int, Result] = {}
        for rank, name in board.best.items():
            with suppress(ResultError):  # the page can do without
                if (result := self.read(runs[name])).hits is not None:
                    best[rank] = result
        if not best:
            return BestRankings()
        return BestRankings.of(best, self.read_documents(next(iter(best.values()))), self.read_words)

    def read_words(self, corpus: Corpus) -> Lexicon | None:
        """Return the words of documents; None without documents."""
        return Lexicon(corpus, self.bench.analyzer, self.bench.store) if len(corpus) else None

    def read_documents(self, result: Result) -> Corpus:
        """Return the documents of a result's dataset; none if it cannot be loaded, or has changed since."""
        name = result.dataset.fingerprint
        if name not in self._documents:
            self._documents[name] = load_documents(result, self.bench, self.consent) or _NO_DOCUMENTS
        return self._documents[name]

    def read_texts(self, results: Sequence[Result], query: int) -> dict[str, DocumentText]:
        """Return the whole texts of the documents that a page shows for a query, by `ShownDocument.key`.

        Documents that the dataset lacks come from the index of the retriever, if it can return them.
        """
        texts: dict[str, DocumentText] = {}
        for result in results:
            wanted = _list_documents(result, query)
            corpus = self.read_documents(result)
            missing = [shown.id for shown in wanted if not {shown.id, shown.parent} & corpus.positions.keys()]
            for source in (corpus, self._fetch(result, missing)):
                read = {shown: shown.read(source, source.positions) for shown in wanted}
                texts |= {shown.key: text for shown, text in read.items() if text is not None}
        return texts

    def _fetch(self, result: Result, ids: Sequence[str]) -> Corpus:
        """Return documents from the index of a retriever; none if it cannot be opened."""
        if not ids:
            return _NO_DOCUMENTS
        try:
            settings = restore_values({"retriever": result.config.get("retriever")}, self.consent)["retriever"]
            return fetch_documents(build(settings, "retriever", self.consent.plugins), _NO_DOCUMENTS, ids)
        except NotAllowedError as refusal:
            if str(refusal) not in self._refusals:
                self._refusals.add(str(refusal))
                console.note(f"documents outside the dataset of {result.name} are shown as ids: {refusal}")
            return _NO_DOCUMENTS
        except (ConfigError, RetrieverError):
            return _NO_DOCUMENTS


def _list_documents(result: Result, query: int) -> list[ShownDocument]:
    """Return the gold and the first hits of a query."""
    gold = [ShownDocument(name) for name in result.queries.expected[query][:MOST_GOLD]]
    return gold if result.hits is None else gold + ShownDocument.of_hits(result.hits, query, DEPTH)


def describe_failed(run: Run) -> FailedCombination:
    """Return a failed combination with its traceback, if that is on this machine."""
    file = None if run.folder is None else run.folder / "traceback.txt"
    traceback = file.read_text(encoding="utf-8", errors="replace") if file and file.is_file() else ""
    error = traceback.strip().rpartition("\n")[2] or "failed; its traceback is among the artifacts of its run"
    return FailedCombination(run.name, error, traceback)
