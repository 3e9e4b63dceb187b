"""Read the rankings of a retriever's stages from the store, and rank the gold in them. Nothing is searched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings, Retriever
from retrievers.blocks import find_in_blocks
from retrievers.capabilities import is_live
from retrievers.search import find_part
from retrievers.stages import Input, describe_stage
from retrievers.store import Store
from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import exclude_own
from runner.evaluation.losses import THRESHOLD, Codes, Losses, StageRanks, attribute_losses, find_unreachable
from runner.metrics.formulas import find_missed_cutoff
from runner.metrics.scores import UNRANKED, Grader, Ranks
from runner.metrics.settings import MetricSettings

MOST_KEPT = 64
"""The number of parts whose ranks of gold stay in memory, for sweeps that combine the same parts in other ways."""

Blocks = Sequence[Sequence[int]]
"""The positions of the queries that were searched together, as in `retrievers.blocks`."""


@dataclass(frozen=True, eq=False)
class StageReader:
    """Ranks the gold of a dataset by some judgments in the rankings of stages; those of equal parts are read once."""

    dataset: Dataset
    grader: Grader
    _kept: OrderedDict[tuple[str, str, int], StageRanks] = field(default_factory=OrderedDict, init=False, repr=False)

    def find_losses(
        self,
        retriever: Retriever,
        k: int,
        rankings: Rankings,
        settings: MetricSettings,
        store: Store,
        blocks: Blocks = (),
    ) -> Losses:
        """Return the losses of a search for k hits at the cutoff of the primary measure, or 10 without one.

        `rankings` are the hits that are measured. Gold that the thresholds of the settings would drop is only counted.
        """
        self.grader.grade(rankings)  # cached, and needed for the measures
        ranks, counted = self.grader.rank_gold(rankings), self.grader.find_counted(rankings)[self._queries]
        final = self._read_stage("", retriever, k, ranks, store, blocks)
        losses = attribute_losses(final, find_missed_cutoff(str(settings.primary_measure)), counted, self._unreachable)
        losses = losses.add_deeper(self._read_deeper(retriever, k, store, blocks), k)
        if not settings.thresholds:
            return losses
        scores = np.full(len(ranks), -np.inf, dtype=np.float32)
        is_ranked = ranks != UNRANKED
        scores[is_ranked] = rankings.scores[self._queries[is_ranked], ranks[is_ranked] - 1]
        dropped = {f"{at:g}": losses.drop_below(at, scores).counts[THRESHOLD] for at in settings.thresholds}
        return replace(losses, dropped=dropped)

    @cached_property
    def _queries(self) -> NDArray[np.int32]:
        """Return the query of each gold document (gold,)."""
        queries: NDArray[np.int32] = self.grader.judgments.queries[self.grader.judgments.gold_order]
        return queries

    @cached_property
    def _unreachable(self) -> Codes:
        return find_unreachable(self.dataset, self.grader.judgments)

    def _read_stage(
        self, name: str, retriever: Retriever, k: int, ranks: Ranks | None, store: Store, blocks: Blocks
    ) -> StageRanks:
        stage = describe_stage(retriever, self.dataset.queries.inputs, k)
        if stage is None:
            return StageRanks(name, ranks)
        inputs = [
            self._read_input(f"{name}.{part}".lstrip("."), own, store, blocks) for part, own in stage.inputs.items()
        ]
        return StageRanks(name, ranks, stage.step, inputs, stage.complete)

    def _read_deeper(self, retriever: Retriever, k: int, store: Store, blocks: Blocks) -> dict[str, Ranks]:
        """Return the ranks of gold in the k best hits of those inputs of the last step that it reads less deeply.

        They are stored if the input was evaluated, too. A service is not queried for the version of its index.
        """
        stage = describe_stage(retriever, self.dataset.queries.inputs, k)
        deeper: dict[str, Ranks] = {}
        for name, own in (stage.inputs if stage else {}).items():
            if own.depth < k and not is_live(own.retriever):
                ranks = self._rank(replace(own, depth=k), store, blocks)
                if ranks is not None:
                    is_unused = False if own.unused is None else own.unused[self._queries]
                    deeper[name] = np.where(is_unused, np.int32(UNRANKED), ranks)
        return deeper

    def _read_input(self, name: str, own: Input, store: Store, blocks: Blocks) -> StageRanks:
        key = name, repr(own.retriever), own.depth
        if key in self._kept:
            self._kept.move_to_end(key)
            stage = self._kept[key]
        else:
            stage = self._read_stage(name, own.retriever, own.depth, self._rank(own, store, blocks), store, blocks)
            is_known = all(inner.ranks is not None for inner in stage.walk())
            if is_known and not is_live(own.retriever):  # the index of a service may change
                self._kept[key] = stage
                if len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
        return stage if own.unused is None else stage.leave_out(own.unused[self._queries])

    def _rank(self, own: Input, store: Store, blocks: Blocks) -> Ranks | None:
        """Return the ranks of gold in an input, None if its rankings are not stored."""
        search = own.retriever, self.dataset.corpus, self.dataset.queries.inputs, own.depth, store
        rankings = find_part(*search)
        if rankings is None and blocks:
            rankings = find_in_blocks(*search, blocks)
        if rankings is None:
            return None
        return self.grader.rank_gold(exclude_own(self.dataset, rankings, own.depth))
