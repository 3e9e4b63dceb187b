"""The comparison in a golden report has the figures of `compare`."""

from __future__ import annotations

from dataclasses import replace

from runner.comparison.compare import TableStatistics, compare_results
from runner.features.golden.comparison import comparison
from runner.features.golden.document import measure_names
from tests.pages.factory import result


def test_the_tests_are_those_of_a_comparison() -> None:
    first = replace(result("a", quality=0.3), config={"statistics": {"permutations": 200}})
    others = result("b", quality=0.8, seed=3), result("c", quality=0.35, seed=4)
    made = compare_results([first, *others], TableStatistics(permutations=200))
    report = comparison({"a": first, "b": others[0], "c": others[1]}, measure_names(first.measures))
    assert (report["tests"]["measure"], report["tests"]["comparisons"]) == ("nDCG@10", 2)
    for measure, name in measure_names(first.measures).items():
        for versus, key in zip(made.table[measure][1:], "bc", strict=True):
            row = report["metric_differences"][name]["others"][key]
            own = versus.difference
            assert (row["uncorrected_p"], row["p"], row["significant"]) == (own.p, own.corrected, own.significant)
    assert report["tests"]["exploratory"] == 2 * (len(made.table) - 1)
    primary = report["metric_differences"]["ndcg@10"]["others"]
    smaller, larger = sorted((primary[key] for key in "bc"), key=lambda of: of["uncorrected_p"])
    assert smaller["p"] == 2 * smaller["uncorrected_p"]
    assert (smaller["significant"], larger["p"]) == (True, max(smaller["p"], larger["uncorrected_p"]))


def test_cutoffs_that_take_in_the_whole_corpus_are_not_compared() -> None:
    first, second = (replace(r, dataset=replace(r.dataset, documents=55)) for r in (result("a"), result("b", seed=3)))
    names = measure_names(first.measures)
    differences = comparison({"a": first, "b": second}, names)["metric_differences"]
    assert "recall@100" not in differences
    assert {"recall@10", "ndcg@10", "map"} <= differences.keys()
