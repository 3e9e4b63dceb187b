"""Snippets are what people paste: error messages, definitions and short statements, word for word."""

from __future__ import annotations

import pytest

from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.material import Material
from runner.features.synthesize.snippets import iter_messages, iter_snippets
from runner.features.synthesize.terms import count_terms

LOG = """Start the pump:

```console
$ pumpctl start
E0312 10:04:17.123456 1 pump.go:61] error: no valve is connected to the pump
Error from server (Forbidden): error when creating "pump.yaml":
name: pump   status: Failed
error: "{broken"
```

It may log "Unable to open the valve of tank seven" before it stops.
"""


def test_messages_are_lines_of_code_blocks_and_quotations_that_report_an_error() -> None:
    assert list(iter_messages(LOG)) == [
        "error: no valve is connected to the pump",
        "Unable to open the valve of tank seven",
    ]


@pytest.mark.parametrize(
    ("sentence", "is_quotable"),
    [
        ("A quay is a wall where vessels moor.", True),
        ("The pump supports salt water.", True),
        ("The pump of the quay supports salt water and fresh water of up to four bars of pressure.", False),
        ("This pump supports salt water.", False),
        ("The table below lists the pumps.", False),
    ],
)
def test_a_sentence_is_quoted_if_it_is_short_and_stands_alone(sentence: str, is_quotable: bool) -> None:
    texts = [sentence, *(f"Page {number} is about the cranes of the harbour." for number in range(20))]
    names = [str(number) for number in range(len(texts))]
    chunks = Chunks(names, names, texts)
    material = Material(chunks, Bundle((0,), (1,)), count_terms(chunks, Analyzer()))
    assert list(iter_snippets(material)) == ([sentence] if is_quotable else [])
