"""One grade per pair from several assessors, and the pairs on which they have to agree first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.features.judge.desk.journal import Assessment, JournalEntry
from runner.features.judge.judging import PairIds


@dataclass(frozen=True)
class FinalGrade:
    """The grade of a pair: `assessors` gave it, `at` is the latest time, `is_settled` an adjudicated one."""

    pair: PairIds
    grade: int
    assessors: Sequence[str]
    at: str
    note: str
    is_settled: bool = False


@dataclass(frozen=True)
class Dispute:
    """A pair that assessors graded differently, or of which one is unsure and nobody is sure."""

    pair: PairIds
    opinions: Sequence[tuple[str, JournalEntry, str]]


def merge_grades(assessments: Mapping[str, Assessment]) -> list[FinalGrade]:
    """Return the final grades in the order of pairs.

    A settled grade counts alone, the last one of several. Otherwise it is the mean of the grades, 0.5 rounded up.
    """
    merged = []
    for pair, opinions in sorted(_list_opinions(assessments).items()):
        settled = _find_settled(assessments, pair)
        graded = [(name, entry) for name, entry, _ in opinions if entry.grade is not None]
        note = " | ".join(f"{name}: {text}" for name, _, text in opinions if text)
        if settled:
            name, entry = settled
            merged.append(FinalGrade(pair, int(entry.grade or 0), (name,), entry.at, note, True))
        elif graded:
            grades = [int(entry.grade or 0) for _, entry in graded]
            mean = int(sum(grades) / len(grades) + 0.5)
            names = tuple(name for name, _ in graded)
            merged.append(FinalGrade(pair, mean, names, max(entry.at for _, entry in graded), note))
    return merged


def list_disputes(assessments: Mapping[str, Assessment]) -> list[Dispute]:
    """Return the pairs to settle: those whose grades differ most first, then those that nobody could grade."""
    disputes: list[tuple[int, Dispute]] = []
    for pair, opinions in sorted(_list_opinions(assessments).items()):
        grades = [entry.grade for _, entry, _ in opinions if entry.grade is not None]
        is_open = len(set(grades)) > 1 or (not grades and any(entry.action == "unsure" for _, entry, _ in opinions))
        if is_open and not _find_settled(assessments, pair):
            disputes.append((min(grades, default=0) - max(grades, default=0), Dispute(pair, opinions)))
    return [dispute for _, dispute in sorted(disputes, key=lambda row: row[0])]


def _list_opinions(assessments: Mapping[str, Assessment]) -> dict[PairIds, list[tuple[str, JournalEntry, str]]]:
    opinions: dict[PairIds, list[tuple[str, JournalEntry, str]]] = {}
    for name, own in assessments.items():
        for pair, entry in own.decisions.items():
            if entry.action != "skip":
                opinions.setdefault(pair, []).append((name, entry, own.notes.get(pair, "")))
    return opinions


def _find_settled(assessments: Mapping[str, Assessment], pair: PairIds) -> tuple[str, JournalEntry] | None:
    """Return who settled a pair last, and how."""
    rows = [(own.settled[pair].at, name) for name, own in assessments.items() if pair in own.settled]
    return (max(rows)[1], assessments[max(rows)[1]].settled[pair]) if rows else None
