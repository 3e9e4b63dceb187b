"""Turn the files that agents found into rankings, so that the measures of retrievers apply to them.

A task is a query, a file is a document, and the rank of a file is the order in which it was first seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from retrievers.base import Rankings, create_empty_rankings
from runner.datasets.base import Judgments
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader, Scores


@dataclass(frozen=True, eq=False)
class RankedFiles:
    """The rankings of tasks, the file names that their positions stand for, and a grader of their gold."""

    rankings: Rankings
    files: Sequence[str]
    grader: Grader

    def score(self, measures: Sequence[Measure]) -> Scores:
        """Return the value of each measure for each task, NaN for a task without gold or with an error."""
        return self.grader.score(self.rankings, measures)


def rank_files(
    files: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    depth: int | None = None,
    errors: Mapping[int, str] | None = None,
) -> RankedFiles:
    """Rank the distinct files of each task, given in order of first sight, down to a depth (None for all).

    `gold` are the files that each task should find, all with the same grade; a file is identified by its name. `errors`
    gives, by the position of a task, why it has nothing to rank. Scores only express the rank: 0, -1, -2, and so on.
    """
    names = sorted({*chain.from_iterable(files), *chain.from_iterable(gold)})
    position = {name: place for place, name in enumerate(names)}
    deepest = max(map(len, files), default=0) if depth is None else depth
    rankings = replace(create_empty_rankings(len(files), deepest), errors=errors or None)
    for task, ranking in enumerate(files):
        n = min(len(ranking), deepest)
        rankings.documents[task, :n] = [position[name] for name in ranking[:n]]
        rankings.scores[task, :n] = -np.arange(n)
    judgments = Judgments.of((task, position[name], 1) for task, wanted in enumerate(gold) for name in {*wanted})
    return RankedFiles(rankings, names, Grader(judgments, len(files), len(names)))
