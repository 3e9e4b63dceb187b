"""How many gold spans are found again after edits, and whether any is found in a wrong place without being listed.

`python -m benchmarks.simulations.anchoring` prints a table in Markdown.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

from benchmarks.simulations.edited_documents import (
    Line,
    insert_lines,
    join_lines,
    locate,
    move_lines,
    write_lines,
)
from retrievers.base import Corpus
from runner.datasets.files import SourceRecord
from runner.datasets.spans import anchor_spans, format_span, parse_span

DOCUMENTS, LINES, SPANS = 100, 100, 20

Edit = Callable[[Sequence[Line], int], list[Line]]


def count_anchors(edit: Edit, repeated: float, documents: int = DOCUMENTS) -> dict[str, int]:
    """Count the lines that stand elsewhere after an edit, and what became of the spans.

    `right` spans were found in their place, `listed` ones were not and are reported as lost or inexact, `unlisted` ones
    were not and are reported as exact. `broken` spans, which an edit cut, are counted apart from the `whole` ones, and
    are wrong only if their text is not that of the quote.
    """
    counts = dict.fromkeys(("lines", "shifted", "whole", "right", "listed", "broken", "unlisted"), 0)
    for seed in range(documents):
        lines, rng = write_lines(seed, LINES, repeated), random.Random(seed)
        text, edited = join_lines(lines), edit(lines, seed)
        corpus = Corpus(["d"], [join_lines(edited)])
        counts["lines"] += len(lines)
        counts["shifted"] += sum(place != line.number for place, line in enumerate(edited) if line.number >= 0)
        for _ in range(SPANS):
            first = rng.randrange(LINES - 2)
            numbers = range(first, first + rng.randint(1, 3))
            place, expected = locate(lines, numbers), locate(edited, numbers)
            assert place is not None
            record = SourceRecord("spans:", 1, format_span("q", "d", 1, text, *place))
            anchor = anchor_spans([parse_span(record, "q")], corpus, 0.8)[0].anchor
            counts["whole" if expected else "broken"] += 1
            if expected and (anchor.start, anchor.end) == expected:
                counts["right"] += 1
            elif anchor.method == "exact":
                same_text = corpus.texts[0][anchor.start : anchor.end] == text[slice(*place)]
                counts["unlisted"] += expected is not None or not same_text
            elif expected:
                counts["listed"] += 1
    return counts


def main() -> int:
    """Print a row for each edit and share of repeated lines."""
    print(
        "| edit | repeated lines | lines elsewhere | whole spans | in their place | listed instead | wrong, unlisted |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, edit in (("lines inserted", insert_lines), ("a block moved", move_lines)):
        for repeated in (0.0, 0.2, 0.5):
            counts = count_anchors(edit, repeated)
            print(
                f"| {name} | {repeated:.0%} | {counts['shifted'] / counts['lines']:.0%} | {counts['whole']:,} | "
                f"{counts['right'] / counts['whole']:.1%} | {counts['listed']:,} | {counts['unlisted']:,} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
