"""Judge the same 20 pairs of results by the gate, by retrieval-eval-gate, and by SciPy and statsmodels.

Five pairs of systems on each of four collections, by nDCG@10. The peers run in an interpreter of their own, into which
retrieval-eval-gate, statsmodels and SciPy were installed: `python -m benchmarks.simulations.gate_peers PYTHON`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from typing import Any

import numpy as np

from benchmarks.simulations.difference_coverage import score_systems
from benchmarks.simulations.gate_verdicts import judge_samples
from runner.comparison.gate import Gate
from runner.statistics.significance import compute_differences

COLLECTIONS = ("adi", "cranfield", "scifact", "cosqa")
PAIRS = (
    ("BM25", 3, "BM25 k1=0.5", 1),
    ("BM25", 3, "BM25 unstemmed", 9),
    ("BM25", 3, "LSA 256", 13),
    ("BM25", 3, "hybrid alpha=0.3", 14),
    ("hybrid alpha=0.3", 14, "hybrid alpha=0.7", 15),
    ("BM25", 3, "BM25 b=0.25", 2),
    ("BM25", 3, "BM25 k1=2.5", 5),
    ("BM25 unstemmed", 9, "BM25 unstemmed k1=0.5", 7),
)
"""The names of baseline and candidate, and their positions among the systems of `score_systems`, if they are there."""

MOST = 5
"""Pairs of a collection: the first of `PAIRS` whose systems it has."""

ALPHA = 0.05

PEERS = """
import json, sys
import numpy as np
from rag_eval_gate.sequential import paired_gate
from rag_eval_gate.stats import paired_permutation_test
from scipy.stats import permutation_test, ttest_rel
from statsmodels.stats.weightstats import DescrStatsW
given = json.load(sys.stdin)
rows = []
for before, after in given["pairs"]:
    test = paired_permutation_test(after, before)
    differences = np.array(after) - np.array(before)
    flips = permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=9999, rng=0, vectorized=True
    )
    _, p, _ = DescrStatsW(differences).ttest_mean(-given["limit"], alternative="larger")
    rows.append({
        "gate": "fail" if test.observed_diff < 0 and test.p_value < 0.05 else "pass", "p": test.p_value,
        "sequential": paired_gate(after, before, seed=0).decision, "flips": float(flips.pvalue),
        "t": float(ttest_rel(after, before).pvalue), "noninferior": float(p),
    })
json.dump(rows, sys.stdout)
"""


def run_peers(python: str, pairs: list[Any], limit: float) -> list[dict[str, Any]]:
    """Return what the peers say of each pair of lists of values."""
    given = json.dumps({"pairs": pairs, "limit": limit})
    done = subprocess.run([python, "-c", PEERS], input=given, capture_output=True, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def main() -> None:
    """Print a row for each pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="an interpreter that has the peers")
    parser.add_argument("--limit", type=float, default=0.01)
    options = parser.parse_args()
    titles = [
        "p",
        "`regression`",
        "`noninferior`",
        "p",
        "gate",
        "sequential",
        "sign flips",
        "t-test",
        "p of a loss < limit",
    ]
    print(f"| data | pair | queries | difference | {' | '.join(titles)} |\n|---|---|--:|--:|{'--:|' * len(titles)}")
    for collection in COLLECTIONS:
        (scores,) = score_systems(collection, ["nDCG@10"])
        pairs = [pair for pair in PAIRS if max(pair[1], pair[3]) < len(scores)][:MOST]
        values = [(scores[before], scores[after]) for _, before, _, after in pairs]
        known = [[of[~np.isnan(of)].tolist() for of in pair] for pair in values]
        peers = run_peers(options.python, known, options.limit)
        for (before, _, after, _), (old, new), peer in zip(pairs, values, peers, strict=True):
            differences = compute_differences(new, old)
            checks = [
                judge_samples(differences[None], Gate(proof=proof, alpha=ALPHA), "nDCG@10", options.limit)[0]
                for proof in ("regression", "noninferior")
            ]
            cells = [f"{checks[0].p:.3f}", *(check.verdict for check in checks)]
            cells += [f"{peer['p']:.3f}", peer["gate"], peer["sequential"]]
            cells += [f"{peer[name]:.3f}" for name in ("flips", "t", "noninferior")]
            count, mean = int(np.count_nonzero(~np.isnan(differences))), float(np.nanmean(differences))
            print(f"| {collection} | {before} to {after} | {count} | {mean:+.4f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
