from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.sweep.expressions import parse
from tests.strategies.arguments import CONDITION_NUMBERS

VALUES: dict[str, Any] = {
    "retriever": "bm25",
    "retriever.k1": 1.5,
    "retriever.b": 0.3,
    "retriever.alpha": None,
    "retriever.parts.lexical.k1": 0.9,
    "retriever@retriever.parts.lexical": "sqlite_fts",
    "encoder.my-setting": "a b",
    "metrics.k_values": [1, 10],
    "flag": True,
    "word": "dense",
}


def holds(text: str) -> bool:
    return parse(text, "sweep.exclude").holds(VALUES.__getitem__)


@pytest.mark.parametrize(
    "text",
    [
        "retriever == bm25",
        "retriever == 'bm25'",
        "retriever != dense",
        "retriever in [bm25, dense]",
        "retriever not in (dense, 'hybrid')",
        "retriever.k1 > 1.2 and retriever.b < 0.5",
        "retriever.k1 < 1 or retriever.b == 0.3",
        "not retriever.k1 < 1",
        "0.1 < retriever.b < 0.5 <= retriever.k1",
        "retriever.parts.lexical.k1 >= 3 * retriever.b",
        "retriever.k1 == retriever.b * 5",
        "-retriever.k1 + 2 == 0.5",
        "retriever.k1 % 1 == 1 // 2 + 0.5",
        "retriever@retriever.parts.lexical == sqlite_fts",
        "key('retriever@retriever.parts.lexical') == sqlite_fts",
        "key('encoder.my-setting') == 'a b'",
        "metrics.k_values == [1, 10]",
        "10 in metrics.k_values",
        "flag",
        "flag == true and not False",
        "retriever == key('retriever')",
        "retriever.alpha == null",
        "retriever.alpha in [null, 0.5]",
        "retriever.k1 != null",
        "retriever.k1 > 1 or nowhere > 1",
        "true",
        "retriever.alpha + 1 == null",
    ],
)
def test_it_is_true(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "comparison", ["< 1", "> 1", "== 1", "!= 1", "in [1]", "not in [1]", "+ 1 > 0", "< retriever.b"]
)
def test_what_is_null_compares_as_false(comparison: str) -> None:
    assert not holds(f"retriever.alpha {comparison}")
    assert not holds("retriever.alpha")
    assert holds(f"not retriever.alpha {comparison}")


def test_a_plain_word_is_a_key_on_the_left_and_a_string_on_the_right() -> None:
    assert holds("word == dense")
    assert not holds("word == word")
    assert holds("word != retriever")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "retriever ==",
        "retriever = bm25",
        "retriever == all-MiniLM-L6-v2 !",
        "import os",
        "lambda: 1",
        "retriever is bm25",
        "open('x') == 1",
        "retriever.k1.__class__()",
        "key(retriever) == 1",
        "key('a', 'b') == 1",
        "[x for x in retriever]",
        "retriever[0] == b",
        "(retriever := 1)",
        "f'{retriever}' == x",
        "1 if retriever else 2",
        "2 ** 99 > 1",
        "retriever == 1j",
        "~retriever.k1 == 1",
        "**retriever",
        "retriever == b'x'",
        "\0",
        "(" * 500,
        "not " * 100_000 + "flag",
    ],
)
def test_an_invalid_condition_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^sweep\.exclude: ") as caught:
        parse(text, "sweep.exclude")
    assert "invalid condition (" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("retriever.k1", "1.5 is neither true nor false; compare it with a value"),
        ("retriever.k1 and true", "1.5 is neither true nor false"),
        ("retriever > 1", "'bm25' and 1 cannot be compared"),
        ("retriever in retriever.k1", "'bm25' and 1.5 cannot be compared"),
        ("retriever + 1 > 1", "'bm25' is not a number"),
        ("retriever.k1 / 0 > 1", "division by zero"),
    ],
)
def test_a_condition_that_cannot_be_computed_is_reported(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        holds(text)
    place, _, said = str(caught.value).partition(f" {text}: ")
    assert place == "sweep.exclude:"
    assert message in said


def test_its_keys_are_those_that_it_may_read() -> None:
    expression = parse("retriever.k1 > 1 and (a in [b, c.d] or not key('x/y@z') == w)", "sweep.when.e")
    assert expression.keys == {"retriever.k1", "a", "c.d", "x/y@z"}


def test_an_error_while_reading_a_setting_is_reported_with_its_condition() -> None:
    def read(key: str) -> Any:
        raise ConfigError(f"{key}: no such setting")

    with pytest.raises(ConfigError, match=r"^sweep\.include: a == 1: a: no such setting$"):
        parse("a == 1", "sweep.include").holds(read)


COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}


@given(
    CONDITION_NUMBERS,
    CONDITION_NUMBERS,
    CONDITION_NUMBERS,
    st.sampled_from(sorted(COMPARISONS)),
    st.sampled_from("+-*"),
)
def test_numbers_compute_and_compare_as_in_python(a: float, b: float, c: float, comparison: str, sign: str) -> None:
    compute = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
    expected = COMPARISONS[comparison](compute(a, b), c)
    assert parse(f"x.a {sign} x.b {comparison} {c}", "here").holds({"x.a": a, "x.b": b}.__getitem__) is expected


@given(st.text())
def test_any_text_is_a_condition_or_refused_in_words(text: str) -> None:
    try:
        parse(text, "sweep.exclude").holds(lambda key: None)
    except ConfigError as error:
        assert str(error).startswith("sweep.exclude: ")
