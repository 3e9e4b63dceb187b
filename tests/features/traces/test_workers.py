"""Work goes on whatever happens to one thing, and ends when nobody listens."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from runner.features.traces.workers import run_in_workers
from runner.system.processes import processors

pytestmark = pytest.mark.usefixtures("warm_workers")


def halved(number: int) -> int:
    """Return half of an even number; 3 kills who works on it."""
    if number == 3:
        os._exit(9)
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number // 2


@pytest.mark.parametrize("workers", [1, 2])
def test_each_item_comes_back_with_what_came_of_it(workers: int) -> None:
    found = dict(run_in_workers(halved, [0, 1, 2, 4], workers))
    assert {item: made for item, made in found.items() if isinstance(made, int)} == {0: 0, 2: 1, 4: 2}
    assert isinstance(found[1], ValueError)
    assert str(found[1]) == "1 is odd"


def test_a_worker_that_dies_takes_only_its_own_item(capfd: pytest.CaptureFixture[str]) -> None:
    found = dict(run_in_workers(halved, [0, 3, 2, 4, 6, 8], 2))
    assert {item: made for item, made in found.items() if isinstance(made, int)} == {0: 0, 2: 1, 4: 2, 6: 3, 8: 4}
    assert not isinstance(found[3], int)
    capfd.readouterr()  # what the dying process may say


def test_items_are_taken_as_there_is_someone_for_them() -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(0, 1000, 2):
            taken.append(item)
            yield item

    listening = run_in_workers(halved, items(), 2)
    next(listening)
    listening.close()
    assert len(taken) <= 3


def test_there_is_a_processor() -> None:
    assert processors() >= 1
