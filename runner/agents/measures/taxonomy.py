"""In what ways an agent's retrieval went wrong, and what kind of task it was: counts by label, and slices.

Knows nothing of events beyond what a trail has of them, and nothing of measures.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from runner.agents.measures.trail import Trail
from runner.agents.truth.paths import File, named_file, short

LABELS: Mapping[str, str] = {
    "irrelevant_retrieval": "files retrieved that are not gold",
    "missed_key_evidence": "gold files never retrieved",
    "wrong_evidence_used": "files written that are not gold",
    "unused_correct_retrieval": "gold files retrieved but never written",
    "ambiguity_near_miss": "files retrieved that are not gold, but lie in a gold file's folder",
}
"""What each label counts."""

SLICES = ("candidate_set_size", "evidence_type")
"""The names of the slices that results are also reported by."""

CATEGORY = "dominant_retrieval_category"
"""The category of most events, told beside the slices."""

SMALL, MEDIUM = 5, 20
"""Up to how many files a set of candidates is small, or medium."""


def labels(trail: Trail) -> dict[str, int]:
    """Return how many files each label applies to. A file that lies in no folder is no near miss."""
    gold, retrieved, written = set(trail.gold), set(trail.retrieved), set(trail.written)
    near = _folders(map(named_file, [*gold, *(visit.path for visit in trail.visits if visit.file in gold)]))
    return {
        "irrelevant_retrieval": len(retrieved - gold),
        "missed_key_evidence": len(gold - retrieved),
        "wrong_evidence_used": len(written - gold),
        "unused_correct_retrieval": len((gold & retrieved) - written),
        "ambiguity_near_miss": sum(_lies_in(named_file(name), near) for name in retrieved - gold),
    }


def slices(trail: Trail) -> dict[str, Any]:
    """Return how many files there were to choose from, and by what they were found; of several categories the first."""
    candidates, used = len(trail.retrieved), trail.categories
    size = "small" if candidates <= SMALL else "medium" if candidates <= MEDIUM else "large"
    return {
        "candidate_set_size": size,
        "candidate_set_count": candidates,
        CATEGORY: min(used, key=lambda name: (-used[name], name), default="none"),
        "evidence_type": "mcp" if trail.by_mcp else "local",
    }


def _folders(files: Iterable[File]) -> dict[str, set[str | None]]:
    """Return the folders that files lie in, each with the repositories that have it, None for one that is not known."""
    found: dict[str, set[str | None]] = {}
    for file in files:
        found.setdefault(posixpath.dirname(file.path.lower()), set()).add(file.repo and short(file.repo))
    return found


def _lies_in(file: File, folders: Mapping[str, set[str | None]]) -> bool:
    folder, repo = posixpath.dirname(file.path.lower()), file.repo and short(file.repo)
    repos = folders.get(folder, ()) if folder else ()
    return bool(repos) and (repo is None or None in repos or repo in repos)
