"""The cases about existing runs: the time to read and to compare 100 runs of 1,000 queries with 1,000 hits.

Four files are read in turn; comparisons read them under 100 names. The peer for the stages of a comparison is
ir_measures with pytrec_eval, on one file, times 100. The other cases have limits in place of a peer: one CPU second for
each TREC run, and ten seconds for everything else.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cases import RUNNER, folder_of_runs
from benchmarks.measure import Figure, spend
from retrievers.base import Corpus, QueryText
from retrievers.runs.run_file import RunFile
from retrievers.store import NoStore
from runner.datasets.judged import JudgedFiles
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.metrics.delegated import parse_delegated
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore

QUERIES, HITS, DEPTH, DOCUMENTS, FILES, READ = 1000, 1000, 100, 200_000, 4, 100
LIMIT_S, TREC_CPU_S = 10.0, 1.0


def reading_runs(read: int = READ) -> list[Figure]:
    """Read 100 runs of a million hits and rank them by a corpus of 200,000 documents."""
    corpus = Corpus([f"doc{d:07d}" for d in range(DOCUMENTS)], [""] * DOCUMENTS)
    queries = [QueryText("", f"q{q}") for q in range(QUERIES)]
    with folder_of_runs() as folder:
        files = [_write(folder, seed) for seed in range(FILES)]
        figures = []
        for kind in ("trec", "parquet"):
            _read(files[0][kind], corpus, queries, HITS)  # compiles, and fills the cache of files
            for depth in (DEPTH, HITS):
                start = time.perf_counter()
                for number in range(read):
                    _read(files[number % FILES][kind], corpus, queries, depth)
                seconds = (time.perf_counter() - start) / read * READ
                name = f"reading 100 {kind} runs of a million hits to depth {depth:,}, to the limit"
                limit = READ * TREC_CPU_S if kind == "trec" else LIMIT_S
                figures.append(Figure(name, "s", seconds, limit, 1))
    return figures


def comparing_runs() -> list[Figure]:
    """Compare 100 TREC runs without documents: whole commands against a limit, stages against ir_measures."""
    figures = []
    for kind, ids in (("short ids", _number_ids), ("UUIDs", _random_ids)):
        with folder_of_runs() as folder:
            runs, dataset = _write_judged(folder, ids)
            figures += _measure_commands(kind, runs, dataset, folder)
            ours, theirs = _measure_stages(runs, folder), _measure_peer(runs[0], folder)
        figures += [
            Figure(f"reading 100 runs with {kind}, to ir_measures", "s", ours[0], theirs[0], 1),
            Figure(f"scoring 100 runs with {kind}, to ir_measures", "s", ours[1], theirs[1], 1),
        ]
    return figures


READING = (reading_runs, comparing_runs)


def _measure_commands(kind: str, runs: list[Path], dataset: list[str], folder: Path) -> list[Figure]:
    """Return the times of a sweep over all runs, of the same sweep without MLflow, and of `compare`."""
    sweep, rest = [*RUNNER, "-m", "retriever=run", *dataset], ",".join(map(str, runs[1:]))
    spend([*sweep, f"retriever.path={runs[0]},{runs[1]}"], folder)  # compiles, and creates the database
    sweep += [f"retriever.path={runs[0]},{rest}", "sweep.resume=false"]
    commands = {
        f"comparing 100 runs with {kind}": sweep,
        f"comparing 100 runs with {kind} (tracking=none)": [*sweep, "tracking=none"],
        f"comparing 100 runs with {kind} (compare)": [
            *RUNNER, "compare", f"baseline={runs[0]}", f"candidate=[{rest}]", "gate=none", *dataset,
        ],
    }  # fmt: skip
    figures: list[Figure] = []
    cpu_limit = 2 * LIMIT_S + READ * TREC_CPU_S
    for name, command in commands.items():
        whole = spend(command, folder)
        figures.append(Figure(f"{name}, to the limit", "s", whole.seconds, cpu_limit / 2, 1))
        cpu = f"{name}, CPU seconds, to the limit on two cores"
        figures.append(Figure(cpu, "s", whole.cpu_seconds, cpu_limit, 1))
    return figures


def _measure_stages(runs: list[Path], folder: Path) -> tuple[float, float]:
    """Return the seconds to read and rank all runs, and the seconds to score them."""
    source = JudgedFiles(queries=str(folder / "queries.jsonl"), qrels=str(folder / "qrels.tsv"))
    config = {"choices": {"retriever": "run"}}

    def evaluate(bench: Bench, run: Path) -> Result:
        return bench.evaluate(Experiment(run.name, "run", RunFile(str(run)), source, MetricSettings(), config, {}))

    evaluate(Bench(DiskStore(folder / "first")), runs[0])  # loads compiled code
    bench = Bench(DiskStore(folder / "store"))
    results = [evaluate(bench, run) for run in runs]
    times = [result.timings for result in results]
    return sum(t.index_s + t.search_s for t in times), sum(t.score_s for t in times)


def _measure_peer(run: Path, folder: Path) -> tuple[float, float]:
    """Return the seconds in which ir_measures reads and scores a run, times 100, for the measures that it supports."""
    import ir_measures

    measures = [
        parse_delegated(str(measure))
        for measure in MetricSettings().expanded
        if measure.name in ("nDCG", "P", "R", "RR", "AP", "Success")
    ]
    qrels = [
        ir_measures.Qrel(query, document, int(grade))
        for query, document, grade in (line.split() for line in (folder / "qrels.tsv").read_text().splitlines())
    ]
    start = time.perf_counter()
    hits = list(ir_measures.read_trec_run(str(run)))
    middle = time.perf_counter()
    ir_measures.calc_aggregate(measures, qrels, hits)
    return (middle - start) * READ, (time.perf_counter() - middle) * READ


def _write_judged(folder: Path, ids: Callable[[np.random.Generator], list[str]]) -> tuple[list[Path], list[str]]:
    """Write queries, judgments and four runs under 100 names; return these names and the settings of the dataset."""
    random = np.random.default_rng(0)
    names, queries = ids(random), [str(q) for q in random.choice(1_100_000, QUERIES, replace=False)]
    pools = [random.choice(DOCUMENTS, 5 * HITS // 2, replace=False) for _ in queries]
    judged = [(q, names[d]) for q, pool in zip(queries, pools, strict=True) for d in pool[: random.integers(1, 40)]]
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "{q}", "text": "query {q}"}}\n' for q in queries))
    (folder / "qrels.tsv").write_text("".join(f"{q}\t{d}\t{random.integers(0, 4)}\n" for q, d in judged))
    files = []
    for number in range(FILES):
        lines = []
        for query, pool in zip(queries, pools, strict=True):
            ranked = pool[np.argsort(-np.linspace(1.2, 0, len(pool)) - random.random(len(pool)))[:HITS]].tolist()
            scores = -np.sort(-random.gamma(5, 3, HITS))
            hits = zip(ranked, scores.tolist(), strict=True)
            lines += [f"{query} Q0 {names[d]} {i} {s:.6f} system-{number}\n" for i, (d, s) in enumerate(hits, 1)]
        files.append(folder / f"system-{number}.txt")
        files[-1].write_text("".join(lines))
    runs = [folder / f"{number:02d}.trec" for number in range(READ)]
    for number, run in enumerate(runs):
        run.hardlink_to(files[number % FILES])
    return runs, ["dataset=judged", f"dataset.queries={folder}/queries.jsonl", f"dataset.qrels={folder}/qrels.tsv"]


def _number_ids(random: np.random.Generator) -> list[str]:
    return [f"MARCO_{number}" for number in random.choice(8_841_823, DOCUMENTS, replace=False).tolist()]


def _random_ids(random: np.random.Generator) -> list[str]:
    return [str(uuid.UUID(bytes=random.bytes(16))) for _ in range(DOCUMENTS)]


def _read(file: Path, corpus: Corpus, queries: list[QueryText], depth: int) -> None:
    RunFile(str(file)).index(corpus, NoStore()).search(queries, depth)


def _write(folder: Path, seed: int) -> dict[str, Path]:
    random = np.random.default_rng(seed)
    documents = np.concatenate([random.choice(DOCUMENTS, HITS, replace=False) for _ in range(QUERIES)])
    scores = -np.sort(-random.random((QUERIES, HITS)).astype(np.float32), axis=1).ravel()
    names = [f"doc{d:07d}" for d in documents.tolist()]
    rows = zip(names, scores.tolist(), strict=True)
    lines = (f"q{i // HITS} Q0 {name} {i % HITS + 1} {score!r} x\n" for i, (name, score) in enumerate(rows))
    trec, parquet = folder / f"{seed}.trec", folder / f"{seed}.parquet"
    trec.write_text("".join(lines))
    ids = [f"q{i // HITS}" for i in range(len(names))]
    pq.write_table(pa.table({"query_id": ids, "document_id": names, "score": scores}), parquet)
    return {"trec": trec, "parquet": parquet}
