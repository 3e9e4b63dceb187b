"""A TREC run is read in blocks as it is line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrievers.base import NOTHING, Corpus, QueryText, RetrieverError
from retrievers.runs import trec_runs
from retrievers.runs.run_columns import Columns, OrderedColumns
from retrievers.runs.run_file import RunSearcher
from retrievers.runs.trec_runs import read_trec
from tests.strategies.rankings import RUN_HITS
from tests.strategies.trec_lines import SIMILAR_LINES, trec_lines

FILE = Path("x.trec")


def read(content: bytes, small: int) -> Columns | str:
    try:
        columns = read_trec(memoryview(content), FILE, small)
    except RetrieverError as error:
        return str(error)
    if isinstance(columns, Columns):
        return columns
    rows = columns.list_rows()
    queries = np.repeat(np.arange(len(columns.query_ids), dtype=np.int32), columns.ends - columns.starts)
    return Columns(queries, columns.scores[rows], columns.query_ids, columns.documents.reorder(rows))


def assert_alike(content: bytes) -> None:
    """Compare both readers: numbers, ids, scores of 32 bits, and messages."""
    blocks, simple = read(content, -1), read(content, len(content))
    if isinstance(simple, str) or isinstance(blocks, str):
        assert blocks == simple
        return
    assert blocks.queries.tolist() == simple.queries.tolist()
    assert blocks.query_ids == simple.query_ids
    rows = np.arange(len(simple.queries))
    (numbers, ids), (expected, expected_ids) = blocks.documents.number(rows), simple.documents.number(rows)
    assert numbers.tolist() == expected.tolist()
    assert list(ids) == list(expected_ids)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(blocks.scores.astype(np.float32), simple.scores.astype(np.float32))


@given(
    st.lists(trec_lines(), max_size=12),
    st.sampled_from(["\n", "\r\n", "\n\n", "\n \r\n"]),
    st.booleans(),
    st.booleans(),
)
@example([], "\n", True, True)
def test_lines_are_read_alike(rows: list[str], end: str, mark: bool, ended: bool) -> None:
    assert_alike((b"\xef\xbb\xbf" if mark else b"") + (end.join(rows) + end * ended).encode())


@given(st.lists(SIMILAR_LINES, max_size=12), st.sampled_from([1, 40, 1 << 21]))
def test_blocks_of_spaces_and_of_tabs_are_read_alike(rows: list[str], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec_runs, "_BLOCK_BYTES", size)
        assert_alike("\n".join(rows).encode())


@given(st.lists(st.binary(max_size=6).map(lambda word: b"q 0 " + word + b" 1 2 t"), max_size=5))
def test_bytes_that_are_not_text_are_refused_alike(rows: list[bytes]) -> None:
    assert_alike(b"\n".join(rows))


@given(st.floats(-(2.0**127), 2.0**127, width=32))
def test_a_score_between_two_numbers_of_32_bits_is_rounded_as_python_does(low: float) -> None:
    high = float(np.nextafter(np.float32(low), np.float32(np.inf)))
    middle = (low + high) / 2
    near = [low, middle, float(np.nextafter(middle, low)), float(np.nextafter(middle, high))]
    assert_alike("".join(f"q 0 d{i} 1 {score!r} t\n" for i, score in enumerate(near)).encode())


@pytest.mark.parametrize("size", [1, 5_000, 1 << 21])
def test_blocks_have_their_ids_in_common(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec_runs, "_BLOCK_BYTES", size)
    rows = [f"q{i // 100} 0 d{i * i % 4_009} {i % 100 + 1} {(100 - i % 100) / 7!r} t" for i in range(2_000)]
    content = "\n".join([*rows, "", *rows[:0:-1]]).replace("q0 ", " q0  ")
    assert_alike(content.encode())
    assert isinstance(read_trec(memoryview("\n".join(rows).encode()), FILE, -1), OrderedColumns)


@pytest.mark.parametrize("row", ["q 0 d 1 2 t", "a q\t0\ta d\t1\t2\tmy tag", " q  0 d 1 2", "q\t0\td\t1\t-2e-3\r"])
def test_ordinary_lines_need_no_reading_line_by_line(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec_runs, "_iter_lines", lambda content, path: pytest.fail("line by line"))
    columns = read(f"{row}\n\n{row}\n".encode(), -1)
    assert isinstance(columns, Columns)
    assert columns.scores.tolist() == pytest.approx([2 if "-" not in row else -0.002] * 2)


@pytest.mark.parametrize("change", [(50, "q0 0 d1 51 99 t"), (150, "q0 0 d1 51 0.5 t"), (150, "q1 0 d1 51 1e-50 t")])
def test_a_run_out_of_order_is_read_alike(change: tuple[int, str]) -> None:
    rows = [f"q{i // 100} 0 d{i} 1 {(100 - i % 100) / 7!r} t" for i in range(300)]
    rows[change[0]] = change[1]
    assert_alike("\n".join(rows).encode())


def test_lines_much_shorter_than_the_first_ones_are_read_alike() -> None:
    rows = [f"q 0 {'long' * 30}{i} 1 {999 - i} t" for i in range(200)]
    assert_alike("\n".join([*rows, *(["p 0 d 1 2 t"] * 9_000)]).encode())


def test_an_id_of_more_than_65535_bytes_is_read_alike() -> None:
    assert_alike(f"q 0 a 1 4 t\nq 0 {'long' * 17_000} 2 3 t\nq 0 b 3 2 t\n".encode())


def test_an_id_that_begins_like_the_one_before_is_another_query() -> None:
    assert_alike(b"q1 0 a 1 4 t\nq12 0 b 1 3 t\nq1\t0 c 1 2 t\n q1 0 d 1 1 t\nq 0 e 1 0 t\nq1\n")
    assert_alike(b"q1 0 a 1 4 t\nq12 0 b 1 3 t\nq1\t0 c 1 2 t\n q1 0 d 1 1 t\nq 0 e 1 0")


@given(st.lists(RUN_HITS, min_size=1, max_size=30), st.integers(1, 6), st.sampled_from([-1, 1 << 20]))
def test_hits_in_any_order_are_ranked_as_dictionaries_say(
    hits: list[tuple[str, str, float]], k: int, small: int
) -> None:
    content = "".join(f"{query} 0 {document} 1 {score} t\n" for query, document, score in hits).encode()
    corpus = Corpus(["a", "b"], ["", ""])
    searcher = RunSearcher.of("x.trec", read_trec(memoryview(content), FILE, small), corpus, encoded=False)
    queries = sorted({query for query, _, _ in hits})
    rankings = searcher.search([QueryText("", query) for query in queries], k)
    names = [*corpus.ids, *rankings.unknown_ids]
    for query, documents, scores in zip(queries, rankings.documents, rankings.scores, strict=True):
        best = {d: max(s for q, other, s in hits if (q, other) == (query, d)) for q, d, _ in hits if q == query}
        expected = sorted(((score, document) for document, score in best.items()), reverse=True)[:k]
        assert [(s, names[d]) for d, s in zip(documents, scores, strict=True) if d != NOTHING] == expected


def test_a_small_run_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec_runs, "_read_blocks", lambda content: pytest.fail("in blocks"))
    assert read_trec(memoryview(b"q 0 d 1 2 t\n"), FILE).scores.tolist() == [2.0]
