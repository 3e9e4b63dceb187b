"""Plant changes in collections and count how often `explain` names the right ones.

Usage: `python -m benchmarks.simulations.verified_causes`.

Texts are moved between documents, queries get other gold, queries exchange their texts, and k1 changes: each change in
some plans, alone or with others. A change acts on a query if it moves the query by itself. This is evaluated directly
on the changed collection, without the mixtures of `explain`. If one change acts, it should be named and no other; if
several act, none should be named. `--write DIR` writes the plans for `recallops_causes.py`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import orjson
from numpy.random import Generator

from benchmarks.cases import DATA
from benchmarks.simulations.explanation import Version, change_judgments, evaluate, explain_versions
from runner.datasets.beir import Beir
from runner.evaluation.bench import Bench
from runner.store.opening import open_store
from runner.store.settings import StoreSettings

COLLECTIONS = ("adi", "cranfield", "xquad-en", "scifact")
CHANGES = ("retriever.k1", "documents", "judgments", "queries")
K1 = 2.0
SHARE = 0.2
"""The share of the documents, of the judged queries and of the texts of queries that change."""

PLANS = [plan for size in (2, 3, 4) for plan in combinations(CHANGES, size)]


@dataclass(frozen=True)
class Planted:
    """A collection before and after all changes, which can be made one by one."""

    before: Version
    after: Version

    def change(self, changes: Collection[str]) -> Version:
        """Return the collection with some of the changes; a query with another text brings its gold along."""
        sides = {name: self.after if name in changes else self.before for name in CHANGES}
        is_new = {query: self.after.queries[query] != text for query, text in self.before.queries.items()}
        return Version(
            documents=sides["documents"].documents,
            queries=sides["queries"].queries,
            qrels={query: sides["queries" if is_new[query] else "judgments"].qrels[query] for query in is_new},
            k1=sides["retriever.k1"].k1,
        )


@dataclass(frozen=True)
class Tally:
    """How many queries moved, on how many of them one change acts or several do, and how often `explain` is right.

    `cancelled` counts queries on which several act and one is named rightly: without it, the others cancel each other.
    """

    moved: int = 0
    single: int = 0
    named: int = 0
    several: int = 0
    unnamed: int = 0
    cancelled: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def read_version(collection: str) -> Version:
    """Return a collection of files."""
    data = Beir(path=str(DATA / collection)).load()
    columns = zip(*map(data.corpus.read_field, ("title", "text")), strict=True)
    texts = [f"{title} {text}".strip() for title, text in columns]
    names, qrels = data.corpus.ids, data.judgments
    grades: dict[str, dict[str, int]] = {}
    for query, document, grade in zip(qrels.queries, qrels.documents, qrels.grades, strict=True):
        if document < len(names):
            grades.setdefault(data.queries.ids[query], {})[names[document]] = int(grade)
    queries = {query: text for query, text in zip(data.queries.ids, data.queries.texts, strict=True) if query in grades}
    return Version(dict(zip(names, texts, strict=True)), queries, grades)


def plant(rng: Generator, before: Version) -> Planted:
    """Make all changes to a collection."""
    after = replace(before, documents=rotate_texts(rng, before.documents), queries=rotate_texts(rng, before.queries))
    return Planted(before, replace(change_judgments(rng, after, round(SHARE * len(before.qrels))), k1=K1))


def rotate_texts(rng: Generator, texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts of which a share is moved on to the next id, so that their words stay in the collection."""
    chosen = rng.choice(list(texts), max(2, round(SHARE * len(texts))), replace=False).tolist()
    return {**texts, **{name: texts[other] for name, other in zip(chosen, [*chosen[1:], chosen[0]], strict=True)}}


def read_states(version: Version, bench: Bench) -> dict[str, tuple[float, int | None]]:
    """Return nDCG@10 and the rank of the first gold of each query by BM25."""
    result = evaluate("direct", version, bench)
    states = {}
    for i, query in enumerate(result.queries.ids):
        gold = {document for document, grade in version.qrels[query].items() if grade > 0}
        ids = result.hits.ids(i) if result.hits else []
        rank = next((place for place, document in enumerate(ids, start=1) if document in gold), None)
        states[query] = round(float(result.of("nDCG@10")[i]), 9), rank
    return states


def check_plan(planted: Planted, plan: Sequence[str], store: Path) -> Tally:
    """Explain the changes of a plan, and count the queries whose causes are named rightly."""
    bench = Bench(open_store(StoreSettings(str(store))))
    before = read_states(planted.before, bench)
    alone = {change: read_states(planted.change({change}), bench) for change in plan}
    without = {change: read_states(planted.change({*plan} - {change}), bench) for change in plan}
    tally = Tally()
    for query in explain_versions(planted.before, planted.change(plan), store, "t").moved:
        acting = [change for change in plan if alone[change][query.query] != before[query.query]]
        is_single, is_several = len(acting) == 1, len(acting) > 1
        restoring = [change for change in plan if without[change][query.query] == before[query.query]]
        tally += Tally(
            moved=1,
            single=is_single,
            named=is_single and query.causes == acting,
            several=is_several,
            unnamed=is_several and not query.causes,
            cancelled=is_several and query.causes == restoring != [],
        )
    return tally


def write_plans(folder: Path, collection: str, planted: Planted) -> None:
    """Write the documents before and after, and the queries with their gold, as JSON."""
    gold = {q: [d for d, grade in grades.items() if grade > 0] for q, grades in planted.before.qrels.items()}
    queries = [{"id": q, "question": text, "gold": gold[q]} for q, text in planted.before.queries.items() if gold[q]]
    content = {"before": planted.before.documents, "after": planted.after.documents, "queries": queries}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{collection}.json").write_bytes(orjson.dumps(content))


def format_row(name: str, plan: str, tally: Tally) -> str:
    """Return a row of the table."""
    cells = [name, plan, *map(str, vars(tally).values())]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a row for each collection and plan, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--collections", nargs="*", default=COLLECTIONS)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    print("| collection | changes | moved | one acts | only it named | several act | none named | others cancel |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    total = Tally()
    for collection in options.collections:
        version, tallies = read_version(collection), {plan: Tally() for plan in PLANS}
        for draw in range(options.draws):
            planted = plant(np.random.default_rng([draw, len(version.documents)]), version)
            if options.write and not draw:
                write_plans(options.write, collection, planted)
            for plan in PLANS:
                with tempfile.TemporaryDirectory() as folder:
                    tallies[plan] += check_plan(planted, plan, Path(folder))
        for plan, tally in tallies.items():
            print(format_row(collection, ", ".join(plan), tally), flush=True)
            total += tally
    print(format_row("all", "", total))


if __name__ == "__main__":
    main()
