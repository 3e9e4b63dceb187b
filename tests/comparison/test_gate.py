"""Rules and whether they hold: what got worse is stopped, what may be noise is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.comparison.compare import Comparison, TableStatistics, compare_results
from runner.comparison.gate import Check, Gate, check_gate, conclude, find_exit_code
from runner.comparison.report.gate_rules import describe_check
from runner.config.objects import ConfigError
from runner.evaluation.result import Result
from runner.statistics.paired_tests import PAIRED_TESTS
from tests.pages.factory import MEASURES, result

QUICK = TableStatistics(permutations=500)
DEFAULT = Gate(drops={"primary": 0.01}, drops_by_type={"*": {"primary": 0.05}}, max_errors=0)


def against(candidate: Result, baseline: Result | None = None, statistics: TableStatistics = QUICK) -> Comparison:
    return compare_results([baseline or result("a"), candidate], statistics)


def lower(by: float, of: Result, queries: slice = slice(None)) -> Result:
    """Return a result whose every measure is lower for some queries."""
    scores = of.scores.copy()
    scores[:, queries] -= by
    counted = ~np.isnan(scores[0])
    means = {m: float(row[counted].mean()) for m, row in zip(MEASURES, scores, strict=True)}
    return replace(of, name="b", scores=scores, means=means)


def violations(gate: Gate, comparison: Comparison) -> list[Check]:
    return [check for check in check_gate(gate, comparison) if check.verdict == "fail"]


def test_an_identical_result_passes() -> None:
    assert violations(DEFAULT, against(result("a"))) == []


def test_a_degraded_result_fails_overall_and_by_type() -> None:
    found = violations(DEFAULT, against(lower(0.2, result("a"))))
    assert [(check.rule, check.type) for check in found] == [
        ("drop", ""), ("drop", "precise"), ("drop", "semantic"), ("drop", "wide"),
    ]  # fmt: skip
    assert all(check.drop == pytest.approx(0.2) and check.p < 0.05 for check in found)
    assert "nDCG@10 fell by 0.2000" in describe_check(found[0])


def test_a_drop_that_is_allowed_passes_however_sure_it_is() -> None:
    comparison = against(lower(0.009, result("a")))
    assert comparison.table["nDCG@10"][1].difference.significant
    assert violations(DEFAULT, comparison) == []


def test_a_drop_that_may_be_noise_is_undecided_unless_alpha_is_null() -> None:
    comparison = against(lower(0.9, result("a"), slice(0, 1)))  # one query of thirty
    noise = check_gate(DEFAULT, comparison)[0]
    assert (noise.drop > 0.01, noise.verdict, conclude([noise])) == (True, "undecided", "undecided")
    assert "more than the 0.01 that is allowed, but not significant (p = 1.000 with 30 queries)" in describe_check(
        noise
    )
    needed = comparison.table["nDCG@10"][1].difference.needed
    assert noise.more == needed - 30
    assert f"about {needed - 30:,.0f} more queries would decide it" in describe_check(noise)
    assert noise.differing == pytest.approx(noise.more / 30)  # one of thirty differs
    assert violations(replace(DEFAULT, alpha=None), comparison)
    for undecided, code in (("fail", 4), ("warn", 0), ("pass", 0)):
        assert find_exit_code(replace(DEFAULT, undecided=undecided), [noise]) == code  # type: ignore[arg-type]


def test_a_violated_rule_outweighs_an_undecided_one() -> None:
    rules = [Check("b", "drop", "RR", "", 1.0, 0.5, 0.1, verdict=verdict) for verdict in ("pass", "undecided", "fail")]
    assert [conclude(rules[:n]) for n in (1, 2, 3)] == ["pass", "undecided", "fail"]
    assert [find_exit_code(Gate(), rules[:n]) for n in (1, 2, 3)] == [0, 4, 1]
    assert find_exit_code(Gate(undecided="warn"), rules) == 1


def test_a_pass_says_how_large_a_loss_the_data_could_hide() -> None:
    comparison = against(result("b", seed=5))
    (check,) = check_gate(Gate(drops={"primary": 0.9}), comparison)
    own = comparison.table["nDCG@10"][1].difference
    assert check.verdict == "pass"
    assert -own.low <= check.hidden < -own.low + 0.03  # two queries are added to thirty
    assert f"a loss of up to {check.hidden:.4f} could be hidden with 30 queries" in describe_check(check)


def test_a_pass_that_hides_no_loss_says_so() -> None:
    (gain,) = check_gate(Gate(drops={"primary": 0.05}), against(lower(-0.2, result("a"))))
    assert (gain.verdict, gain.hidden <= 0) == ("pass", True)
    assert "any loss is excluded with 30 queries" in describe_check(gain)


def test_equal_results_and_few_queries_leave_a_gate_undecided() -> None:
    (equal,) = check_gate(Gate(drops={"primary": 0.05}, proof="noninferior"), against(result("b")))
    assert (equal.verdict, equal.drop) == ("undecided", 0.0)
    assert 0.05 < equal.hidden < 0.15  # losses of 1 on one query of thirty, or two, would often not be drawn
    before = result("a", queries=5)
    (few_queries,) = check_gate(Gate(drops={"primary": 0.05}), against(lower(0.3, before), before))
    assert (few_queries.hidden, few_queries.verdict) == (1.0, "undecided")
    assert few_queries.more >= 1  # no flip of the signs of five queries can be significant


@pytest.mark.parametrize(
    ("by", "limit", "verdict"),
    [(0.2, 0.3, "pass"), (0.2, 0.1, "fail"), (-0.2, 0.01, "pass")],
)
def test_a_loss_beyond_the_limit_must_be_excluded(by: float, limit: float, verdict: str) -> None:
    """The loss is the same on every query, so its size is certain."""
    (check,) = check_gate(Gate(drops={"primary": limit}, proof="noninferior"), against(lower(by, result("a"))))
    assert check.verdict == verdict


def test_a_significant_loss_that_may_be_larger_than_the_limit_fails() -> None:
    after = lower(0.3, result("a"), slice(0, 12))  # 0.12 on average
    regression, noninferior = (
        check_gate(Gate(drops={"primary": 0.13}, proof=proof), against(after))[0]  # type: ignore[arg-type]
        for proof in ("regression", "noninferior")
    )
    assert (regression.verdict, noninferior.verdict) == ("pass", "fail")
    assert regression.hidden > 0.13
    assert "within the 0.13 that is allowed, and significant" in describe_check(noninferior)


def test_a_loss_can_only_be_excluded_at_a_level() -> None:
    with pytest.raises(ValidationError, match="set alpha"):
        Gate(proof="noninferior", alpha=None)


@pytest.mark.parametrize("statistics", [QUICK, replace(QUICK, correction="none")])
@pytest.mark.parametrize("drops", [{"primary": 0.01}, {"primary": 0.01, "mrr": 0.01}])
def test_a_gate_may_ask_for_more_certainty_than_the_table(statistics: TableStatistics, drops: dict[str, float]) -> None:
    comparison = against(lower(0.2, result("a")), statistics=statistics)
    assert len(violations(Gate(drops=drops, alpha=1e-4), comparison)) == len(drops)


def few(by: float, of: Result, kind: str = "rare") -> tuple[Result, Result]:
    """Return a baseline with three queries of a type, and a candidate that lost them."""
    types = [kind if i < 3 else "common" for i in range(len(of.queries.ids))]
    before = replace(of, queries=replace(of.queries, types=types))
    return before, lower(by, before, slice(0, 3))


@pytest.mark.parametrize("test", [name for name, test in PAIRED_TESTS.items() if test.smallest_p(3) >= 0.05])
def test_a_drop_over_too_few_queries_is_undecided(test: Any) -> None:
    before, after = few(0.5, result("a"))
    rules = Gate(drops_by_type={"*": {"primary": 0.05}})
    common, rare = check_gate(rules, against(after, before, replace(QUICK, test=test)))
    assert (common.verdict, rare.verdict) == ("pass", "undecided")
    assert rare.more >= PAIRED_TESTS[test].count_required_queries(0.05) - 3
    _, by_t = check_gate(rules, against(after, before, replace(QUICK, test="t")))
    assert by_t.verdict == "fail"


def test_enough_queries_for_one_rule_may_be_too_few_for_many() -> None:
    before = result("a", types=[f"t{i}" for i in range(5)])  # six queries each, of which none can be below 1/32
    after = lower(0.3, before, slice(0, 30, 5))
    one, many = ({kind: {"primary": 0.05}} for kind in ("t0", "*"))
    assert check_gate(Gate(drops_by_type=one), against(after, before))[0].verdict == "fail"
    assert check_gate(Gate(drops_by_type=many), against(after, before))[0].verdict == "undecided"


def test_rules_by_type_make_no_drop_over_all_queries_less_sure() -> None:
    types = [f"t{i}" for i in range(15)]
    before = result("a", types=types)
    after = lower(0.1, before, slice(0, 8))
    alone = check_gate(Gate(drops={"primary": 0.01}), against(after, before))
    among = check_gate(Gate(drops={"primary": 0.01}, drops_by_type={"*": {"primary": 0.01}}), against(after, before))
    assert among[0] == alone[0]
    assert len(among) == 16


def test_a_gain_is_not_a_drop() -> None:
    checks = check_gate(replace(DEFAULT, alpha=None), against(lower(-0.2, result("a"))))
    assert conclude(checks) == "pass"
    assert "did not fall" in describe_check(checks[0])


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_floor_holds_just_when_the_mean_is_not_below_it(floor: float, quality: float) -> None:
    comparison = against(result("b", quality=quality), statistics=TableStatistics(permutations=1))
    (check,) = check_gate(Gate(floors={"mrr": floor}), comparison)
    assert (check.verdict == "fail") == (comparison.results[1].means["RR"] < floor)
    assert check.measure == "RR"


def test_a_floor_can_be_of_a_type_and_of_no_result_queries() -> None:
    comparison = against(result("b"))
    gate = Gate(floors={"tn_rate": 0.6, "recall@10": 0.0}, floors_by_type={"semantic": {"P@1": 1.0}})
    assert [(c.measure, c.type, c.verdict == "fail") for c in check_gate(gate, comparison)] == [
        ("tn_rate", "", True),
        ("R@10", "", False),
        ("P@1", "semantic", True),
    ]


def test_errors_are_counted() -> None:
    comparison = against(result("b", errors={1: "x", 2: "y"}))
    assert not violations(Gate(max_errors=2), comparison)
    (check,) = violations(Gate(max_errors=1), comparison)
    assert describe_check(check) == f"{comparison.labels[1]}: 2 queries raised an error; 1 allowed"
    (check,) = violations(Gate(max_errors=0), against(result("b", errors={1: "x"})))
    assert describe_check(check).endswith(": 1 query raised an error; 0 allowed")


def test_what_cannot_be_measured_does_not_hold() -> None:
    broken = result("b", errors=dict.fromkeys(range(30), "down"))
    found = violations(Gate(floors={"primary": 0.0}, drops={"primary": 1.0}), against(broken))
    assert [check.rule for check in found] == ["floor", "drop"]
    assert all("cannot be measured" in describe_check(check) for check in found)


def test_every_candidate_is_held_to_the_rules() -> None:
    good, bad = result("good"), replace(lower(0.3, result("a")), name="bad")
    comparison = compare_results([result("a"), good, bad], QUICK)
    assert {check.system for check in violations(DEFAULT, comparison)} == {comparison.labels[2]}


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"floors": {"P@7": 0.5}}, "gate.floors.P@7: not measured"),
        ({"drops": {"R@7": 0.5}}, "gate.drops.R@7: not measured"),
        ({"drops": {"grade": 0.5}}, "gate.drops.grade: not measured"),
        ({"drops_by_type": {"semantik": {"primary": 0.1}}}, "no query has this type; did you mean semantic?"),
    ],
)
def test_a_rule_that_nothing_fits_is_a_mistake(rules: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_gate(Gate(**rules), against(result("b")))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "rules", [{"floors": {"mrrr": 0.5}}, {"drops": {"mrr": -0.1}}, {"alpha": 0}, {"max_errors": -1}, {"flors": {}}]
)
def test_a_rule_that_makes_no_sense_is_refused(rules: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, TypeError)):
        Gate(**rules)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            {"floors": {"mrr": 85}},
            "gate.floors.RR=85: should be from 0 to 1, the range of the measure; did you mean 0.85?",
        ),
        ({"floors": {"primary": 1.01}}, "gate.floors.primary=1.01: should be from 0 to 1"),
        ({"floors": {"tn_rate": -0.1}}, "gate.floors.tn_rate=-0.1: should be from 0 to 1"),
        ({"floors": {"grade": 0.7}}, "gate.floors.grade=0.7: should be from 1 to 10"),
        ({"floors_by_type": {"wide": {"mrr": 85}}}, "gate.floors_by_type.wide.RR=85: should be from 0 to 1"),
        ({"drops": {"mrr": 5}}, "gate.drops.RR=5: should be from 0 to 1, the range of a drop; did you mean 0.05?"),
    ],
)
def test_a_limit_that_a_measure_cannot_reach_is_a_mistake(rules: dict[str, Any], said: str) -> None:
    """85 was to be 0.85: no result would ever have passed, and with a drop of 5 none would ever have failed."""
    with pytest.raises(ConfigError) as caught:
        check_gate(Gate(**rules), against(result("b")))
    assert str(caught.value).startswith(said)


def test_a_drop_needs_a_measure_that_means_the_same_in_both() -> None:
    deep, shallow = (replace(result(n), config={"metrics": {"depth": d}}) for n, d in (("a", 100), ("b", 10)))
    with pytest.raises(ConfigError, match=r"gate\.drops\.RR: not measured in all results, or measured differently"):
        check_gate(Gate(drops={"mrr": 0.1}), against(shallow, deep))
    assert check_gate(Gate(floors={"mrr": 0.1}), against(shallow, deep))
