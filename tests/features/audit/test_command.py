"""A published number is judged from means and the number of queries, against scipy and enumerated scores."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import orjson
import pytest
from scipy import stats

from runner.__main__ import main
from runner.features.audit.audit import audit_value
from runner.statistics.effects import queries_needed

PUBLISHED = ("n=35", "value=0.418", "baseline=0.479")


def audit(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["audit", *words]) == code
    return " ".join(capsys.readouterr().out.split())


def audit_json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(audit(capsys, *words, "--json", code=code))
    return content


def test_the_interval_the_p_value_and_the_queries_needed_follow_from_the_spread(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = audit(capsys, *PUBLISHED)
    error = 0.26 / np.sqrt(35)
    low, high = stats.t.interval(0.95, 34, -0.061, error)
    p = 2 * stats.t.cdf(-0.061 / error, 34)
    (needed,) = queries_needed(np.array([0.061]), np.array([0.26])).tolist()
    assert f"typical spread 0.260 [{low:+.3f}, {high:+.3f}] {p:.3f} {needed:.0f}" in shown
    largest = np.sqrt((0.418 + 0.479 - 0.061**2) * 35 / 34)
    assert f"largest possible spread {largest:.3f} [" in shown
    low, high = stats.t.interval(0.95, 34, 0.418, np.sqrt(0.418 * 0.582 / 34))
    assert f"[{low:.3f}, {high:.3f}] (largest possible spread)" in shown
    assert "At least 3 of 35 queries differ; the smallest p possible is 6e-11, if all of them do." in shown
    enough = 0.061 * np.sqrt(35) / stats.t.ppf(0.975, 34)
    assert f"it is if the differences of single queries deviate by less than about {enough:.3f}" in shown


def test_the_level_is_corrected_for_the_systems_that_were_tried(capsys: pytest.CaptureFixture[str]) -> None:
    shown, content = audit(capsys, *PUBLISHED, "systems=9"), audit_json(capsys, *PUBLISHED, "systems=9")
    level = 0.05 / 9
    low, high = stats.t.interval(1 - level, 34, -0.061, 0.26 / np.sqrt(35))
    (needed,) = queries_needed(np.array([0.061]), np.array([0.26]), level).tolist()
    assert f"typical spread 0.260 [{low:+.3f}, {high:+.3f}] 0.174 {needed:.0f}" in shown
    assert "9 systems were tried, so each difference is tested at 0.00556 instead of 0.05 (Bonferroni)." in shown
    assert (content["systems"], content["level"]) == (9, pytest.approx(level))
    enough = 0.061 * np.sqrt(35) / stats.t.ppf(1 - level / 2, 34)
    assert content["enough"] == pytest.approx(enough)
    assert "power 80%, one test at 0.00556, typical spread" in shown


def test_hits_and_misses_have_exact_results(capsys: pytest.CaptureFixture[str]) -> None:
    content = audit_json(capsys, "n=50", "value=0.82", "baseline=0.76", "measure=success@5", code=1)
    exact = stats.binomtest(41, 50).proportion_ci(0.95, "exact")
    assert content["intervals"] == {"exact": pytest.approx([exact.low, exact.high])}
    assert (content["fewest"], content["smallest_p"], content["possible"]) == (3, 0.25, False)
    typical = content["assumptions"][0]
    differing = round(0.45**2 * 49 + 0.06**2 * 50)  # 10, which 3 more gains than losses make 11
    assert typical["p"] == pytest.approx(stats.binomtest(4, differing + 1).pvalue)
    shown = audit(capsys, "n=50", "value=0.82", "baseline=0.76", "measure=Success@5", code=1)
    assert "At least 3 of 50 queries differ; the smallest p possible is 0.250." in shown
    assert "Not significant at 0.05: no p below 0.05 is possible." in shown


def test_no_scores_have_a_larger_deviation_or_fewer_differences() -> None:
    """Of all pairs of four hits and misses, and of two scores in halves."""
    for grid, n in (((0, 1), 4), ((0, 0.5, 1), 2)):
        rows = [np.array(row) for row in itertools.product(grid, repeat=n)]
        for one, other in itertools.product(rows, rows):
            found = audit_value(n, float(one.mean()), float(other.mean()), "nDCG@10")
            assert (one - other).std(ddof=1) <= found.assumptions[-1].deviation + 1e-9
            assert np.count_nonzero(one - other) >= found.fewest
    assert audit_value(5, 0.8, 0.4, "Success@1").assumptions[0].deviation == pytest.approx(
        np.std([1, 1, 0, 0, 0], ddof=1)
    ), "the typical one is smaller than that of two differences"


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        ((*PUBLISHED, "sd=0.25"), 1, "Not significant at 0.05: p is 0.158."),
        ((*PUBLISHED, "sd=0.12"), 0, "With the given deviation, the difference is significant at 0.05."),
        ((*PUBLISHED, "sd=0.12", "alpha=0.001"), 1, "Not significant at 0.001: p is 0.0049."),
        ((*PUBLISHED, "sd=0.12", "systems=20"), 1, "Not significant at 0.0025: p is 0.0049."),
        (
            (*PUBLISHED, "sd=0.12", "systems=9"),
            0,
            "With the given deviation, the difference is significant at 0.00556.",
        ),
        (("n=500", "value=0.5", "baseline=0.45"), 0, "With the typical spread, the difference is significant at 0.05."),
        (("n=5", "value=0.9", "baseline=0.1"), 1, "Not significant at 0.05: no p below 0.05 is possible."),
        (("n=20", "value=0.5", "baseline=0.5"), 1, "Not significant at 0.05: no p below 0.05 is possible."),
    ],
)
def test_the_exit_code_says_whether_the_difference_can_be_significant(
    words: tuple[str, ...], code: int, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verdict in audit(capsys, *words, code=code)


def test_a_value_without_a_baseline_has_an_interval_alone(capsys: pytest.CaptureFixture[str]) -> None:
    shown = audit(capsys, "n=35", "value=0.418", "measure=RR", "alpha=0.1")
    low, high = stats.t.interval(0.9, 34, 0.418, 0.87 * np.sqrt(0.418 * 0.582 / 34))
    assert shown.startswith(f"RR 0.418 on 35 queries: 90% interval [{low:.3f}, {high:.3f}] (typical spread) or [")
    assert "difference" not in shown
    assert "99.9% interval [" in audit(capsys, "n=35", "value=0.418", "alpha=0.001")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("n=35", "value=41.8"), "value=41.8: should be from 0 to 1; did you mean 0.418?"),
        (("n=35",), "value=null: cannot be null; set value=VALUE"),
        (("n=1", "value=0.5"), "n=1: should be greater than or equal to 2"),
        (("n=35", "value=0.4", "measure=nope"), "measure=nope: unknown measure 'nope'"),
        ((*PUBLISHED, "sd=3"), "sd=3: with these means, differences deviate by 0.000 to 0.959"),
        (
            ("n=35", "value=0.4", "baseline=0.418", "measure=Success@5"),
            "baseline=0.418: no number of hits in 35 queries has this mean (14 of 35 is 0.400 and 15 of 35 is 0.429)",
        ),
    ],
)
def test_an_impossible_number_is_refused_in_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
