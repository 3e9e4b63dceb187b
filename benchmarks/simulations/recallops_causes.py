"""Count how often RecallOps 0.2.0 names the planted causes that `benchmarks.simulations.verified_causes` wrote.

Usage, in an environment of its own with RecallOps: `python benchmarks/simulations/recallops_causes.py DIR`.

The documents change as they do there; the setting is the weight of BM25 in the hybrid of RecallOps. Whether a change
acts on a query is evaluated as there: by a snapshot with this change alone, by nDCG@10 and the rank of the target.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from recallops import ProjectStore, build_pipeline, evaluate  # type: ignore[import-not-found]  # not a dependency
from recallops.cli import _deep_attribute  # type: ignore[import-not-found]
from recallops.diffing import diff  # type: ignore[import-not-found]
from recallops.ingest import ingest  # type: ignore[import-not-found]
from recallops.models import GoldenCase, GoldenDataset  # type: ignore[import-not-found]

FACTORS = {"documents": "corpus", "setting": "retrieve"}
WEIGHTS = (0.45, 0.6)


class Snapshots:
    """Evaluations of a collection in RecallOps with some of the changes."""

    def __init__(self, plan: Mapping[str, Any], folder: Path) -> None:
        self._folder, self.store = folder, ProjectStore(folder)
        names = {name: f"{i}.txt" for i, name in enumerate(plan["before"])}
        for side in ("before", "after"):
            (folder / side).mkdir()
            for name, text in plan[side].items():
                (folder / side / names[name]).write_text(text, encoding="utf-8")
        cases = [GoldenCase(q["id"], q["question"], [names[d] for d in q["gold"]]) for q in plan["queries"]]
        self.dataset = GoldenDataset("planted-v1", cases)
        self.store.save_dataset(self.dataset)

    def take(self, changes: Sequence[str]) -> tuple[Any, Any]:
        """Return the manifest and the evaluation of the collection with some changes."""
        hybrid = {"sparse": "bm25", "fusion": "weighted", "bm25_weight": WEIGHTS["setting" in changes]}
        pipeline = build_pipeline({"retrieve": {"top_k": 10, "hybrid": hybrid}})
        source = self._folder / ("after" if "documents" in changes else "before")
        manifest = ingest(self.store, source, pipeline, adapter=None).manifest
        return manifest, evaluate(self.store, manifest, self.dataset)

    def attribute(self, before: tuple[Any, Any], after: tuple[Any, Any]) -> Mapping[str, Any]:
        """Return the deep attribution of the queries that RecallOps calls regressed."""
        changes = diff(self.store, before[0], after[0], self.dataset, before[1], after[1])
        reports: Mapping[str, Any] = _deep_attribute(
            self.store, changes, self.dataset, before[0], after[0], self._folder, "auto", None, True, 5
        )
        return reports


def read_states(evaluation: Any) -> dict[str, tuple[float, int | None]]:  # noqa: ANN401 (of RecallOps)
    """Return nDCG@10 and the rank of the target of each query."""
    return {query: (own.metrics["ndcg@10"], own.target_rank) for query, own in evaluation.per_query.items()}


def check_plan(snapshots: Snapshots, plan: Sequence[str]) -> list[int]:
    """Return how many queries moved and regressed, and for how many of these the right causes are verified."""
    before, after = snapshots.take([]), snapshots.take(plan)
    alone = {change: read_states(snapshots.take([change])[1]) for change in plan}
    old, new = read_states(before[1]), read_states(after[1])
    moved, reports = [query for query in old if old[query] != new[query]], snapshots.attribute(before, after)
    counts = [len(moved), len(reports), 0, 0, 0, 0]
    for query, report in reports.items():
        acting = [change for change in plan if alone[change][query] != old[query]]
        verified = {cause.factor for cause in report.verified_causes}
        counts[2] += len(acting) == 1
        counts[3] += len(acting) == 1 and verified == {FACTORS[acting[0]]}
        counts[4] += len(acting) > 1
        counts[5] += len(acting) > 1 and not verified
    return counts


def main(folder: Path) -> None:
    """Print a row for each collection and plan."""
    print("| collection | changes | moved | attributed | one acts | it alone is named | several act | none is named |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for path in sorted(folder.glob("*.json")):
        with tempfile.TemporaryDirectory() as project:
            snapshots = Snapshots(json.loads(path.read_text(encoding="utf-8")), Path(project))
            for plan in [plan for size in (1, 2) for plan in combinations(FACTORS, size)]:
                cells = [path.stem, ", ".join(plan), *map(str, check_plan(snapshots, plan))]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
