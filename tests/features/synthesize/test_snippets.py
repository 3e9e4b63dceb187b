"""Snippets are what people paste: error messages, definitions and short statements, word for word."""

from __future__ import annotations

import pytest

from runner.features.synthesize.snippets import iter_messages, iter_snippets
from tests.features.synthesize.manual import write_material

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


def test_messages_come_from_code_blocks_and_quotations() -> None:
    assert list(iter_messages(LOG)) == [
        "error: no valve is connected to the pump",
        "Unable to open the valve of tank seven",
    ]


@pytest.mark.parametrize(
    ("sentence", "is_quotable"),
    [
        ("A quay is a wall where vessels moor.", True),
        ("The quay supports salt water and ships of ten metres.", True),
        ("The quay supports salt water and fresh water of up to four bars of pressure in any pipe.", False),
        ("Pumps support salt water.", False),
        ("This quay supports salt water.", False),
        ("The table below lists every quay.", False),
        ("Never paint a quay!", False),
    ],
)
def test_a_sentence_is_quoted_if_it_is_short_and_about_its_heading(sentence: str, is_quotable: bool) -> None:
    assert list(iter_snippets(write_material(sentence, "The quay"))) == ([sentence] if is_quotable else [])
