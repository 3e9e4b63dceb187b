"""The spread to assume is that of the table in the documentation, which a script prints."""

from __future__ import annotations

import re
from pathlib import Path

from runner.statistics.typical_spread import TYPICAL_SPREADS, assume_spread

PAGE = Path(__file__).parents[2] / "docs" / "explanations" / "queries_needed.md"


def test_the_assumed_spread_is_the_largest_of_those_measured() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| measure | adi | ")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (\w+)\S* \| (.+) \|$", table, re.MULTILINE)
    largest: dict[str, tuple[float, float]] = {}
    for name, cells in rows:
        spreads = [tuple(map(float, re.findall(r"[\d.]+", cell))) for cell in cells.split(" | ")]
        before = largest.get(name, (0.0, 0.0))
        largest[name] = (max(before[0], *(s[0] for s in spreads)), max(before[1], *(s[1] for s in spreads)))
    assert largest == TYPICAL_SPREADS
    assert len(rows) == 8


def test_another_measure_is_assumed_to_vary_as_much_as_any() -> None:
    assert assume_spread("nDCG").differences == 0.26
    assert assume_spread("ERR") == (0.45, 1.0)
