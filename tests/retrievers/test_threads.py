from __future__ import annotations

from collections.abc import Iterator

import pytest

from retrievers.threads import count_threads, map_threads

THREADS = pytest.mark.parametrize("threads", [1, 2, 5])


@THREADS
@pytest.mark.parametrize("n", [0, 1, 3, 20])
def test_results_come_in_the_order_of_the_items(n: int, threads: int) -> None:
    assert list(map_threads(lambda item: item * item, range(n), threads)) == [item * item for item in range(n)]


@THREADS
def test_no_more_items_are_taken_than_are_soon_worked_on(threads: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    for result in map_threads(lambda item: item, items(), threads):
        assert len(taken) <= result + threads + 1


@THREADS
def test_an_error_reaches_the_caller(threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_threads(lambda item: 1 // item, [1, 0, 1], threads))


def test_there_are_as_many_threads_as_numba_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 3)
    assert count_threads() == 3
