"""Pieces of text are numbered in the order of their first occurrence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.pieces import build_id_table, list_texts, number_parts

THREADS = pytest.mark.parametrize("threads", [1, 2, 5])


def check(texts: list[str]) -> None:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    numbers, pieces = number_parts(np.frombuffer(b"".join(encoded), np.uint8), offsets[:-1], offsets[1:], 0)
    distinct = list(dict.fromkeys(texts))
    assert list_texts(pieces) == distinct
    assert list_texts(pieces, len(distinct) // 2) == distinct[len(distinct) // 2 :]
    assert build_id_table(pieces).to_list() == distinct
    assert [distinct[number] for number in numbers.tolist()] == texts


@THREADS
@given(texts=st.lists(st.text(st.sampled_from("ab\n é\U0001f6a2\0"), max_size=3), max_size=20))
def test_equal_pieces_have_one_number(threads: int, texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numba.config.NUMBA_NUM_THREADS", threads)
        check(texts)


@THREADS
def test_the_table_grows(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", threads)
    check([f"document {i * i % 90_001}" for i in range(100_000)])
