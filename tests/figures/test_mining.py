"""The figures of mining in the database, against counts of a small world by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.features.mine.test_command import WORLD
from tests.features.mine.worlds import write_world
from tests.figures.logged import Figures, prepare_store, read_figures, run_logged

# The cases are api:parallel, api:loop, api:gone, fix:one, fix:two and fix:three. The answers of api:gone name nothing
# that exists, and the code of fix:three is missing; each of the others has one gold. Eight targets less the gold, and
# less what each case may refer to (the near-duplicate and both tools; nothing; the two imports), leave the negatives.
EXPECTED = {
    "cases": 6,
    "queries_kept": 4,
    "queries_kept/api": 2,
    "queries_kept/fix": 2,
    "gold_documents": 4,
    "verdict/rejected": 2,
    "verdict/verified": 4,
    "golds/unresolved": 2,
    "held_by/gold": 2,
    "negatives/random": 4 * 2,
}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Figures:
    """Return what is logged of mining the world."""
    folder = tmp_path_factory.mktemp("mined")
    prepare_store(migrated, folder)
    write_world(folder)
    run_logged(folder, *WORLD, "output=mined.jsonl", "mining.random_negatives=2", "mining.hard_negatives=2")
    return read_figures(folder)["mined"]


@pytest.mark.parametrize("name", EXPECTED)
def test_figure_of_mining_is_counted_by_hand(figures: Figures, name: str) -> None:
    assert figures[name] == EXPECTED[name]
