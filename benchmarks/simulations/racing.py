"""Measure how often a race keeps the winner of the full sweep, and how many evaluations it saves.

Scores are those of 50 real hybrids (five k1 by five b by two weights of an LSA part) on each collection with at least
1,000 judged queries, and a null: every configuration has the values of the best one, in another order of the queries,
so that all means are equal; the first configuration counts as the winner. Each repetition draws 1,000 queries and their
order. The last rows are searches in place of grids: Optuna's TPE chooses from the same configurations, and each trial
races against the best one so far.

    python -m benchmarks.simulations.racing FOLDER [REPETITIONS [COLLECTION ...]]

FOLDER keeps the scores of each collection between commands.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import optuna
from numpy.typing import NDArray

from benchmarks.cases import DATA
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.lsa import LSAEncoder
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from runner.datasets.beir import Beir
from runner.metrics.measures import parse
from runner.metrics.scores import score
from runner.statistics.racing import Drop, ErrorBudget, run_race

Floats = NDArray[np.float64]

SPLITS = {"scifact": ("train", "test"), "cosqa": ("dev", "test"), "xquad-en": ("test",)}
"""The splits of each collection that together have at least 1,000 judged queries."""

QUERIES, ALPHA = 1000, 0.05
"""The number of queries of a race, and the error rate."""

RULE = 12.0, 6.0
"""The rule of thumb of `docs/racing.md`: `factor` and `least` of `predict`."""

TRIALS, GRID = 40, {"k1": 5, "b": 5, "weight": 2}
"""The trials of a search, and the number of values of each setting."""

CASES = (
    (5, 0.0, False), (20, 0.0, False), (50, 0.0, False), (20, 0.01, False), (20, 0.02, False), (20, 0.0, True),
)  # fmt: skip
"""The size of a block, the margin, and whether the means are made equal."""


def load_scores(collection: str, folder: Path) -> Floats:
    """Return nDCG@10 of the 50 hybrids on all judged queries (50 x queries), computed once and kept in a folder."""
    file = folder / f"{collection}.npy"
    if file.is_file():
        kept: Floats = np.load(file)
        return kept
    parts: list[Floats] = []
    for split in SPLITS[collection]:
        dataset, store = Beir(path=str(DATA / collection), split=split).load(), MemoryStore()
        rows: list[Floats] = []
        for k1, b, alpha in product((0.5, 1.0, 1.5, 2.0, 2.5), (0.0, 0.25, 0.5, 0.75, 1.0), (0.3, 0.7)):
            hybrid = Hybrid({"lexical": BM25(k1=k1, b=b), "latent": Dense(encoder=LSAEncoder())}, alpha=alpha)
            rankings = search_cached(hybrid, dataset.corpus, dataset.queries.inputs, 100, store)
            measured = score(rankings, dataset.judgments, len(dataset.queries), len(dataset.corpus), [parse("nDCG@10")])
            rows.append(measured.values[0])
        scores = np.stack(rows)
        parts.append(scores[:, ~np.isnan(scores[0])])
    scores = np.concatenate(parts, axis=1)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(file, scores)
    return scores


@dataclass(frozen=True)
class Outcome:
    """What simulated races did: shares of races, of evaluations saved, the mean number of survivors, the largest loss.

    `same` is the share in which the winner of the full sweep survived, `errors` that in which all survivors were worse
    by more than the margin.
    """

    same: float
    errors: float
    saved: float
    survivors: float
    loss: float


def draw(scores: Floats, rng: np.random.Generator, null: bool) -> Floats:
    """Return the scores on some queries; with `null`, reordered values of the best configuration for all."""
    drawn: Floats = scores[:, rng.permutation(scores.shape[1])[:QUERIES]]
    if null:
        drawn = rng.permuted(np.tile(drawn[np.argmax(drawn.mean(axis=1))], (len(drawn), 1)), axis=1)
    return drawn


def simulate(scores: Floats, block: int, margin: float, repetitions: int, null: bool) -> Outcome:
    """Race the configurations, or with `null` reordered values of the best of them, and return the outcome."""
    same, errors, saved, survivors, losses = 0, 0, 0.0, 0.0, [0.0]
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, block])
        drawn = draw(scores, rng, null)
        means = np.round(drawn.mean(axis=1), 12)
        race = run_race(drawn, rng.permutation(drawn.shape[1]), block, ALPHA, margin)
        is_same = bool(np.argmax(means) in race.survivors)
        losses.append(float(means.max() - means[race.survivors].max()))
        same += is_same
        errors += not is_same if margin == 0 else losses[-1] > margin
        saved += 1 - race.evaluations / drawn.size
        survivors += len(race.survivors)
    n = repetitions
    return Outcome(same / n, errors / n, saved / n, survivors / n, max(losses))


def predict(scores: Floats, factor: float, least: float = 0.0) -> float:
    """Return the share saved if n queries drop a configuration: `factor` (sd / gap)^2, at least `least` / gap.

    The gap to the best configuration and the standard deviation of the differences are assumed to be known. For a
    finite set of N queries, n becomes n / (1 + n / N).
    """
    best = int(np.argmax(scores.mean(axis=1)))
    differences = np.delete(scores[best] - scores, best, axis=0)
    gaps, deviations = np.maximum(differences.mean(axis=1), 1e-12), differences.std(axis=1)
    needed = np.maximum(factor * (deviations / gaps) ** 2, least / gaps)
    return float((1 - needed / (needed + QUERIES)).sum() / len(scores))


def simulate_search(scores: Floats, repetitions: int, null: bool) -> Outcome:
    """Let Optuna's TPE search the grid, race each trial against the best one so far, and return the outcome.

    An error is a race that dropped a trial which is better; with `null`, which is equally good. `saved` is relative to
    the same trials without races.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    same, errors, saved, survivors, losses = 0, 0, 0.0, 0.0, [0.0]
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, TRIALS])
        drawn = draw(scores, rng, null)
        means, budget = np.round(drawn.mean(axis=1), 12), ErrorBudget(ALPHA)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=repetition))
        complete: list[int] = []
        dropped: dict[int, Drop] = {}
        wrong = False
        for number in range(TRIALS):
            trial = study.ask()
            point = [trial.suggest_int(name, 0, n - 1) for name, n in GRID.items()]
            one = int(np.ravel_multi_index(point, tuple(GRID.values())))
            if complete and one not in (*complete, *dropped):
                best = complete[int(np.argmax(means[complete]))]
                share = budget.share(TRIALS - number)
                race = run_race(drawn[[one, best]], rng.permutation(drawn.shape[1]), 20, share)
                drop = next((drop for drop in race.drops if drop.configuration == 0), None)
                if drop is not None:
                    dropped[one] = drop
                    wrong |= bool(means[one] > means[best] or null)
                budget.charge(share, means[one] if drop is None else None, means[best])
            if one in dropped:
                trial.report(dropped[one].mean, dropped[one].queries)
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                continue
            study.tell(trial, means[one])
            complete += [one] if one not in complete else []
        losses.append(float(means[[*complete, *dropped]].max() - means[complete].max()))
        same += losses[-1] == 0
        errors += wrong
        searched = sum(drop.queries for drop in dropped.values()) + QUERIES * len(complete)
        saved += 1 - searched / (QUERIES * (len(complete) + len(dropped)))
        survivors += len(complete)
    n = repetitions
    return Outcome(same / n, errors / n, saved / n, survivors / n, max(losses))


def main(folder: str, repetitions: str = "500", *collections: str) -> None:
    """Print a row for each collection and case, then for each with a search, and then what could be saved at best."""
    print("| scores | queries per block | margin | same winner | errors | saved | survivors | largest loss |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for collection in collections or SPLITS:
        scores = load_scores(collection, Path(folder))
        for block, margin, null in CASES:
            made = simulate(scores, block, margin, int(repetitions), null)
            show(collection, null, f"{block} | {margin:g}", made)
    for collection in collections or SPLITS:
        for null in (False, True):
            made = simulate_search(load_scores(collection, Path(folder)), int(repetitions), null)
            show(f"{collection}, search", null, "20 | 0", made)
    for collection in collections or SPLITS:
        scores = load_scores(collection, Path(folder))
        known, rule = predict(scores, 2 * np.log(1 / ALPHA)), predict(scores, *RULE)
        print(f"{collection}: a test that knows all differences saves {known:.1%}; the rule of thumb says {rule:.1%}")


def show(name: str, null: bool, settings: str, made: Outcome) -> None:
    """Print a row."""
    name = f"{name}, equal means" if null else name
    figures = f"{made.same:.3f} | {made.errors:.3f} | {made.saved:.1%} | {made.survivors:.1f} | {made.loss:.4f}"
    print(f"| {name} | {settings} | {figures} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
