"""Ask a locked split whether a candidate satisfies a gate: it answers yes or "not shown", counts, and corrects.

Who tries many settings against one gate learns about its queries from every answer, so the later settings depend on
them. A locked split therefore shows nothing but the answers. As long as they are "not shown", the next proposal depends
only on the number of questions, and each yes multiplies the possible courses by where it can stand. The level of a look
is `gate.alpha` divided among all looks of all possible courses, so the probability of any false yes is at most
`gate.alpha`, however the proposals were chosen (the argument of description length of Dwork et al. 2015,
"Generalization in adaptive data analysis and holdout reuse", and of the Ladder of Blum and Hardt 2015). Tests are those
of `runner.statistics.betting`, which hold at such levels without assumptions on the distribution.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import orjson

from runner.comparison.compare import Comparison
from runner.comparison.gate import Check, Gate, Look, check_errors, check_floors, iter_rules, measure_span, select_type
from runner.config.objects import ConfigError
from runner.pages.numbers import format_count
from runner.statistics.betting import bet_against_loss
from runner.statistics.significance import compute_differences
from runner.store.base import RunFiles
from runner.store.looks import Looks, RecordedLook


def compute_level(alpha: float, budget: int, passes: int) -> float:
    """Return the level of a look at a split that answers `budget` questions and has said yes `passes` times before.

    There are C(budget, passes + 1) pairs of a look and the places of the earlier passes; half of what is left of alpha
    is divided among these.
    """
    return float(alpha / 2 ** (passes + 1) / math.comb(budget, passes + 1))


def ask_locked_split(gate: Gate, comparison: Comparison, files: RunFiles) -> list[Check]:
    """Return a check of each system but the first that all rules hold; each new question is counted.

    Raises `ConfigError` if no look is left, the terms have changed, or a measure is not bounded.
    """
    counted = Looks(files.looks / f"{gate.locked}-{_hash_queries(comparison)}")
    return [_ask(gate, comparison, system, counted) for system in range(1, len(comparison.results))]


def _ask(gate: Gate, comparison: Comparison, system: int, counted: Looks) -> Check:
    untested = [*check_floors(gate, comparison, system), *check_errors(gate, comparison, system)]
    question = _hash_question(gate, comparison, system, untested)
    p = _test_drops(gate, comparison, system) if all(check.verdict == "pass" for check in untested) else 1.0
    look, is_repeated = None, False
    while look is None:
        looks = _read(counted)
        _check_terms(gate, looks)
        look = next((earlier for earlier in looks if earlier.question == question), None)
        if is_repeated := look is not None:
            break
        if len(looks) >= gate.looks:
            raise ConfigError(
                f"gate.locked={gate.locked}: all {gate.looks:,} looks at these queries are used up; choose new queries"
            )
        level = compute_level(gate.alpha or 0.0, gate.looks, sum(earlier.passed for earlier in looks))
        wanted = RecordedLook(len(looks) + 1, question, gate.alpha or 0.0, gate.looks, level, p <= level)
        look = wanted if _add(counted, wanted) else None
    left = gate.looks - max(len(looks), look.number)
    own = Look(str(gate.locked), look.number, gate.looks, left, look.level, is_repeated)
    nothing = math.nan, math.nan, math.nan
    return Check(
        comparison.labels[system], "locked", own.split, "", *nothing, verdict="pass" if look.passed else "undecided",
        look=own,
    )  # fmt: skip


def _test_drops(gate: Gate, comparison: Comparison, system: int) -> float:
    """Return the largest p-value of the hypotheses that a loss is at least its limit."""
    clusters, tested = comparison.cluster_numbers, []
    for kind, measure, limit in iter_rules(gate.drops, gate.drops_by_type, "drops", comparison):
        if math.isinf(span := measure_span(measure)):
            raise ConfigError(f"gate.drops.{measure}: a locked split needs a measure with a known range")
        before, after = (select_type(comparison.scores[measure][i], kind, comparison) for i in (0, system))
        tested.append(bet_against_loss(compute_differences(after, before), limit, span, clusters))
    return max(tested, default=1.0)


def _check_terms(gate: Gate, looks: Sequence[RecordedLook]) -> None:
    """Raise `ConfigError` if earlier looks were answered for another budget or another alpha."""
    first = next((look for look in looks if look.question), None)
    for key, value, before in (
        ("alpha", gate.alpha, first and first.alpha),
        ("looks", gate.looks, first and first.budget),
    ):
        if first is not None and before != value:
            answers = format_count(len(looks), "question", "questions")
            raise ConfigError(
                f"gate.{key}={value}: the split {gate.locked} has answered {answers} with {key}={before}; set it back, "
                "because the levels of all looks depend on it"
            )


def _hash_queries(comparison: Comparison) -> str:
    """Return a hash of the queries and their judgments, which a changed corpus leaves as it is."""
    queries = comparison.queries
    columns = (queries.ids, queries.texts, queries.expected, queries.expected_grades)
    rows = sorted(zip(*(column for column in columns if len(column)), strict=True), key=lambda row: str(row[0]))
    return hashlib.sha256(orjson.dumps(rows, default=list)).hexdigest()[:16]


def _hash_question(gate: Gate, comparison: Comparison, system: int, untested: Sequence[Check]) -> str:
    """Return a hash of what an answer depends on: the rules, and the values of both systems."""
    limits = [gate.floors, gate.floors_by_type, gate.drops, gate.drops_by_type, gate.max_errors]
    rules = [*limits, comparison.primary, list(comparison.scores), [check.after for check in untested]]
    scores = np.array([values[[0, system]] for values in comparison.scores.values()])
    return hashlib.sha256(orjson.dumps(rules, option=orjson.OPT_SORT_KEYS) + scores.tobytes()).hexdigest()


def _read(counted: Looks) -> list[RecordedLook]:
    try:
        return counted.read()
    except OSError as error:
        raise _refuse(counted, error) from error


def _add(counted: Looks, look: RecordedLook) -> bool:
    try:
        return counted.add(look)
    except OSError as error:
        raise _refuse(counted, error) from error


def _refuse(counted: Looks, error: OSError) -> ConfigError:
    return ConfigError(
        f"{counted.folder}: the looks at a locked split cannot be counted ({error.strerror}), so it gives no answer"
    )
