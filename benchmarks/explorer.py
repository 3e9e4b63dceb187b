"""The pages of a large sweep and of a large comparison: their sizes, and how fast a browser works with the sweep.

`python -m benchmarks.explorer FOLDER [COMBINATIONS QUERIES]` writes the pages of an invented sweep with the hits of its
best 5, and of a comparison of 5 systems on 500 queries with texts, to FOLDER. Where playwright and chromium are
installed, it measures the sweep. The bars are absolute: 20 MB for the sweep, first paint within a second, sorting and
filtering within 100 ms, and 10 MB for the comparison.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from retrievers.base import Corpus, Rankings
from runner.comparison.compare import Comparison, TableStatistics, compare_results
from runner.comparison.criteria import select_criteria
from runner.comparison.leaderboard import Leaderboard, LeaderboardRow
from runner.comparison.report.page import comparison_page
from runner.evaluation.result import DatasetSummary, Hits, QueryTable, Result, Timings
from runner.metrics.abstention import Abstention
from runner.statistics.comparison import Difference
from runner.statistics.settings import Statistics
from runner.sweep.report.page import sweep_page

PRIMARY, OTHERS = "nDCG@10", ("R@100", "RR", "P@10", "AP")
ENCODERS = ("minilm", "bge-small", "e5-small", "potion", "lsa")
TYPES = ("navigational", "factual", "how-to")
WORDS = ("harbour", "storm", "lamp", "keeper", "tide", "rope", "anchor", "signal", "chart", "vessel", "pilot", "reef")

TIMED = """async ({change}) => {
  const board = document.querySelector("#board");
  const start = performance.now();
  new Function("board", change)(board);
  board.getBoundingClientRect();
  const script = performance.now() - start;
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return [script, performance.now() - start, board.querySelector("output").textContent];
}"""
"""Make a change, lay the page out, and wait until it is drawn; return both times and the number of rows."""

CHANGES = {
    "sort by number": "board.querySelector('[data-column=difference]').click()",
    "sort by text": "board.querySelector('[data-column=label]').click()",
    "filter": "const box = board.querySelector('#filter'); box.value = 'k1 > 0.9 and encoder = minilm';"
    "box.dispatchEvent(new Event('input'))",
    "clear the filter": "const box = board.querySelector('#filter'); box.value = '';"
    "box.dispatchEvent(new Event('input'))",
}


def create_sweep(combinations: int, queries: int) -> tuple[Leaderboard, list[Result]]:
    """Return a sweep over k1, b and encoder with random scores, best first, without tests of significance."""
    rng = np.random.default_rng(0)
    ease = rng.normal(0, 0.25, queries)
    texts = [" ".join(rng.choice(WORDS, size=int(rng.integers(4, 12))).tolist()) for _ in range(queries)]
    table = QueryTable(
        ids=[f"q{i}" for i in range(queries)],
        texts=texts,
        types=[TYPES[i % len(TYPES)] for i in range(queries)],
        expected=[[f"d{i}", f"d{i + 1}"] for i in range(queries)],
        statuses=["pass"] * queries,
        errors=[""] * queries,
        notes=[""] * queries,
    )
    results = list(_create_results(rng, combinations, ease, table))
    results.sort(key=lambda result: -result.means[PRIMARY])
    criteria = select_criteria(results, PRIMARY)
    best = results[0].of(PRIMARY)
    rows = []
    for i, result in enumerate(results):
        values = result.of(PRIMARY)
        half = 1.96 * float(values.std()) / math.sqrt(queries)
        gap = float((values - best).mean())
        label = ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in result.swept.items())
        rows.append(
            LeaderboardRow(
                rank=i + 1,
                position=i,
                name=result.name,
                label=label,
                retriever=result.retriever,
                swept=result.swept,
                mean=result.means[PRIMARY],
                low=result.means[PRIMARY] - half,
                high=result.means[PRIMARY] + half,
                difference=Difference(
                    mean=gap if i else math.nan,
                    low=gap - half,
                    high=gap + half,
                    effect=gap if i else math.nan,
                    corrected=float(rng.random()) if i else math.nan,
                    significant=gap < -0.02,
                    wins=int((values > best).sum()),
                    ties=int((values == best).sum()),
                    losses=int((values < best).sum()),
                ),
                means={criterion.name: criterion.value(result) for criterion in criteria},
                run=f"{i:032x}",
            )
        )
    board = Leaderboard(PRIMARY, results[0].dataset, queries, Statistics(), 0.01, {}, criteria, rows, [])
    return board, results


def _create_results(
    rng: np.random.Generator, combinations: int, ease: np.ndarray[tuple[int], np.dtype[np.float64]], table: QueryTable
) -> Iterator[Result]:
    queries = len(ease)
    dataset = DatasetSummary("invented", "test", "d" * 32, "c" * 32, 100_000, queries, 2 * queries)
    for i in range(combinations):
        k1, b = 0.4 + 0.1 * (i // 5 % 40), 0.025 * (i // 200 % 40)
        encoder = ENCODERS[i % 5]
        quality = 0.5 - 0.05 * abs(k1 - 1.2) - 0.1 * abs(b - 0.75) + 0.03 * (i % 5)
        scores = np.clip(quality + ease + rng.normal(0, 0.15, (1 + len(OTHERS), queries)), 0, 1)
        measures = (PRIMARY, *OTHERS)
        means = dict(zip(measures, scores.mean(axis=1).tolist(), strict=True))
        ms = 2 + 10 * (i % 5) + float(rng.random())
        yield Result(
            name=f"combination {i}",
            retriever="hybrid" if i % 2 else "dense",
            config={},
            config_hash=f"{i:032x}",
            dataset=dataset,
            timings=Timings(float(10 * rng.random()), 1.0, 0.1, 2.0, ms, 2 * ms, (), [ms]),
            swept={"retriever.k1": f"{k1:.1f}", "retriever.b": f"{b:.3f}", "encoder": encoder},
            primary=PRIMARY,
            queries=table,
            measures=measures,
            scores=scores,
            means=means,
            intervals={},
            by_type={},
            abstention=Abstention(0, queries, 0, 10, math.nan, ()),
        )


def create_comparison(queries: int = 500, systems: int = 5, documents: int = 20_000) -> tuple[Comparison, Corpus]:
    """Return a comparison of systems whose hits overlap, and documents of 200 words drawn from Zipf's law."""
    rng = np.random.default_rng(1)
    words = np.array(["".join(rng.choice(list("aeioubdfgklmnprst"), size=int(n))) for n in rng.integers(3, 10, 20_000)])
    drawn = np.minimum(rng.zipf(1.3, (documents, 200)), len(words)) - 1
    corpus = Corpus([f"d{i}" for i in range(documents)], [" ".join(words[row]) for row in drawn])
    _, results = create_sweep(systems, queries)
    near = rng.integers(0, documents - 30, queries)
    compared = []
    for i, result in enumerate(results):
        ranked = np.stack([start + rng.permutation(20 + i)[:10] for start in near]).astype(np.int32)
        scores = -np.sort(-rng.random((queries, 10)).astype(np.float32))
        hits = Hits(Rankings(ranked, scores), corpus.ids, (ranked % 7 == 0).astype(np.int32))
        gold = [[f"d{start}", f"d{start + 1}"] for start in near]
        table = replace(result.queries, expected=gold)
        compared.append(replace(result, hits=hits, queries=table, name=f"system {i}"))
    return compare_results(compared, TableStatistics(permutations=100)), corpus


def measure_page(path: Path) -> Iterator[tuple[str, float]]:
    """Yield what a browser takes for the page, in milliseconds: its first paint, and each change until it is drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("#board .windowed tbody button")
        first = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        yield "first paint", page.evaluate(first)
        yield "table in use", page.evaluate("performance.now()")
        for name, change in CHANGES.items():
            script, drawn, count = page.evaluate(TIMED, {"change": change})
            yield f"{name}, script and layout ({count})", script
            yield f"{name}, drawn", drawn
        browser.close()


def main() -> None:
    """Write the page and print its figures."""
    folder, *sizes = sys.argv[1:]
    combinations, queries = map(int, sizes or ("5000", "300"))
    path = Path(folder) / "report.html"
    board, results = create_sweep(combinations, queries)
    with_hits, texts = create_comparison(queries)
    best = {
        rank: replace(result, hits=of.hits, queries=of.queries)
        for rank, (result, of) in enumerate(zip(results, with_hits.results, strict=False), start=1)
    }
    start = time.perf_counter()
    path.write_text(sweep_page(board, results, best=best, corpus=texts), encoding="utf-8")
    print(f"{combinations:,} combinations, {queries:,} queries: written in {time.perf_counter() - start:.2f} s")
    print(f"size: {path.stat().st_size / 1e6:.2f} MB (bar: 20)")
    comparison, corpus = create_comparison()
    other = path.with_name("comparison.html")
    other.write_text(comparison_page(comparison, corpus=corpus), encoding="utf-8")
    print(f"comparison of 5 systems on 500 queries: {other.stat().st_size / 1e6:.2f} MB (bar: 10)")
    try:
        for name, milliseconds in measure_page(path):
            print(f"{name}: {milliseconds:.0f} ms")
    except ImportError:
        print("not measured: install playwright")


if __name__ == "__main__":
    main()
