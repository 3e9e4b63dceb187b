"""Classify the errors of an agent's retrieval and the kind of task: counts by label, and slices."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Literal

from runner.features.traces.measures.records import TaskSlices
from runner.features.traces.measures.trail import Trail
from runner.features.traces.truth.paths import File, parse_name, short_name

LABELS: Mapping[str, str] = {
    "irrelevant_retrieval": "files retrieved that are not gold",
    "missed_key_evidence": "gold files never retrieved",
    "wrong_evidence_used": "files written that are not gold",
    "unused_correct_retrieval": "gold files retrieved but never written",
    "ambiguity_near_miss": "files retrieved that are not gold but lie in the folder of a gold file",
}
"""What each label counts."""

SliceName = Literal["candidate_set_size", "evidence_type"]
SLICES: tuple[SliceName, ...] = ("candidate_set_size", "evidence_type")
"""The slices that results are also reported by."""

CATEGORY: Literal["dominant_retrieval_category"] = "dominant_retrieval_category"
"""The most frequent category of events, reported beside the slices."""

SMALL, MEDIUM = 5, 20
"""The largest number of candidate files in a small and in a medium set."""


def count_errors(trail: Trail) -> dict[str, int]:
    """Return the number of files that each label applies to. A file at the root is not a near miss."""
    gold, retrieved, written = set(trail.gold), set(trail.retrieved), set(trail.written)
    near = _group_folders(map(parse_name, [*gold, *(visit.path for visit in trail.visits if visit.file in gold)]))
    return {
        "irrelevant_retrieval": len(retrieved - gold),
        "missed_key_evidence": len(gold - retrieved),
        "wrong_evidence_used": len(written - gold),
        "unused_correct_retrieval": len((gold & retrieved) - written),
        "ambiguity_near_miss": sum(_is_within(parse_name(name), near) for name in retrieved - gold),
    }


def classify_task(trail: Trail) -> TaskSlices:
    """Return how many files the agent had to choose from, and how it found them; ties go to the first category."""
    candidates, used = len(trail.retrieved), trail.categories
    return {
        "candidate_set_size": "small" if candidates <= SMALL else "medium" if candidates <= MEDIUM else "large",
        "candidate_set_count": candidates,
        "dominant_retrieval_category": min(used, key=lambda name: (-used[name], name), default="none"),
        "evidence_type": "mcp" if trail.uses_mcp else "local",
    }


def _group_folders(files: Iterable[File]) -> dict[str, set[str | None]]:
    """Return the folders of files, each with the repositories that have it, None for an unknown one."""
    folders: dict[str, set[str | None]] = {}
    for file in files:
        folders.setdefault(posixpath.dirname(file.path.lower()), set()).add(file.repo and short_name(file.repo))
    return folders


def _is_within(file: File, folders: Mapping[str, set[str | None]]) -> bool:
    folder, repo = posixpath.dirname(file.path.lower()), file.repo and short_name(file.repo)
    repos = folders.get(folder, ()) if folder else ()
    return bool(repos) and (repo is None or None in repos or repo in repos)
