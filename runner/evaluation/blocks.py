"""Search and score an experiment block by block, for decisions that may not need all queries.

The rankings of a block go through the store, where the next attempt and the evaluation of the experiment find them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.blocks import join_blocks
from retrievers.index_facts import remember_facts
from retrievers.search import search_block
from runner.datasets.own_documents import exclude_own, leave_room
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.metrics.measures import Measure


@dataclass(frozen=True)
class ScoredBlock:
    """The values of a block (measures x queries), and the errors of its failed queries by their place in the block."""

    values: NDArray[np.float64]
    errors: Mapping[int, str]
    settled: bool


def score_block(experiment: Experiment, rows: Sequence[int], bench: Bench, measures: Sequence[Measure]) -> ScoredBlock:
    """Search the queries at some positions and measure them."""
    dataset, inputs = bench.dataset(experiment), bench.dataset(experiment).queries.inputs
    retriever, depth = leave_room(experiment.retriever, dataset, experiment.metrics.depth)
    with remember_facts():
        rankings = search_block(retriever, dataset.corpus, [inputs[row] for row in rows], depth, bench.store)
    places = np.array(rows, dtype=np.intp)
    joined = join_blocks([(places, rankings)], len(dataset.queries), depth, len(dataset.corpus))
    grader, *_ = bench.datasets.build_grader(experiment)
    ranked = exclude_own(dataset, joined, experiment.metrics.depth)
    values = grader.score(ranked, measures).values[:, places]
    return ScoredBlock(values, rankings.errors or {}, rankings.settled)
