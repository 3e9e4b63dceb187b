"""What a sweep says of its best combination so far."""

from __future__ import annotations

from dataclasses import replace

from runner.sweep.outcome import SweepOutcome
from tests.pages.factory import result


def test_no_combination_is_the_best_while_all_have_0() -> None:
    outcome, found = SweepOutcome(), result("one")
    primary = found.primary
    assert outcome.update_best(replace(found, means={primary: 0.0})) is None
    assert outcome.best == ""
    assert outcome.update_best(replace(found, means={primary: 0.25})) == f"{primary} 0.2500 by one"
    assert outcome.update_best(replace(found, means={primary: 0.25})) is None
    assert outcome.best == f"{primary} 0.2500 by one"
