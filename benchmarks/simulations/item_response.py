"""How well an item response model finds the difficulty and discrimination of queries and the ability of systems.

python -m benchmarks.simulations.item_response
"""

from __future__ import annotations

import numpy as np

from runner.analysis.item_response import fit_item_response

DRAWS, SYSTEMS, QUERIES = 20, (8, 20, 50, 200), 100


def main() -> None:
    """Print the correlations of the estimates with the truth by the number of systems."""
    print("| systems | queries | difficulty | log discrimination | ability |\n|--:|--:|--:|--:|--:|")
    for systems in SYSTEMS:
        rng, correlations = np.random.default_rng(systems), np.zeros(3)
        for _ in range(DRAWS):
            a, b = np.exp(rng.normal(0, 0.4, QUERIES)), rng.normal(0, 1.2, QUERIES)
            abilities = rng.normal(0, 1, systems)
            hits = rng.random((systems, QUERIES)) < 1 / (1 + np.exp(-a * (abilities[:, None] - b)))
            model = fit_item_response(hits)
            pairs = (
                (model.difficulties, b), (np.log(model.discriminations), np.log(a)), (model.abilities, abilities)
            )  # fmt: skip
            correlations += [np.corrcoef(one, other)[0, 1] for one, other in pairs]
        print(f"| {systems} | {QUERIES} | " + " | ".join(f"{r:.2f}" for r in correlations / DRAWS) + " |")


if __name__ == "__main__":
    main()
