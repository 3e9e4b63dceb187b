"""Match the files that events name with those of the ground truth, once per document."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from runner.features.traces.events.records import TruthRecord
from runner.features.traces.truth.paths import File, match_names, parse_name, short_name


def match_truth(truth: TruthRecord, targets: Collection[str]) -> TruthRecord:
    """Return a ground truth that uses one name per file, with the files that events target matched to these names.

    A file to change, or the file of a chunk, has the name of the gold file that it matches. Letter case is ignored.
    """
    gold = distinct_names(truth["files"])
    edits, chunks = truth.get("expected_edit_files"), truth.get("chunks")
    wanted: list[str] = [*(edits or ()), *(chunk["file"] for chunk in chunks or ())]
    names = match_names(wanted, gold)
    others = distinct_names(name for name in wanted if name not in names)
    names |= match_names((name for name in wanted if name not in names), others)
    matches = match_names(targets, gold)
    matches |= match_names((path for path in targets if path not in matches), others)
    matched: TruthRecord = {**truth, "matches": matches}
    if chunks is not None:
        matched["chunks"] = [{**chunk, "file": names.get(chunk["file"], chunk["file"])} for chunk in chunks]
    if edits is not None:
        matched["expected_edit_files"] = [names.get(name, name) for name in edits]
    return matched


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return names of files; of several names for the same file, only the first."""
    distinct: dict[File, str] = {}
    for name in names:
        file = parse_name(name)
        distinct.setdefault(File(file.path.lower(), file.repo and short_name(file.repo)), name)
    return [*distinct.values()]
