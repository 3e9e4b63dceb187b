"""The comparison in a golden report has the figures of `compare`."""

from __future__ import annotations

from dataclasses import replace

from runner.reports.comparison.compare import Statistics, compare
from runner.reports.golden.comparison import comparison
from runner.reports.golden.report import measure_names
from tests.reports.factory import result


def test_the_p_value_is_the_corrected_one_and_the_other_is_named_so() -> None:
    first, second = (
        replace(result("a"), config={"metrics": {"resamples": 50, "permutations": 200}}),
        result("b", seed=3),
    )
    made, names = compare([first, second], Statistics(resamples=50, permutations=200)), measure_names(first.measures)
    report = comparison({"a": first, "b": second}, names)["metric_differences"]
    pairs = [(row[1], report[names[measure]]["others"]["b"]) for measure, row in made.table.items() if measure in names]
    for versus, told in pairs:
        assert (told["p"], told["uncorrected_p"]) == (versus.corrected, versus.p)
        assert told["significant"] == (told["p"] < made.statistics.alpha)
    assert any(versus.corrected > versus.p for versus, _ in pairs)
