"""What is said of configurations on the same tasks: who finds more, and whether it may be luck."""

from __future__ import annotations

import orjson
import pytest
from scipy import stats

from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.findings import compute_findings
from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.report import comparisons as compared
from runner.features.traces.report.page import render_page
from runner.features.traces.report.report import build_report, report_json
from runner.features.traces.runs.outcomes import RunOutcome
from runner.pages.tables import Table
from runner.statistics.settings import Statistics
from tests.features.traces.documents import document, read
from tests.features.traces.report.factory import finding, report, several, told_of


def row(table: Table) -> dict[str, str]:
    """Return the texts of a table with one row, by column."""
    (texts,) = table.texts()
    return dict(zip([column.title for column in table.columns], texts, strict=True))


def test_a_comparison_says_first_what_decides_then_what_else_differs_or_that_there_is_too_little() -> None:
    few = row(compared.comparisons_table(report(several(2))))
    assert (few["recall"], few["measured"]) == ("\N{EN DASH}", "2")
    assert few["significant differences"] == "too few tasks: at least 3 are needed"
    found = report(several(12))
    said = row(compared.comparisons_table(found))
    assert (said["recall"], said["p"], said["tasks needed"]) == ("+0.500", "<0.001", "6")
    assert said["significant differences"].startswith("MRR +0.500; MAP +0.750")
    assert (said["only if uncorrected"], "corrected" in said) == ("none", False)
    first, second, *_ = compared.comparison_table(found.comparisons[0]).texts()
    assert first == [
        "recall",
        "12",
        "0.500",
        "1.000",
        "+0.500",
        "[+0.500, +0.500]",
        "<0.001",
        "\N{EN DASH}",
        "12/0/0",
        "6",
    ]
    assert second[:2] == ["MRR", "12"]
    assert second[-3] != "\N{EN DASH}"
    assert compared.comparison_note(found.comparisons[0]).startswith(
        "Recall decides, with a separate test; the other figures are secondary, and corrected for 6 figures. "
        "Differences are paired by task; p by random flips of their signs, with Holm's correction. "
    )


def test_a_secondary_figure_that_differs_only_without_the_correction_perhaps_differs() -> None:
    said = row(compared.comparisons_table(report(several(6))))
    assert said["significant differences"] == "none"
    assert said["only if uncorrected"].startswith("MRR +0.500; ")
    assert "recall +" not in said["only if uncorrected"]


def test_of_several_configurations_the_correction_for_their_number_is_told() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    found = told_of(finding("baseline", lower), finding("one", higher), finding("two", higher))
    texts = compared.comparisons_table(found).texts()
    assert [line[5:7] for line in texts] == [["0.031", "0.062"]] * 2
    assert "p = 0.031 (0.062 corrected for 2 configurations); about" in compared.describe_decisions(found)[0]


def test_the_verdict_says_who_finds_more_by_how_much_and_whether_it_may_be_luck() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    first, second = finding("baseline", lower, cost=2.0), finding("mcp", higher, cost=1.5)
    (sure,) = compared.describe_decisions(told_of(first, second))
    assert sure.startswith(
        "mcp finds more of the gold than baseline: recall 0.500 against 0.250 on 6 matched tasks (95%"
    )
    assert sure.endswith("), p = 0.031; more on 6, the same on 0, less on 0; $1.50 per task against $2.00.")
    (less,) = compared.describe_decisions(told_of(finding("baseline", higher), finding("mcp", lower)))
    assert less.startswith("mcp finds less of the gold than baseline: recall 0.250 against 0.500")
    (luck,) = compared.describe_decisions(told_of(first, finding("mcp", [0.3, 0.5, 0.1, 0.5, 0.0, 0.5])))
    assert luck.startswith("mcp does not find significantly more of the gold than baseline: recall 0.317 against 0.250")
    assert "p = 0.500; about 57 tasks would be needed to detect a difference of this size; more on 3" in luck
    (same,) = compared.describe_decisions(told_of(first, finding("mcp", lower)))
    assert same == "mcp finds as much of the gold as baseline on each of 6 matched tasks."


def test_the_verdict_says_how_soon_and_at_what_price_of_the_tasks_that_tell() -> None:
    before = {f"c/t{n}": document([read("x.py"), read("a.py", elapsed_seconds=8.0)], ["a.py"]) for n in range(4)}
    after = {f"d/t{n}": document([read("a.py", elapsed_seconds=n or None)], ["a.py"]) for n in range(4)}
    content = {
        name: {**each, "provenance": each["provenance"] | {"config_name": config, "task_name": name[2:]}}
        for config, some in (("baseline", before), ("mcp", after))
        for name, each in some.items()
    }
    (verdict,) = compared.describe_decisions(report(content))
    assert verdict.endswith("on each of 4 matched tasks; first gold after 2.0 s against 8.0 s (on 3).")


def test_differences_are_tested_and_told_as_the_settings_say() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    sides = finding("baseline", lower), finding("mcp", higher)
    made = told_of(*sides, alpha=0.03, test="t", confidence=0.8, seed=7)
    of = made.comparisons[0]["deltas"]["file_recall"]
    assert of["p_value"] == pytest.approx(float(stats.ttest_rel(higher, lower).pvalue))
    assert of["significant"]
    assert "(80% interval of the difference " in compared.describe_decisions(made)[0]
    assert "80% interval" in row(compared.comparisons_table(made))
    tables = compared.comparison_table(made.comparisons[0]), compared.associations_table(made)
    assert all("80% interval" in [column.title for column in table.columns] for table in tables)
    assert "p by Student's t-test, with Holm's correction." in compared.comparison_note(made.comparisons[0])
    assert "not find significantly" in compared.describe_decisions(told_of(*sides, alpha=0.03))[0]
    said = orjson.loads(b"".join(report_json(made)))
    assert {"test": "t", "alpha": 0.03, "confidence": 0.8, "seed": 7}.items() <= said["comparisons"][0][
        "statistics"
    ].items()
    assert said["associations"]["confidence"] == 0.8


def test_a_secondary_figure_perhaps_differs_by_the_alpha_that_is_asked_for() -> None:
    artifacts = {name: build_artifact(each, RunOutcome(reward=0.5)) for name, each in several(6).items()}
    findings = compute_findings(artifacts, {}, "baseline", FigureNames(), Statistics(alpha=0.02))
    strict = build_report(findings, lambda name: {}, 0)
    assert row(compared.comparisons_table(strict))["only if uncorrected"] == "none"


def test_without_a_correction_none_is_told() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    found = told_of(finding("baseline", lower), finding("a", higher), finding("b", higher), correction="none")
    assert "corrected" not in compared.describe_decisions(found)[0]
    assert "corrected" not in [column.title for column in compared.comparisons_table(found).columns]
    note = compared.comparison_note(found.comparisons[0])
    assert note.startswith("Recall decides, with a separate test; the other figures are secondary. ")
    assert "with no correction" in note


def test_of_what_nothing_can_be_said_one_sentence_says_so_and_why() -> None:
    first = finding("baseline", [0.5] * 4)
    found = told_of(first, finding("few", [0.5]), finding("none", [0.5] * 4, model="n"), finding("same", [0.5] * 4))
    assert compared.describe_decisions(found) == [
        "same finds as much of the gold as baseline on each of 4 matched tasks.",
        "Too few tasks to compare with baseline: few (1), none (0; left out: 4 different models). "
        "A comparison needs 3 matched tasks with ground truth.",
    ]


def test_of_one_comparison_the_tiles_say_what_is_held_against_what_and_what_may_be_luck() -> None:
    lower, higher = [0.1, 0.2, 0.3, 0.5, 0.0, 0.4], [0.3, 0.5, 0.4, 0.9, 0.2, 0.7]
    first, second = finding("baseline", lower, cost=2.0, seconds=60), finding("mcp", higher, cost=1.5, seconds=60)
    assert compared.tiles(told_of(first, second)) == [
        ("recall", "0.500", "baseline 0.250"),
        ("reward", "0.500", "baseline 0.500"),
        ("cost, $", "1.50", "baseline 2.00, not significant"),
        ("time", "1 min 0 s", "baseline 1 min 0 s"),
    ]
    assert compared.tiles(told_of(first, second, finding("other", higher))) == []
    assert compared.tiles(told_of(first, finding("mcp", higher[:2]))) == []
    assert "baseline 2.00, not significant" in render_page(told_of(first, second))
