from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.formats import tolerant
from runner.features.traces.formats.recording import Recording
from runner.features.traces.trace import ToolCall
from tests.strategies.json_values import JSON_WITH_INFINITIES, json_objects


def _unseen(call: ToolCall) -> None:
    raise AssertionError(f"{call} was told")


def _lines(content: bytes) -> tuple[list[Mapping[str, Any]], Mapping[str, int]]:
    recording = Recording(_unseen)
    found = list(tolerant.read_lines(io.BufferedReader(io.BytesIO(content)), recording))
    return found, recording.build_trace("transcript").losses


def _members(content: bytes) -> tuple[list[tuple[str, Mapping[str, Any]]], Mapping[str, int]]:
    recording = Recording(_unseen)
    found = list(tolerant.read_members(io.BufferedReader(io.BytesIO(content)), recording))
    return found, recording.build_trace("trajectory").losses


def test_lines_that_are_no_objects_are_counted_and_blank_ones_are_not() -> None:
    found, losses = _lines(b'\xef\xbb\xbf{"a": 1}\n\n  \nWARN starting\n[1]\n{"b": 2}\r\n{"c": ')
    assert found == [{"a": 1}, {"b": 2}]
    assert losses == {"lines that are not JSON objects": 3}


@pytest.mark.parametrize(
    ("line", "value", "losses"),
    [
        (b'{"a": "caf\xe9"}', "caf�", {"lines with bytes that are not UTF-8": 1}),
        (b'{"a": "half \\ud83d of a pair"}', "half ? of a pair", {}),
        (b'{"a": "tab\there"}', "tab\there", {}),
        (b'{"a": Infinity}', float("inf"), {}),
        ('{"a": "�"}'.encode(), "�", {}),
    ],
)
def test_what_strict_json_refuses_is_read(line: bytes, value: object, losses: Mapping[str, int]) -> None:
    assert _lines(line) == ([{"a": value}], losses)


def test_what_is_nested_too_deeply_is_passed_over() -> None:
    found, losses = _lines(b'{"a": ' + b"[" * 200 + b"]" * 200 + b'}\n{"a":' + b"[" * 90 + b"]" * 90 + b"}")
    assert len(found) == 1
    assert losses == {"lines nested deeper than 100": 1}
    found, losses = _lines(b'{"a":' * 100_000)
    assert (found, losses) == ([], {"lines that are not JSON objects": 1})


def test_lines_that_are_too_long_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tolerant, "_LONGEST", 20)
    found, losses = _lines(b'{"a": 1}\n{"a": "' + b"x" * 95 + b'"}\n{"b": 2}\n')
    assert found == [{"a": 1}, {"b": 2}]
    assert losses == {"lines that are too long": 1}


def test_steps_that_are_too_long_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tolerant, "_BLOCK", 16)
    monkeypatch.setattr(tolerant, "_LONGEST", 64)
    found, losses = _members(json.dumps({"steps": [{"a": 1}, {"a": "x" * 500}, {"b": 2}]}).encode())
    assert found == [("steps", {"a": 1})]
    assert losses == {"documents with steps that are too long": 1}


def test_a_bracket_too_many_is_counted() -> None:
    found, losses = _members(b'{"steps": [{"a": 1}]}]} {"steps": [{"b": 2}]}')
    assert found == [("steps", {"a": 1}), ("steps", {"b": 2})]
    assert losses == {"unmatched closing brackets": 2}


@pytest.mark.parametrize(
    ("preview", "said"),
    [
        ('[{"a": "x\\ny...[truncated]...', [{"a": "x\ny"}]),
        ('{"a": 1, "b": [2, ...[truncated]...', {"a": 1, "b": [2]}),
        ("no JSON", None),
        (None, None),
        (7, 7),
    ],
)
def test_the_preview_of_a_value_that_was_cut_is_read_as_far_as_it_goes(preview: object, said: object) -> None:
    recording = Recording(_unseen)
    assert tolerant.restore({"_corpus_truncated": True, "preview": preview}, recording) == said
    assert recording.build_trace("trajectory").losses == {"truncated values": 1}
    assert tolerant.restore({"preview": preview}, recording) == {"preview": preview}


@given(
    st.lists(json_objects(JSON_WITH_INFINITIES), max_size=5),
    json_objects(JSON_WITH_INFINITIES),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
    st.booleans(),
)
def test_a_document_s_members_are_those_that_a_json_library_reads(
    steps: list[Mapping[str, Any]], agent: Mapping[str, Any], indent: int | None, block: int, ascii_only: bool
) -> None:
    document = {"version": "1", "agent": agent, "steps": steps, "tags": ["{", {"x": 1}], "last": {}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tolerant, "_BLOCK", block)
        found, losses = _members(json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode())
    assert found == [("agent", agent), *(("steps", step) for step in steps), ("tags", {"x": 1}), ("last", {})]
    assert not losses


@given(st.lists(json_objects(JSON_WITH_INFINITIES), max_size=5), st.data())
def test_of_a_document_that_was_cut_the_steps_before_the_cut_are_whole(
    steps: list[Mapping[str, Any]], data: st.DataObject
) -> None:
    content = json.dumps({"steps": steps}).encode()
    found, losses = _members(content[: data.draw(st.integers(1, len(content) - 1))])
    assert [step for _, step in found] == steps[: len(found)]
    assert sum(losses.values()) == 1


@given(st.binary(max_size=200))
def test_any_bytes_give_objects_or_losses_and_no_error(content: bytes) -> None:
    assert all(isinstance(found, dict) for found in _lines(content)[0])
    assert all(isinstance(found, dict) for _, found in _members(b'{"steps": [' + content)[0])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([{"type": "text", "text": "a"}, "b", {"type": "image"}, 3], "a\nb"),
        ({"a": "é"}, '{"a": "é"}'),
        (5, "5"),
    ],
)
def test_results_of_any_shape_are_text(content: object, text: str) -> None:
    assert tolerant.text(content) == text


@given(JSON_WITH_INFINITIES, JSON_WITH_INFINITIES)
def test_counts_and_amounts_are_numbers_that_are_not_negative_or_nothing(one: object, other: object) -> None:
    total = tolerant.total({"a": one, "b": other}, "a", "b", "c")
    assert total is None or total >= 0
    amount = tolerant.amount(one)
    assert amount is None or amount >= 0
    assert tolerant.total(one, "a") is None or isinstance(one, dict)
