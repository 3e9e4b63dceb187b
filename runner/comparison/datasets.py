"""Rank the same systems on several datasets: scores are never compared between datasets, only ranks within each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from runner.comparison.labels import identify_system, label_systems
from runner.comparison.leaderboard import find_mean, order_results
from runner.comparison.systems import SystemsByDataset, SystemScores
from runner.evaluation.result import DatasetSummary, Result


def rank_systems(groups: Sequence[Sequence[Result]], primary: str) -> SystemsByDataset:
    """Rank systems by a measure of results, one group per dataset.

    Raises `ResultError` if the measure is missing.
    """
    ordered = [[results[i] for i in order_results(results, primary)] for results in groups]
    ranked = [results for results in ordered if results and not np.isnan(results[0].of(primary)).all()]
    if len(ranked) < 2:
        return SystemsByDataset()
    by_dataset = [{identify_system(one): one for one in reversed(results)} for results in ranked]
    scores = [{system: find_mean(one, primary) for system, one in own.items()} for own in by_dataset]
    ranks = [_rank(of_dataset) for of_dataset in scores]
    first = {system: one for own in reversed(by_dataset) for system, one in own.items()}
    systems = list(dict.fromkeys(system for of_dataset in scores for system in of_dataset))
    rows = []
    for system, label in zip(systems, label_systems([first[system] for system in systems]), strict=True):
        places = [of_dataset[system] for of_dataset in ranks if system in of_dataset]
        mean_rank = sum(places) / len(ranked) if len(places) == len(ranked) else None
        own = [of_dataset.get(system) for of_dataset in scores]
        rows.append(SystemScores(label, mean_rank, own))
    rows.sort(key=lambda row: (row.mean_rank is None, row.mean_rank or 0.0, row.label))
    return SystemsByDataset(title_datasets([results[0].dataset for results in ranked]), rows)


def title_datasets(datasets: Sequence[DatasetSummary]) -> list[str]:
    """Return the name of each dataset, with its split and fingerprint if names are not unique."""
    names = [(d.name, d.split, d.fingerprint[:6]) for d in datasets]
    for title in ("{0}", "{0} ({1})"):
        titles = [title.format(*name) for name in names]
        if len(set(titles)) == len(titles):
            return titles
    return [f"{name} ({split}, {fingerprint})" for name, split, fingerprint in names]


def _rank(scores: Mapping[bytes, float]) -> dict[bytes, float]:
    """Return the rank of each score, largest first; equal scores share their mean rank."""
    values = [value for value in scores.values() if value == value]
    return {
        system: sum(value > own for value in values) + (sum(value == own for value in values) + 1) / 2
        for system, own in scores.items()
        if own == own
    }
