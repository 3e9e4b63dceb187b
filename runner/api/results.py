"""Results for Python callers: with data frames, and shown as tables in notebooks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retrievers.base import NOTHING
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import MemoryStore
from runner.api.notebook import render_result
from runner.api.plots import plot_queries
from runner.comparison.insights import find_failures
from runner.config.objects import build
from runner.datasets.dataset import Dataset
from runner.evaluation.failure_classes import ADVICE
from runner.evaluation.failure_summary import choose_first_step
from runner.evaluation.failures import Lexicon
from runner.evaluation.records import load_record, write_trec
from runner.evaluation.result import Hits, Result, ResultError
from runner.pages import numbers
from runner.tracking.logged import LoggedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class ResultRankings:
    """The rankings of a result: the documents that each query retrieved, best first."""

    result: Result
    hits: Hits

    def to_frame(self) -> DataFrame:
        """Return a data frame with a row for each hit; unjudged hits have no grade."""
        import pandas as pd

        documents, ids = self.hits.rankings.documents, list(self.hits.documents)
        queries, places = np.nonzero(documents != NOTHING)
        grades = pd.array(self.hits.grades[queries, places], dtype="Int32")
        grades[self.hits.grades[queries, places] == NOTHING] = pd.NA
        columns = {
            "query_id": [self.result.queries.ids[query] for query in queries.tolist()],
            "rank": places + 1,
            "document_id": [ids[document] for document in documents[queries, places].tolist()],
            "score": self.hits.rankings.scores[queries, places],
            "grade": grades,
        }
        return pd.DataFrame(columns)

    def write_trec(self, file: str | Path) -> None:
        """Write the rankings as a gzipped TREC run."""
        write_trec(replace(self.result, hits=self.hits), Path(file))


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult(Result):
    """The result of an evaluation and its run; `run` is None if it was not logged."""

    run: LoggedRun | None = None

    @property
    def per_query(self) -> DataFrame:
        """Return a data frame with a row for each query: id, text, type, status, error, and each measure."""
        import pandas as pd

        queries = self.queries
        columns = {
            "query_id": queries.ids,
            "query": queries.texts,
            "type": queries.types,
            "status": queries.statuses,
            "error": queries.errors,
        }
        measured = dict(zip(self.measures, self.scores, strict=True))
        return pd.DataFrame({name: np.asarray(column) for name, column in {**columns, **measured}.items()})

    def explain_misses(self, data: Dataset | None = None) -> DataFrame:
        """Return a data frame with a row for each missed query and class of failure, with what to try first.

        Classes that need texts are assigned if the searched `data` is given. Raises `ResultError` as `rankings` does.
        """
        import pandas as pd

        lexicon = None
        if data is not None:
            own = self.config.get("analyzer")
            analyzer = build(own, "analyzer", self.config.get("plugins") or ()) if own else Analyzer()
            lexicon = Lexicon(data.documents, analyzer, MemoryStore())
        insight = find_failures(replace(self, hits=self.rankings.hits), lexicon)
        columns = ("query_id", "query", "class", "meaning", "try_first", "gold", "gold_rank")
        rows = [
            (self.queries.ids[of.query], self.queries.texts[of.query], name, ADVICE[name].meaning,
             choose_first_step(name, [of], insight.cutoff), of.gold, of.gold_rank)
            for of in insight.failures
            for name in of.labels
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=columns).astype({"gold_rank": "Int32"})

    @property
    def lost_gold(self) -> DataFrame:
        """Return a data frame with a row for each gold document missed: its step, and its rank in each stage or 0.

        Raises `ResultError` for a result without losses, and for one without ranks that was not logged.
        """
        import pandas as pd

        losses = self.losses
        if losses is not None and not losses.stages and self.run is not None and self.run.folder is not None:
            losses = load_record(self.run.folder, rankings=False).losses
        if losses is None or not losses.stages:
            raise ResultError(f"{self.name}: the losses by step are not available; evaluate this combination again")
        queries = self.queries
        gold = [(query, name) for query, names in zip(queries.ids, queries.expected, strict=True) for name in names]
        lost = np.flatnonzero(losses.codes >= 0)
        columns = {
            "query_id": [gold[place][0] for place in lost.tolist()],
            "document_id": [gold[place][1] for place in lost.tolist()],
            "step": [losses.steps[code] for code in losses.codes[lost].tolist()],
        }
        ranks = {f"rank.{stage}".rstrip("."): own[lost] for stage, own in zip(losses.stages, losses.ranks, strict=True)}
        return pd.DataFrame({**columns, **ranks})

    @property
    def rankings(self) -> ResultRankings:
        """Return the rankings; raises `ResultError` if they were neither kept nor logged on this machine."""
        hits = self.hits
        if hits is None and self.run is not None and self.run.folder is not None:
            hits = load_record(self.run.folder).hits
        if hits is None:
            raise ResultError(
                f"{self.name}: the rankings are not available, because the sweep was not logged; evaluate this "
                "combination on its own"
            )
        return ResultRankings(self, hits)

    def plot(self) -> Figure:
        """Return a figure of how many queries have which value of the primary measure; needs Matplotlib."""
        return plot_queries(self)

    def __repr__(self) -> str:
        mean = numbers.score(self.means.get(self.primary))
        return f"RunResult({self.name} on {self.dataset.name}: {self.primary} {mean})"

    def _repr_html_(self) -> str:
        return render_result(self)


def with_run(result: Result, run: LoggedRun | None) -> RunResult:
    """Return a result with its run, None if the run has no id and so was not logged."""
    values = {field.name: getattr(result, field.name) for field in fields(Result)}
    return RunResult(**values, run=run if run and run.id else None)
