"""Fields slice results if they group queries."""

from __future__ import annotations

from typing import Any

import pytest

from runner.datasets.query_fields import MOST_VALUES, select_fields


def test_fields_that_several_queries_share_group_them() -> None:
    metadata: list[dict[str, Any]] = [
        {"language": "de" if i % 2 else "en", "url": f"/{i}", "year": 2020 + i % 3, "draft": i < 3, "tags": ["a"]}
        for i in range(12)
    ]
    fields = select_fields(metadata)
    assert list(fields[0]) == ["language", "year", "draft"]
    assert fields[4] == {"language": "en", "year": "2021", "draft": "no"}


def test_a_missing_value_is_a_group_of_its_own() -> None:
    fields = select_fields([{"source": "wiki"}, {"source": "wiki"}, {}, {"source": None}])
    assert [of["source"] for of in fields] == ["wiki", "wiki", "", ""]


@pytest.mark.parametrize(
    "values",
    [["one"] * 8, [f"{i}" for i in range(8)], ["a", "b" * 100] * 4, [{"a": 1}, "b"] * 4],
    ids=["one value", "values of single queries", "long texts", "objects"],
)
def test_other_fields_do_not_group(values: list[object]) -> None:
    assert select_fields([{"field": value} for value in values]) == []


def test_a_field_with_too_many_values_does_not_group() -> None:
    metadata = [{"field": i // 4} for i in range(4 * (MOST_VALUES + 1))]
    assert select_fields(metadata) == []
    assert select_fields(metadata[4:])


def test_what_queries_represent_is_a_weight_and_not_a_group() -> None:
    assert select_fields([{"represents": weight, "source": "wiki"} for weight in (1, 1, 2, 2)]) == []
