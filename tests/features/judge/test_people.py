"""A judge is corrected by people's grades: exact where it can be, unbiased otherwise, and on a sheet that survives."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import cohen_kappa_score

from runner.datasets.base import DatasetError
from runner.evaluation.verdicts import GradeVerdict
from runner.features.judge.judging import JudgedRankings, fill_judgments
from runner.features.judge.people import draw_pairs, list_strata, report_judge, share_sample, weigh_precision
from runner.features.judge.prediction_powered import (
    GradedSample,
    compute_kappa,
    estimate,
    tabulate_grades,
    variance_by_people_alone,
)
from runner.features.judge.report import correction_table
from runner.features.judge.sheet import SheetRow, load_sheet, match_sheet, save_sheet
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader
from tests.features.judge.test_judging import DATASET, JUDGED, rankings

STRATA = np.array([0, 0, 0, 2, 2, 2, 2])
TRUTH = np.array([0, 1, 0, 3, 2, 0, 3])
SCALE = np.arange(4.0)


def mean_grade(sample: GradedSample) -> float:
    parts = np.tile(SCALE / len(STRATA), (len(STRATA), 1))
    return estimate(sample, parts).value


def samples(*counts: int) -> list[GradedSample]:
    """Return all samples that have the given number of pairs from each part of `STRATA`."""
    groups = [combinations(np.flatnonzero(h == STRATA).tolist(), n) for h, n in zip((0, 2), counts, strict=True)]
    chosen = [np.array([*first, *second]) for first, second in product(*map(list, groups))]
    return [GradedSample(STRATA, sampled, TRUTH[sampled], 3) for sampled in chosen]


def test_a_mean_grade_is_that_of_each_stratum_by_its_size_and_unbiased() -> None:
    values = []
    for sample in samples(2, 3):
        of = [sample.grades[STRATA[sample.sampled] == h].mean() for h in (0, 2)]
        values.append(mean_grade(sample))
        assert values[-1] == pytest.approx((3 * of[0] + 4 * of[1]) / 7)
    assert np.mean(values) == pytest.approx(TRUTH.mean())


def test_grades_of_all_pairs_leave_nothing_uncertain() -> None:
    (whole,) = samples(3, 4)
    parts = np.random.default_rng(0).random((7, 4))
    done = estimate(whole, parts, 1.0)
    assert done.value == pytest.approx(1 + parts[np.arange(7), TRUTH].sum())
    assert done.high - done.low == pytest.approx(0)
    assert variance_by_people_alone(whole, parts) == pytest.approx(0)


def test_an_interval_is_wider_where_grades_vary_more() -> None:
    equal, varied = (
        GradedSample(STRATA, np.array([0, 1, 3, 4]), np.array(grades), 3) for grades in ([0, 0, 2, 2], [0, 3, 0, 3])
    )
    parts = np.tile(SCALE / 7, (7, 1))
    widths = [estimate(s, parts).variance for s in (equal, varied)]
    assert 0 < widths[0] < widths[1]


def test_a_stratum_without_a_grade_cannot_be_estimated() -> None:
    sample = GradedSample(STRATA, np.array([0, 1]), np.array([0, 1]), 3)
    with pytest.raises(ValueError, match="a stratum has no grade"):
        mean_grade(sample)


def test_kappa_is_scikit_learns() -> None:
    judged, people = np.random.default_rng(1).integers(0, 4, (2, 60))
    strata = np.searchsorted(np.unique(judged), judged)
    table = tabulate_grades(GradedSample(strata, np.arange(60), people, 3), np.unique(judged).tolist())
    assert compute_kappa(table) == pytest.approx(cohen_kappa_score(judged, people))
    assert compute_kappa(table, quadratic=True) == pytest.approx(cohen_kappa_score(judged, people, weights="quadratic"))
    assert compute_kappa(np.diag([1.0, 0, 0, 0])) is None


RUN = JudgedRankings(DATASET, rankings([0, 4, 5], [2, 1], [4]), JUDGED)
PAIRS = [(0, 4), (1, 2), (1, 5), (0, 2), (0, 5)]
GRADES = [3, 0, 2, 1, 3]


def scored(measure: Measure, run: JudgedRankings = RUN) -> float:
    """Return the measure with the grades added to the judgments."""
    judged = fill_judgments(run.judgments, PAIRS, [GradeVerdict(grade, "graded") for grade in GRADES])
    return Grader(judged, 3, len(DATASET.corpus)).score(run.rankings, [measure]).means()[str(measure)]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("greatest", [1, 3])
def test_precision_of_known_grades_is_that_of_the_grader(k: int, greatest: int) -> None:
    judged = JUDGED if greatest == 1 else type(JUDGED)(JUDGED.queries, JUDGED.documents, JUDGED.grades * 3)
    run = RUN._replace(judgments=judged)
    parts, before = weigh_precision(run, PAIRS, k)
    assert before + parts[np.arange(5), GRADES].sum() == pytest.approx(scored(Measure("P", k), run))


def test_a_stratum_is_shrunk_towards_the_pool() -> None:
    sample = GradedSample(np.repeat([0, 3], 20), np.array([0, 1, 20, 21]), np.array([0, 3, 3, 3]), 3)
    assert_allclose(sample.chances()[[0, 3], 0], [(1 + 2 * 0.25) / 4, (0 + 2 * 0.25) / 4])


GIVEN = np.repeat([0, 1, 3, 4], [50, 30, 20, 5])
"""The judge's grades of a pool of 105 pairs, of which five have none."""


def test_pairs_are_drawn_once_each_and_a_larger_sheet_continues_a_smaller_one() -> None:
    first = draw_pairs(GIVEN, [], 20, seed=1)
    assert len(set(first)) == 20 and first != sorted(first)
    assert first != draw_pairs(GIVEN, [], 20, seed=2)
    assert draw_pairs(GIVEN, [], 60, seed=1) == [*first, *draw_pairs(GIVEN, first, 60, seed=1)]
    assert sorted([*first, *draw_pairs(GIVEN, first, 999, seed=1)]) == list(range(105))
    assert draw_pairs(GIVEN, first, 10, seed=1) == []


def test_any_first_part_of_a_sheet_has_its_share_of_each_grade_of_the_judge() -> None:
    strata = np.repeat([0, 1, 3, 4], 200)
    counts = np.cumsum(strata[draw_pairs(strata, [], 150, seed=0)][:, None] == np.array([0, 1, 3, 4]), axis=0)
    shares = share_sample(np.array([200, 200, 0, 200, 200]))[[0, 1, 3, 4]]
    assert np.abs(counts - np.arange(1, 151)[:, None] * shares / shares.sum()).max() < 2
    assert counts[-1].min() > 20


def test_every_pair_with_one_grade_of_the_judge_is_drawn_as_often_as_any_other() -> None:
    strata = np.repeat([0, 3], 10)
    counts = np.bincount([pair for seed in range(400) for pair in draw_pairs(strata, [], 8, seed)], minlength=20)
    for own in (counts[:10], counts[10:]):
        assert np.abs(own - own.mean()).max() < 40  # four standard deviations


def test_a_sample_is_shared_by_size_times_the_spread_that_bayes_rule_expects() -> None:
    """The judge gives grades 0 and 3 to 60 and 10 pairs, and nothing to 7; it is wrong on a tenth."""
    expected = []
    for size, likelihood in [
        (60, [0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3]),
        (10, [0.1 / 3, 0.1 / 3, 0.1 / 3, 0.9]),
        (7, [1.0, 1.0, 1.0, 1.0]),
    ]:
        chances = np.array([61, 1, 1, 11]) * likelihood
        chances = chances / chances.sum()
        expected.append(size * (chances @ (SCALE - chances @ SCALE) ** 2) ** 0.5)
    shares = share_sample(np.array([60, 0, 0, 10, 7]))
    assert_allclose(shares[[0, 3, 4]], np.array(expected) / sum(expected))
    assert shares[3] > 2 * 10 / 77  # the judge is wrong more often where it finds a pair relevant


def test_no_grade_of_the_judge_is_left_out_of_a_sample() -> None:
    strata = np.repeat([0, 2], [10_000, 20])
    assert (strata[draw_pairs(strata, [], 100, seed=0)] == 2).sum() in (4, 5)


def test_a_judge_that_is_always_right_is_reported_as_such() -> None:
    verdicts = [GradeVerdict(float(grade), "graded") for grade in GRADES]
    sample = GradedSample(list_strata(verdicts), np.arange(5), np.array(GRADES), 3)
    report = report_judge(sample, {"one": RUN}, PAIRS, 3)
    assert (report.bias.value, report.agreement, report.kappa) == (pytest.approx(0), pytest.approx(1), pytest.approx(1))
    figures = {(figure.name, figure.measure): figure for figure in report.figures}
    assert figures["one", "P@3"].judge == pytest.approx(scored(Measure("P", 3)))
    assert figures["one", "P@3"].corrected.value == pytest.approx(scored(Measure("P", 3)))
    assert figures["pool", "mean grade"].corrected.value == pytest.approx(np.mean(GRADES))


def test_corrected_figures_are_shown_with_their_intervals() -> None:
    verdicts = [GradeVerdict(float(grade), "graded") for grade in GRADES]
    sample = GradedSample(list_strata(verdicts), np.array([0, 2, 3, 4]), np.array([2, 2, 1, 3]), 3)
    report = report_judge(sample, {"one": RUN}, PAIRS, 3)
    rows = {row[1]: row for row in correction_table(report).texts()}
    assert list(rows) == ["mean grade", "share of grades above 0", "P@3"]
    corrected = report.figures[-1].corrected
    assert corrected.low < corrected.value < corrected.high
    assert rows["P@3"][3] == f"{corrected.value:.4f} [{corrected.low:.4f}, {corrected.high:.4f}]"


def test_a_stratum_without_human_grades_is_estimated_from_its_neighbour() -> None:
    verdicts = [GradeVerdict(None if grade == 0 else float(grade), "graded") for grade in GRADES]
    sample = GradedSample(list_strata(verdicts), np.array([0, 2, 3, 4]), np.array([3, 2, 1, 3]), 3)
    report = report_judge(sample, {}, PAIRS, 3)
    assert report.figures[0].corrected.value == pytest.approx((3 + 2 + 1 + 3 + 3) / 5)  # as the judge's grade 3


def test_a_sheet_is_read_as_it_was_written_and_as_spreadsheets_save_it(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    rows = [SheetRow(("q,1", "d;1"), 'a "query"', "=1+1\nline", 2, "why"), SheetRow(("q2", "d2"), "b", "text")]
    save_sheet(path, rows)
    loaded = load_sheet(path)
    assert [(row.pair, row.grade, row.note) for row in loaded] == [(row.pair, row.grade, row.note) for row in rows]
    assert loaded[0].document == "=1+1\nline"
    assert not any(cell.startswith("=") for cell in path.read_text(encoding="utf-8").split(","))  # no formula
    save_sheet(path, loaded)
    assert load_sheet(path) == loaded
    path.write_text("\ufeffquery_id;document_id;query;document;grade;note\nq;d;a;b;3,0;\n", encoding="utf-8")
    assert load_sheet(path) == [SheetRow(("q", "d"), "a", "b", 3)]
    assert load_sheet(tmp_path / "none.csv") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query_id,document_id,query,document,grade,note\nq,d,a,b,4,\n", r"sheet.csv:2: the grade '4' is not a whole"),
        (
            "query_id,document_id,query,document,grade,note\nq,d,a,b,yes,\n",
            "'yes' is not a whole number from 0 to 3; le",
        ),
        (
            "query_id,document_id,query,document,grade\nq,d,a,b,1\nq,d,a,b,1\n",
            "sheet.csv:3: query 'q' and document 'd' oc",
        ),
        ("query_id,query,document,grade\nq,a,b,1\n", "the column 'document_id' is missing; keep all columns"),
    ],
)
def test_a_sheet_with_an_error_names_it(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sheet.csv").write_text(text)
    with pytest.raises(DatasetError, match=message):
        load_sheet(tmp_path / "sheet.csv")


def test_a_sheet_of_other_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match="'q' and document 'd' are not in the pool; the sheet belongs to other results"
    ):
        match_sheet(tmp_path / "sheet.csv", [SheetRow(("q", "d"), "a", "b")], {("q", "e"): 0}, "random")


def test_a_sheet_has_pairs_of_one_order(tmp_path: Path) -> None:
    rows = [SheetRow(("q", "d"), "a", "b", order="decisive")]
    with pytest.raises(DatasetError, match="chosen with order=decisive, not order=random, and a sheet with both"):
        match_sheet(tmp_path / "sheet.csv", rows, {("q", "d"): 0}, "random")
