"""The table of a paper: its cells, and every mark and test against an independent computation."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from runner.comparison.comparability import ReportError
from runner.evaluation.result import DatasetSummary, Holes, Result
from runner.features.table.paper_table import PaperTable, build_paper_table, name_column
from runner.features.table.report.documents import table_csv
from runner.statistics.across_datasets import compare_across, compute_mean_ranks
from runner.statistics.settings import Statistics
from tests.pages.factory import result

PRIMARY = "nDCG@10"
DATASETS = ("harbour", "reef", "delta", "fjord", "atoll", "strait")
NAMES = [f"k1={system}" for system in range(6)]
QUERIES = 8
"""Few enough for an exact test of all signs."""

Floats = NDArray[np.float64]


def make_results(systems: int = 6, datasets: Sequence[str] = DATASETS, queries: int = QUERIES) -> list[Result]:
    """Return results of systems with distinct settings on several datasets, some clearly better than others."""
    results = []
    for position, name in enumerate(datasets):
        summary = DatasetSummary(name, "test", f"{position:032x}", f"{position:032x}", 120, queries, 3 * queries)
        for system in range(systems):
            one = result(
                f"k1={system}", swept={"retriever.k1": system, "dataset.path": f"data/{name}"}, hits=False,
                seed=31 * position + system, quality=0.15 + 0.15 * (system % 4), queries=queries, no_result=1,
            )  # fmt: skip
            config = {**one.config, "retriever": {"k1": system}}
            results.append(replace(one, config=config, dataset=summary))
    return results


@pytest.fixture(scope="module")
def table() -> PaperTable:
    return build_paper_table(make_results())


def adjust_by_brute_force(scores: Floats) -> dict[tuple[int, int], float]:
    """Return the step-down max-T p-value of each pair of systems, from all sign assignments, in plain Python."""
    pairs = [(i, j) for i in range(len(scores)) for j in range(i + 1, len(scores))]
    differences = {
        pair: [round(x - y, 12) for x, y in zip(*scores[list(pair)].tolist(), strict=True)] for pair in pairs
    }
    squares = {pair: sum(d * d for d in differences[pair]) for pair in pairs}
    floor = float(np.median([s for s in squares.values() if s > 0]))

    def statistic(pair: tuple[int, int], signs: Sequence[int]) -> float:
        total = sum(sign * d for sign, d in zip(signs, differences[pair], strict=True))
        return abs(total) / math.sqrt(squares[pair] + floor)

    every = list(product((1, -1), repeat=scores.shape[1]))
    flipped = {pair: [statistic(pair, signs) for signs in every] for pair in pairs}
    observed = {pair: flipped[pair][0] for pair in pairs}
    adjusted, largest = {}, 0.0
    for pair in sorted(pairs, key=lambda pair: -observed[pair]):
        rest = [other for other in pairs if observed[other] <= observed[pair] + 1e-12]
        reached = sum(max(flipped[other][i] for other in rest) >= observed[pair] - 1e-9 for i in range(len(every)))
        largest = max(largest, reached / len(every))
        adjusted[pair] = largest
    return adjusted


def of_dataset(results: Sequence[Result], name: str) -> Floats:
    """Return the scores of each system on the queries of a dataset that count."""
    scores = np.stack([one.of(PRIMARY) for one in results if one.dataset.name == name])
    return scores[:, ~np.isnan(scores[0])]


@pytest.mark.parametrize("baseline", ["", "k1=0"])
def test_every_mark_is_that_of_a_brute_force_max_t_test(baseline: str) -> None:
    results = make_results()
    table = build_paper_table(results, baseline=baseline)
    marks = []
    for column, name in enumerate(DATASETS):
        scores = of_dataset(results, name)
        p_values, means = adjust_by_brute_force(scores), scores.mean(axis=1)
        reference = NAMES.index(baseline) if baseline else int(means.argmax())
        for row, cells in enumerate(table.cells):
            cell = cells[column]
            assert cell is not None
            assert cell.mean == pytest.approx(means[row])
            assert cell.is_best == (row == means.argmax())
            if row != reference:
                p = p_values[min(row, reference), max(row, reference)]
                own = cell.difference
                assert own.corrected == pytest.approx(p)
                sign = "+" if means[row] > means[reference] else "-"
                assert cell.mark == (sign if p < 0.05 else "")
                differences = scores[row] - scores[reference]
                assert (own.wins, own.losses) == ((differences > 0).sum(), (differences < 0).sum())
                assert own.wins + own.ties + own.losses == cell.queries == QUERIES
            marks.append(cell.mark)
    assert "-" in marks if not baseline else "+" in marks
    assert "" in marks


def test_exploratory_measures_are_corrected_together_and_the_primary_one_is_not() -> None:
    results, others = make_results(queries=20), ["RR", "AP"]
    table = build_paper_table(results, [PRIMARY, *others], "k1=0", Statistics(test="t", correction="holm"))
    alone = {
        measure: build_paper_table(results, [measure], "k1=0", Statistics(test="t", correction="holm"))
        for measure in (PRIMARY, *others)
    }
    several = 0
    for cell in table.list_cells():
        single = alone[cell.measure].cells[table.systems.index(cell.system)][table.datasets.index(cell.dataset)]
        assert single is not None
        if cell.system == "k1=0":
            continue
        times = 1 if cell.measure == PRIMARY else 2
        assert cell.difference.corrected == pytest.approx(min(single.difference.corrected * times, 1))
        assert bool(cell.mark) == (cell.difference.corrected < 0.05)
        assert bool(cell.mark) == (cell.difference.low > 0 or cell.difference.high < 0)
        several += 0.05 < cell.difference.corrected < 1 and single.mark != ""
    assert several > 0
    for line in table.across:
        (single,) = (own for own in alone[line.measure].across if own.system == line.system)
        times = 1 if line.measure == PRIMARY else 2
        if line.system != "k1=0":
            assert line.new.corrected == pytest.approx(min(single.new.corrected * times, 1))
            assert line.same.corrected == pytest.approx(min(single.same.corrected * times, 1))


def test_two_systems_share_no_letter_where_a_brute_force_max_t_test_tells_them_apart(table: PaperTable) -> None:
    results, outcomes = make_results(), []
    for column, name in enumerate(DATASETS):
        for (i, j), p in adjust_by_brute_force(of_dataset(results, name)).items():
            one, other = (cells[column] for cells in (table.cells[i], table.cells[j]))
            assert one is not None and other is not None
            outcomes.append(p < 0.05)
            assert {*one.letters}.isdisjoint(other.letters) == outcomes[-1]
        assert all("a" in cell.letters for cells in table.cells if (cell := cells[column]) and cell.is_best)
    assert {*outcomes} == {True, False}
    assert table.marks == "letters"
    assert build_paper_table(results, baseline="k1=0").marks == "signs"
    assert build_paper_table(results, baseline="k1=0", marks="letters").marks == "letters"
    assert {cell.letters for cell in build_paper_table(results[::6]).list_cells()} == {""}


def test_marks_of_a_t_test_with_holm_are_those_of_scipy() -> None:
    results = make_results(queries=20)
    table = build_paper_table(results, baseline="k1=1", statistics=Statistics(test="t", correction="holm"))
    for column, name in enumerate(DATASETS):
        scores = of_dataset(results, name)
        pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
        single = [float(stats.ttest_rel(scores[i], scores[j]).pvalue) for i, j in pairs]
        corrected: dict[tuple[int, int], float] = {}
        order, largest = sorted(range(15), key=lambda i: single[i]), 0.0
        for place, i in enumerate(order):
            largest = max(largest, min(1.0, single[i] * (15 - place)))
            corrected[pairs[i]] = largest
        for row in (0, 2, 3, 4, 5):
            cell = table.cells[row][column]
            assert cell is not None
            assert cell.difference.corrected == pytest.approx(corrected[min(row, 1), max(row, 1)])
            assert bool(cell.mark) == (cell.difference.corrected < 0.05)


def test_effects_are_hedges_g_and_intervals_exclude_0_where_there_is_a_mark(table: PaperTable) -> None:
    results = make_results()
    for cell in table.list_cells():
        if cell.system == cell.reference:
            assert math.isnan(cell.difference.mean)
            continue
        assert bool(cell.mark) == (cell.difference.low > 0 or cell.difference.high < 0)
        one, reference = (
            of_dataset(results, cell.dataset)[NAMES.index(name)] for name in (cell.system, cell.reference)
        )
        d = (one - reference).mean() / (one - reference).std(ddof=1)
        g = d * math.gamma(3.5) / math.gamma(3) * math.sqrt(2 / 7)
        assert cell.difference.effect == pytest.approx(g)


def test_the_csv_has_a_row_per_cell_in_columns_of_fixed_order(table: PaperTable) -> None:
    rows = list(csv.DictReader(io.StringIO(table_csv(table))))
    assert list(rows[0]) == [
        "id", "system", "dataset", "measure", "mean", "low", "high", "queries", "is_best", "reference", "difference",
        "difference_low", "difference_high", "effect", "p", "mark", "letters", "wins", "ties", "losses",
    ]  # fmt: skip
    for row, cell in zip(rows, table.list_cells(), strict=True):
        own = cell.difference
        assert (row["id"], row["mark"].strip(), float(row["mean"])) == (cell.id, cell.mark, cell.mean)
        assert (float(row["wins"]), float(row["losses"])) == (own.wins, own.losses)
        if cell.system != cell.reference:
            assert (float(row["difference_low"]), float(row["p"])) == (own.low, own.corrected)
    assert {row["mark"] for row in rows} == {"", " -"}, "a spreadsheet takes a minus sign for a formula"


def test_new_datasets_are_tested_by_students_t_over_the_mean_differences() -> None:
    results = make_results()
    table = build_paper_table(results, baseline="k1=2")
    means = np.stack([of_dataset(results, name).mean(axis=1) for name in DATASETS], axis=1)
    single = {row: float(stats.ttest_rel(means[row], means[2]).pvalue) for row in (0, 1, 3, 4, 5)}
    largest = 0.0
    for place, row in enumerate(sorted(single, key=lambda row: single[row])):
        largest = max(largest, min(1.0, single[row] * (5 - place)))
        line = table.across[row]
        assert line.new.corrected == pytest.approx(largest)
        low, high = stats.ttest_rel(means[row], means[2]).confidence_interval()
        assert (line.new.low, line.new.high) == pytest.approx((low, high))
        assert line.same.mean == pytest.approx((means[row] - means[2]).mean())
        assert (line.new.wins, line.new.losses) == ((means[row] > means[2]).sum(), (means[row] < means[2]).sum())
        marks = [table.cells[row][column] for column in range(6)]
        assert (line.better, line.worse) == tuple(sum(c.mark == sign for c in marks if c) for sign in "+-")
    ranks = np.stack([stats.rankdata(-means[:, i]) for i in range(6)]).mean(axis=0)
    assert [line.mean_rank for line in table.across] == pytest.approx(ranks.tolist())


def test_datasets_of_different_size_weigh_the_same() -> None:
    rng = np.random.default_rng(3)
    scores = [rng.random((2, 4)), rng.random((2, 7))]
    across = compare_across(0, scores)
    expected = np.mean([part[1].mean() - part[0].mean() for part in scores])
    assert across.same.differences[1] == pytest.approx(expected)
    weighted = [(part[1] - part[0]) / part.shape[1] for part in scores]
    every = np.array(list(product((1, -1), repeat=11)))
    sums = np.abs(every @ np.concatenate(weighted))
    assert across.same.p_values[1] == pytest.approx((sums >= sums[0] - 1e-12).mean())


def test_equal_means_share_a_rank() -> None:
    assert compute_mean_ranks(np.array([[0.5, 0.9], [0.5, 0.1], [0.2, 0.9]])).tolist() == [1.5, 2.25, 2.25]


def test_one_dataset_is_not_compared_across_datasets() -> None:
    assert build_paper_table(make_results(datasets=["harbour"])).across == []


def test_a_system_without_a_result_on_a_dataset_leaves_a_gap(table: PaperTable) -> None:
    results = [one for one in make_results() if (one.name, one.dataset.name) != ("k1=3", "reef")]
    few = build_paper_table(results)
    assert few.cells[3][1] is None
    assert [row.system for row in few.across] == [*NAMES[:3], *NAMES[4:]]
    assert few.cells[0][0] == table.cells[0][0]
    assert table.cells[3][1] is not None


def test_datasets_are_chosen_and_ordered_and_systems_renamed() -> None:
    few = build_paper_table(make_results(), ["RR", PRIMARY], datasets=["reef", "harbour"], names={"k1=0": "BM25"})
    assert few.datasets == ["reef", "harbour"]
    assert few.systems[0] == "BM25"
    assert [(cell.id, cell.dataset, cell.measure) for cell in few.cells[0] if cell] == [
        ("A1", "reef", "RR"), ("B1", "reef", PRIMARY), ("C1", "harbour", "RR"), ("D1", "harbour", PRIMARY),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "bm26"}, "baseline=bm26: no such system; choose from k1=0, k1=1"),
        ({"datasets": ["sea"]}, "datasets=sea: no such dataset; choose from harbour"),
        ({"names": {"9": "x"}}, r"names\.9: no such system"),
        ({"names": {"k1=0": "k1=1"}}, "two systems have the same name"),
    ],
)
def test_a_mistake_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ReportError, match=message):
        build_paper_table(make_results(2), **options)  # type: ignore[arg-type]  # of each test


def test_two_different_results_of_a_system_on_a_dataset_are_refused() -> None:
    first, *_ = results = make_results(2)
    with pytest.raises(ReportError, match="two different results of the same system on harbour"):
        build_paper_table([*results, replace(first, scores=first.scores / 2)])


def test_columns_are_named_as_in_a_spreadsheet() -> None:
    assert [name_column(i) for i in (0, 25, 26, 51, 52, 701, 702)] == ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]


def test_a_dataset_without_any_known_hit_is_refused_by_name() -> None:
    foreign = Holes(10, 80, 80, 80, 80, {"10": 1.0})
    results = [
        replace(one, holes=foreign if one.dataset.name == "reef" else None) for one in make_results(2, DATASETS[:3])
    ]
    with pytest.raises(ReportError, match="reef: no hit of any result has an id of the dataset; leave it out"):
        build_paper_table(results)
    assert build_paper_table(results, datasets=["harbour", "delta"]).foreign == []
