"""How often the desk's intervals of differences cover the truth, and how often a difference that it decides is wrong.

Pairs of the mixed pool are judged in the order `decisive`, a hundredth of the pool at a time. After each round, the
leader by the grades so far is compared with the other 19 systems. The truth is the difference in mean DCG with all
judgments. `plain` are intervals without the variance of the model's parameters.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.cases import DATA
from benchmarks.simulations.judging_order import COLLECTIONS
from benchmarks.simulations.systems import load_mixed_pool
from runner.analysis.contests import expect_contest
from runner.analysis.judging_order import UNJUDGED, RankedPool, expect_grades, order_pairs

SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
"""Shares of the pool; a row has the rounds after the share before, up to this one."""
ROUNDS = 100


def main(*names: str) -> None:
    """Print a row for each collection and share."""
    print("| collection | judged up to | coverage | plain coverage | decided | of these wrong |")
    print("|---|" + "--:|" * 5)
    for name in names or [name for name in COLLECTIONS if (DATA / name).is_dir()]:
        pool = load_mixed_pool(name)
        ranked = RankedPool(pool.queries, pool.ranks)
        truth, systems = ranked.discounts @ pool.grades, [str(place) for place in range(len(pool.ranks))]
        grades, step, rows = np.full(len(pool.grades), UNJUDGED), -(-len(pool.grades) // ROUNDS), []
        for share in SHARES:
            while (grades != UNJUDGED).sum() < round(share * len(grades)):
                pairs = order_pairs("decisive", ranked, grades, step)
                grades[pairs] = pool.grades[pairs]
                contest, expected = expect_contest(ranked, grades, systems), expect_grades(ranked, grades)
                leader = int(contest.leader)
                for lead in contest.leads:
                    apart = ranked.discounts[leader] - ranked.discounts[int(lead.other)]
                    true, plain = truth[leader] - truth[int(lead.other)], 1.96 * (apart**2 @ expected.variance) ** 0.5
                    covered = lead.low <= true <= lead.high
                    rows.append((covered, abs(true - lead.difference) <= plain, lead.is_decided, true <= 0))
            table = np.array(rows)
            wrong = (table[:, 2] & table[:, 3]).sum() / max(table[:, 2].sum(), 1)
            cells = (*table[:, :3].mean(axis=0), wrong)
            print(f"| {name} | {share:.0%} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)
            rows = []


if __name__ == "__main__":
    main(*sys.argv[1:])
