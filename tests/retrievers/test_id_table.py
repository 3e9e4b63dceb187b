"""A table of ids behaves as the list of its ids."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from retrievers.id_table import IdTable, select_ids
from retrievers.pieces import build_id_table, find_ids, number_parts
from tests.strategies.ids import ID_LISTS


@given(ID_LISTS)
def test_a_table_has_the_ids_in_their_order(ids: list[str]) -> None:
    table = IdTable.of(ids)
    for same in (
        table,
        IdTable.of(table),
        pickle.loads(pickle.dumps(table, protocol=5)),
        IdTable.of_arrow(pa.array(ids, pa.string())),
        IdTable.of_arrow(pa.array(ids, pa.large_string())),
    ):
        assert (len(same), list(same), same[1:3], [same[i] for i in range(-len(ids), len(ids))]) == (
            len(ids), ids, ids[1:3], ids + ids,
        )  # fmt: skip
    assert table.to_arrow().equals(pa.array(ids, pa.string()))
    is_selected = np.arange(len(ids)) % 3 != 1
    assert list(select_ids(table, is_selected)) == [name for i, name in enumerate(ids) if i % 3 != 1]


@given(ID_LISTS, ID_LISTS)
def test_find_ids_returns_the_row_of_each_id_or_minus_one(ids: list[str], known: list[str]) -> None:
    distinct = IdTable.of(list(dict.fromkeys(known)))
    _, pieces = number_parts(distinct.text, distinct.starts[:-1], distinct.starts[1:])
    places = {name: place for place, name in enumerate(distinct)}
    for table in (distinct, build_id_table(pieces)):
        assert find_ids(IdTable.of(ids), table).tolist() == [places.get(name, -1) for name in ids]


def test_a_slice_of_an_array_is_a_table_too() -> None:
    assert list(IdTable.of_arrow(pa.array(["a", "bc", "", "d"])[1:3])) == ["bc", ""]


def test_lone_surrogates_are_preserved_but_not_written() -> None:
    table = IdTable.of(["a\ud800", "b"])
    assert list(table) == ["a\ud800", "b"]
    with pytest.raises(pa.ArrowInvalid):
        table.to_arrow()


def test_a_column_of_more_than_two_gibibytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrievers.id_table._LARGEST", 2)
    assert IdTable.of(["a", "b"]).to_arrow().to_pylist() == ["a", "b"]
    with pytest.raises(OverflowError, match="3 bytes"):
        IdTable.of(["a", "bc"]).to_arrow()


def test_a_place_beyond_the_table_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        IdTable.of(["a"])[1]
