from __future__ import annotations

from typing import Any

import pytest

from runner.llm.json_replies import iter_json_objects


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ('```json\n{"x": 1}\n```', [{"x": 1}]),
        ('{"x": {"x": 2}} and {"x": 3}', [{"x": {"x": 2}}, {"x": 3}]),
        ('{"y": {"x": 2}}', [{"x": 2}]),
        ('{"x": 1', []),
        ("{" * 5000, []),
    ],
)
def test_matching_json_objects_are_extracted_but_not_from_within_each_other(text: str, objects: list[Any]) -> None:
    assert list(iter_json_objects(text, lambda content: "x" in content)) == objects
