"""How many planted losses of gold are named rightly, on generated documents and on three collections.

Queries with a filter are searched by BM25 and latent semantic analysis, by their fusion, and by a reranker of this,
each for itself. For each query and step, a document with that fate becomes gold: its ranks say which step loses it. The
evaluation of the whole pipeline on this gold then has to name the step.
`python -m benchmarks.simulations.stage_losses` prints a table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from retrievers.base import NOTHING, Corpus, Rankings, Retriever
from retrievers.composed.fusion import Hybrid
from retrievers.composed.reranked import Reranked
from retrievers.encoders.lsa import LSAEncoder
from retrievers.filters import parse_filter
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.store import MemoryStore, Store
from retrievers.vectors.dense import Dense
from runner.datasets.base import Judgments, Queries
from runner.datasets.beir import Beir
from runner.datasets.chunking import Whole
from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.losses import THRESHOLD
from runner.metrics.settings import MetricSettings
from runner.store.disk import DiskStore

COLLECTIONS = ("scifact", "cranfield", "medquad")
QUERIES, K, PART_DEPTH, CANDIDATES, DEPTH = 100, 10, 100, 40, 30
FOUND = "(found)"
STEPS = ("not in the corpus", "filter", "not retrieved", "fusion", "candidates", "reranker", "cutoff", THRESHOLD, FOUND)

Ranks = Mapping[int, int]
"""The rank of each document in the hits of a query."""


@dataclass(frozen=True)
class SharedWords:
    """A reranker: the share of the words of a text that the query has."""

    def open(self, store: Store) -> Rerank:
        """Return the reranker."""
        analyzer = Analyzer()

        def rerank(queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store) -> list[CandidateScores]:
            scores = []
            for query, texts in zip(queries, candidates, strict=True):
                wanted, words = set(analyzer.tokens(query)), map(analyzer.tokens, texts)
                shares = [sum(word in wanted for word in own) / max(len(own), 1) for own in words]
                scores.append(CandidateScores(np.array(shares, dtype=np.float32)))
            return scores

        return rerank


PARTS: dict[str, Retriever] = {"lexical": BM25(), "latent": Dense(encoder=LSAEncoder())}
FUSED = Hybrid(parts=PARTS, method="rrf", depth=PART_DEPTH)
PIPELINE = Reranked(base=FUSED, reranker=SharedWords(), depth=CANDIDATES)


def draw_dataset(seed: int = 0) -> Dataset:
    """Return generated documents, and queries of five words from each of some documents."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(10, 2010)
    words = [f"w{number}" for number in range(len(weights))]
    texts = [" ".join(rng.choice(words, 40, p=weights / weights.sum())) for _ in range(1000)]
    queries = {f"q{n}": " ".join(rng.choice(texts[n].split(), 5)) for n in range(QUERIES)}
    ids = [f"d{n}" for n in range(len(texts))]
    return Dataset.of(Corpus(ids, texts), queries, {query: {"d0": 1} for query in queries}, name="generated")


def add_filters(dataset: Dataset) -> Dataset:
    """Return the first queries of a dataset, each with a filter that every other document passes."""
    metadata = [{"half": place % 2} for place in range(len(dataset.corpus))]
    corpus = replace(dataset.corpus, metadata=metadata, filter_fields=("half",))
    ids, texts = dataset.queries.ids[:QUERIES], dataset.queries.texts[:QUERIES]
    filters = [parse_filter({"half": 0})] * len(ids)
    queries = Queries(ids, texts, [""] * len(ids), filters=filters)
    return Dataset(dataset.name, "test", corpus, queries, Judgments.of([(0, 0, 1)]), exclude_self="false")


def search(retriever: Retriever, dataset: Dataset, k: int) -> tuple[list[Ranks], Rankings]:
    """Return the rank of each document in the hits of each query, and the rankings."""
    rankings = retriever.index(dataset.corpus, MemoryStore()).search(dataset.queries.inputs, k)
    rows = [{document: rank for rank, document in enumerate(row, 1)} for row in map(list_hits_of, rankings.documents)]
    return rows, rankings


def list_hits_of(row: NDArray[np.int32]) -> list[int]:
    """Return the documents of a query."""
    return [document for document in row.tolist() if document != NOTHING]


def find_fate(parts: Sequence[Ranks], candidates: Ranks, final: Ranks, document: int, low: bool) -> str:
    """Return the step that loses a document of a query; `low` says whether its score is below the threshold."""
    if document in final and final[document] <= K:
        return THRESHOLD if low else FOUND
    if document in candidates and candidates[document] <= K:
        return "reranker"
    if any(ranks.get(document, K + 1) <= K for ranks in parts):
        return "fusion"
    if document in candidates:
        return "cutoff"
    return "candidates" if any(document in ranks for ranks in parts) else "not retrieved"


def plant(dataset: Dataset, seed: int = 0) -> tuple[Judgments, dict[tuple[int, int], str], float]:
    """Return judgments with a gold document for each query and step, the step of each, and the threshold."""
    rng, n = np.random.default_rng(seed), len(dataset.corpus)
    parts = [search(part, dataset, PART_DEPTH)[0] for part in PARTS.values()]
    candidates, _ = search(FUSED, dataset, CANDIDATES)
    final, rankings = search(PIPELINE, dataset, DEPTH)
    threshold = float(np.median(rankings.scores[:, :K]))
    planted = {}
    for query in range(len(dataset.queries)):
        low = {d: rankings.scores[query, rank - 1] < np.float32(threshold) for d, rank in final[query].items()}
        planted[query, n] = "not in the corpus"
        left = set(STEPS) - {"not in the corpus"}
        for document in rng.permutation(n).tolist():
            own = [ranks[query] for ranks in parts]
            fate = find_fate(own, candidates[query], final[query], document, bool(low.get(document)))
            fate = "filter" if document % 2 else fate
            if fate in left:
                left.remove(fate)
                planted[query, document] = fate
    judgments = Judgments.of([(*pair, 1) for pair in planted])
    return replace(judgments, unknown_documents=("missing",)), planted, threshold


def count_right(dataset: Dataset) -> dict[str, tuple[int, int]]:
    """Return, by step, how many of the planted losses the evaluation names, and how many there are."""
    dataset = add_filters(dataset)
    judgments, planted, threshold = plant(dataset)
    judged, source = replace(dataset, judgments=judgments), Beir(path="planted")
    metrics = MetricSettings(k_values=(K,), primary=f"nDCG@{K}", depth=DEPTH)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(DiskStore(Path(folder)))
        bench.datasets.add(source, Whole(), judged)
        result = bench.evaluate(Experiment("planted", "planted", PIPELINE, source, metrics, {"choices": {}}, {}))
    assert result.losses is not None and result.hits is not None
    rankings, order = result.hits.rankings, judgments.gold_order
    pairs = list(zip(judgments.queries[order].tolist(), judgments.documents[order].tolist(), strict=True))
    scores = [rankings.scores[query][rankings.documents[query] == document] for query, document in pairs]
    losses = result.losses.drop_below(threshold, np.array([max([-np.inf, *own]) for own in scores], np.float32))
    named = [losses.steps[code] if code >= 0 else FOUND for code in losses.codes.tolist()]
    counts = {step: (0, 0) for step in STEPS}
    for pair, step in zip(pairs, named, strict=True):
        right, n = counts[planted[pair]]
        counts[planted[pair]] = right + (step == planted[pair]), n + 1
    return counts


def main() -> int:
    """Print, for each collection and step, how many of the planted losses are named rightly."""
    datasets = {"generated": draw_dataset()} | {name: Beir(path=str(DATA / name)).load() for name in COLLECTIONS}
    print(f"| collection | {' | '.join(STEPS)} | all |\n|---{'|--:' * (len(STEPS) + 1)}|")
    for name, dataset in datasets.items():
        counts = count_right(dataset)
        total = tuple(map(sum, zip(*counts.values(), strict=True)))
        cells = [f"{right} of {n}" for right, n in (*counts.values(), total)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
