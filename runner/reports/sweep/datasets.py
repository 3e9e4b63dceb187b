"""Systems by dataset: how the same systems do on each dataset of a sweep.

Scores on different datasets are never compared; ranks within each of them are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.reports.comparison.labels import told
from runner.reports.rendering.numbers import number, score4
from runner.reports.rendering.tables import Column, Table
from runner.reports.sweep.leaderboard import Leaderboard

System = tuple[tuple[str, Any], ...]
"""The swept settings of a system, but for those of the dataset that it searches."""


def systems_by_dataset(boards: Sequence[Leaderboard]) -> Table:
    """Return the primary measure of each system on each dataset, the best mean rank first.

    A system is what remains of a combination without the settings of its dataset. The table is empty for fewer than two
    datasets. A mean rank is given only to a system with a score on all of them.
    """
    ranked = [board for board in boards if board.dataset is not None and board.queries]
    if len(ranked) < 2:
        return Table([], [])
    columns = [Column("system", least=28), Column("mean rank", _rank, numeric=True)]
    columns += [Column(title, score4, numeric=True) for title in _titles(ranked)]
    scores = [{_system(row.swept): row.mean for row in reversed(board.rows)} for board in ranked]
    ranks = [_ranks(of_dataset) for of_dataset in scores]
    systems = list(dict.fromkeys(system for of_dataset in scores for system in of_dataset))
    varied = {key for key, _ in (item for system in systems for item in system)}
    shared = {key for key in varied if len({repr(dict(system).get(key)) for system in systems}) == 1}
    rows = []
    for system in systems:
        places = [of_dataset[system] for of_dataset in ranks if system in of_dataset]
        mean_rank = sum(places) / len(ranked) if len(places) == len(ranked) else None
        rows.append([_label(system, shared), mean_rank, *(of_dataset.get(system) for of_dataset in scores)])
    return Table(columns, sorted(rows, key=lambda row: (row[1] is None, row[1] or 0.0, row[0])))


def _titles(boards: Sequence[Leaderboard]) -> list[str]:
    """Return the name of each dataset, with as much of its identity as tells it from the others."""
    names = [(d.name, d.split, d.fingerprint[:6]) for board in boards if (d := board.dataset) is not None]
    for title in ("{0}", "{0} ({1})"):
        titles = [title.format(*name) for name in names]
        if len(set(titles)) == len(titles):
            return titles
    return [f"{name} ({split}, {fingerprint})" for name, split, fingerprint in names]


def _system(swept: Mapping[str, Any]) -> System:
    return tuple((key, value) for key, value in swept.items() if key.partition(".")[0] != "dataset")


def _label(system: System, shared: set[str]) -> str:
    parts = [f"{key.rpartition('.')[2]}={told(value)}" for key, value in system if key not in shared]
    return ", ".join(parts) or "the only system"


def _ranks(scores: Mapping[System, float]) -> dict[System, float]:
    """Return the rank of each score, the largest first; equal scores share the mean of their ranks."""
    values = [value for value in scores.values() if value == value]
    return {
        system: sum(value > own for value in values) + (sum(value == own for value in values) + 1) / 2
        for system, own in scores.items()
        if own == own
    }


def _rank(value: float | None) -> str:
    return number(value) if value is None or value == int(value) else f"{value:.1f}"
