from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.result import ResultError, _token, write_trec
from tests.reports.factory import result


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("d1", "d1"),
        ("a b", "a%20b"),
        ("a  b", "a%20%20b"),
        (" a b", "%20a%20b"),
        ("a%20b", "a%2520b"),
        ("a\tb\n", "a%09b%0A"),
        ("a\u3000b", "a%E3%80%80b"),
        ("Gr\u00f6\u00dfe/x-1", "Gr\u00f6\u00dfe/x-1"),
        ("", "%"),
    ],
)
def test_an_id_is_one_field_of_a_run(text: str, token: str) -> None:
    assert _token(text) == token


@given(st.text())
def test_an_id_is_one_field_and_can_be_had_back(text: str) -> None:
    assert len(_token(text).split()) == 1
    assert unquote(_token(text)) == (text or "%")


@given(st.text(" %20ab", max_size=4), st.text(" %20ab", max_size=4))
def test_distinct_ids_stay_distinct(one: str, other: str) -> None:
    assert (_token(one) == _token(other)) == (one == other)


def test_a_run_has_six_fields_a_line(tmp_path: Path) -> None:
    found = result("a name", queries=3)
    assert found.found is not None
    spaced = replace(found.found, documents=[f"d {i}" for i in range(300)])
    write_trec(replace(found, found=spaced), tmp_path / "run.gz")
    lines = [line.split() for line in gzip.decompress((tmp_path / "run.gz").read_bytes()).decode().splitlines()]
    assert all(len(fields) == 6 for fields in lines)
    assert lines[0][0] == "q000"
    assert lines[0][2].startswith("d%20")
    assert {fields[5] for fields in lines} == {"a%20name"}


def test_a_run_needs_rankings(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="without its rankings"):
        write_trec(result(found=False), tmp_path / "run.gz")
