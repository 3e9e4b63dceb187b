"""Columns made without `pyarrow.array` equal its columns, and pandas stays unloaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.evaluation.arrow import (
    build_dictionary_column,
    build_integer_lists,
    build_number_column,
    build_text_column,
    build_text_lists,
)
from tests.strategies.texts import TEXTS


def assert_equal(column: Any, expected: Any) -> None:
    column.validate(full=True)
    assert column.type == expected.type
    assert column.to_pylist() == expected.to_pylist()


@given(st.lists(TEXTS))
def test_columns_of_texts_equal_those_of_pyarrow(texts: list[str]) -> None:
    assert_equal(build_text_column(texts), pa.array(texts, pa.string()))
    assert_equal(build_dictionary_column([*texts, *texts]), pa.array([*texts, *texts], pa.string()).dictionary_encode())


@given(st.lists(st.lists(TEXTS)))
def test_columns_of_lists_equal_those_of_pyarrow(lists: list[list[str]]) -> None:
    assert_equal(build_text_lists(lists), pa.array(lists, pa.list_(pa.string())))
    lengths = [[len(text) for text in texts] for texts in lists]
    assert_equal(build_integer_lists(lengths), pa.array(lengths, pa.list_(pa.int32())))


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.5, np.nan, -np.inf, 2]),
        np.array([1.5, 2], np.float32),
        np.array([-1, 3], np.int32),
        np.arange(20) % 3 == 0,
        np.zeros(0),
        np.arange(20.0)[::-3],
    ],
)
def test_columns_of_numbers_equal_those_of_pyarrow(values: NDArray[Any]) -> None:
    assert_equal(build_number_column(values), pa.array(values, from_pandas=True))


def test_no_column_loads_pandas_or_kernels() -> None:
    code = """
import sys
import numpy as np
from runner.evaluation.arrow import build_integer_lists, build_number_column, build_dictionary_column, build_text_lists
build_dictionary_column(["a", "b", "a"])
build_text_lists([["a"], []])
build_integer_lists([[1]])
build_number_column(np.zeros(3))
assert "pyarrow" in sys.modules
sys.exit("pandas" in sys.modules or "pyarrow.compute" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
