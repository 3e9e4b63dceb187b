"""Systems by dataset: the same systems side by side, ranked within each dataset alone."""

from __future__ import annotations

from dataclasses import replace

from runner.comparison.datasets import rank_systems
from runner.comparison.leaderboard import build_leaderboard
from runner.comparison.systems import SystemsByDataset
from runner.evaluation.result import Result
from runner.sweep.report.page import sweep_page
from runner.sweep.report.sections import sweep_markdown
from runner.sweep.report.tables import systems_table
from tests.pages.factory import result

PRIMARY = "nDCG@10"


def on(dataset: str, **quality: float) -> list[Result]:
    """Return a result for each value of k1 on a dataset of its own."""
    found = []
    for seed, (k1, level) in enumerate(quality.items()):
        swept = {"dataset": dataset, "retriever.k1": k1, "retriever": "bm25"}
        made = result(f"{dataset}, {k1}", swept=swept, seed=seed, quality=level)
        config = {"retriever": {"k1": k1}}
        found.append(replace(made, config=config, dataset=replace(made.dataset, name=dataset, fingerprint=dataset * 4)))
    return found


def groups() -> list[list[Result]]:
    return [on("hard", low=0.1, high=0.3), on("easy", low=0.9, high=0.7)]


def rank(*results: list[Result]) -> SystemsByDataset:
    return rank_systems(results, PRIMARY)


def test_each_system_has_its_score_on_each_dataset_and_a_mean_rank() -> None:
    table = systems_table(rank(*groups()))
    assert [column.title for column in table.columns] == ["system", "mean rank", "hard", "easy"]
    scores = {row[0]: row[2:] for row in table.rows}
    assert set(scores) == {"k1=low", "k1=high"}
    for i, results in enumerate(groups()):
        for one in results:
            assert scores[f"k1={one.swept['retriever.k1']}"][i] == one.means[PRIMARY]
    assert [row[1] for row in table.rows] == [1.5, 1.5], "each is the best on one of them"


def test_a_system_that_a_dataset_lacks_has_no_mean_rank_and_comes_last() -> None:
    rows = systems_table(rank(on("hard", low=0.1, high=0.3), on("easy", low=0.9))).texts()
    assert rows[0][:2] == ["k1=low", "1.5"]
    assert (rows[1][1], rows[1][3]) == ("\N{EN DASH}", "\N{EN DASH}")


def test_one_dataset_needs_no_such_table() -> None:
    assert not systems_table(rank(groups()[0])).rows
    assert not systems_table(rank()).rows


def test_splits_of_a_dataset_are_ranked_separately() -> None:
    results = on("hard", low=0.1)
    other = [replace(r, dataset=replace(r.dataset, split="dev")) for r in results]
    titles = rank(results, other).datasets
    assert titles == ["hard (test)", "hard (dev)"]


def test_every_report_of_the_sweep_has_the_table() -> None:
    results = groups()[0]
    board = build_leaderboard(results, PRIMARY, systems=rank(*groups()))
    for text in (sweep_markdown(board, results), sweep_page(board, results)):
        assert "Systems by dataset" in text
    assert "Systems by dataset" not in sweep_markdown(build_leaderboard(results, PRIMARY), results)
