"""A span is found again in an edited document, or listed; never silently in another place."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from benchmarks.simulations.edited_documents import Line, insert_lines, join_lines, locate, move_lines, write_lines
from retrievers.base import Corpus
from runner.datasets.anchoring import Anchor, Quote, find_lines, find_quote, list_lines
from runner.datasets.files import SourceRecord
from runner.datasets.spans import anchor_spans, format_span, parse_span


def anchor_again(row: dict[str, object], text: str) -> Anchor:
    span = parse_span(SourceRecord("spans.jsonl:", 1, row), "q")
    return anchor_spans([span], Corpus(["d"], [text]), 0.8)[0].anchor


@pytest.mark.parametrize("repeated", [0.2, 0.5])
@pytest.mark.parametrize("edit", [insert_lines, move_lines])
def test_spans_are_located_after_30_percent_of_the_lines_shifted(
    edit: Callable[[Sequence[Line], int], list[Line]], repeated: float
) -> None:
    """A share of the lines is repeated: each has one of five texts."""
    whole = right = shifted = n_lines = 0
    for seed in range(15):
        lines, rng = write_lines(seed, 100, repeated), random.Random(seed)
        text, edited = join_lines(lines), edit(lines, seed)
        shifted += sum(place != line.number for place, line in enumerate(edited) if line.number >= 0)
        n_lines += len(lines)
        for _ in range(20):
            first = rng.randrange(98)
            numbers = range(first, first + rng.randint(1, 3))
            place = locate(lines, numbers)
            assert place is not None
            anchor = anchor_again(format_span("q", "d", 1, text, *place), join_lines(edited))
            expected = locate(edited, numbers)
            if anchor.method == "exact":  # no wrong one goes unlisted
                assert join_lines(edited)[anchor.start : anchor.end] == text[slice(*place)]
                assert expected in (None, (anchor.start, anchor.end))
            whole += expected is not None
            right += expected is not None and (anchor.start, anchor.end) == expected
    assert shifted >= 0.3 * n_lines
    assert right >= 0.99 * whole


def test_spans_of_an_unchanged_document_are_exact_even_among_equal_lines() -> None:
    text = "same line\n" * 50
    for place in (0, 200, 490):
        anchor = anchor_again(format_span("q", "d", 1, text, place, place + 9), text)
        assert anchor == Anchor(place, place + 9, "exact")


def test_a_repeated_quote_at_the_edge_of_a_moved_block_is_located() -> None:
    block = "return x\n" + "".join(f"line {i} of the block that is moved\n" for i in range(6))
    rest = "".join(f"number {i} of the text stays\nreturn x\n" for i in range(8))
    row = format_span("q", "d", 1, rest + block, len(rest), len(rest) + 8)
    anchor = anchor_again(row, block + rest)
    assert (anchor.start, anchor.method) == (0, "context")


def test_a_repeated_quote_whose_surroundings_are_gone_is_lost() -> None:
    row = format_span("q", "d", 1, "alpha beta\nreturn x\ngamma delta\nreturn x\n", 11, 19)
    assert anchor_again(row, "one two\nreturn x\nthree four\nreturn x\n").is_lost
    assert anchor_again(row, "one two three four\nreturn x\nfive six seven\n").is_lost


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
    [
        (Quote("old tower"), "an old tower", Anchor(3, 12, "exact")),
        (Quote("old  tower"), "an old\ntower", Anchor(3, 12, "white space")),
        (Quote("x = 1"), "x = 1\nx = 1", None),
        (Quote("x = 1", before="b "), "a x = 1 b x = 1", Anchor(10, 15, "context", 1.0)),
        (Quote("the tower shines for all ships"), "the tower shines for many ships", Anchor(0, 31, "fuzzy", 5 / 6)),
        (Quote("the tower shines for all ships"), "A ferry leaves every hour.", None),
        (Quote("the old tower shines a lot"), "the old tower shines a bit, the old tower shines a mile", None),
    ],
)  # fmt: skip
def test_a_quote_is_located_or_lost(quote: Quote, text: str, expected: Anchor | None) -> None:
    anchor = find_quote(quote, text, 0.8)
    if expected is None:
        assert anchor.is_lost and anchor.reason
    elif expected.method == "context":
        assert (anchor.start, anchor.end) == (expected.start, expected.end)
    else:
        assert anchor == expected


def test_the_offset_of_a_repeated_quote_decides_but_is_listed() -> None:
    anchor = find_quote(Quote("x = 1", start=6), "x = 1\nx = 1", 0.8)
    assert (anchor.start, anchor.method) == (6, "position")
    assert anchor.reason == "the quote occurs 2 times; its offset decided"


def test_a_passage_below_the_similarity_is_lost() -> None:
    quote, text = Quote("the tower shines for all ships"), "Now the tower shines for many ships."
    assert find_quote(quote, text, 0.9).is_lost


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_from_1_and_end_before_their_line_end(end: str) -> None:
    text = end.join(["one", "two", "", "four"])
    anchor = find_lines(text, 2, 4)
    assert text[anchor.start : anchor.end] == end.join(["two", "", "four"])
    assert list_lines(text, anchor.start, anchor.end) == (2, 4)
    assert find_lines(text, 4, 5).reason == "the document has only 4 lines"
    assert find_lines(text + end, 5, 5).is_lost
