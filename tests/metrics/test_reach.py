"""A query with more judged documents than a search returns: measures that cannot reach 1 come with a warning."""

from __future__ import annotations

import pytest

from runner.metrics.measures import parse
from runner.metrics.reach import list_depth_warnings
from tests.metrics.worlds import judgments_of

JUDGMENTS = judgments_of({0: {0: 1, 1: 2, 2: 1}, 1: {0: 1, 1: 0, 2: 0, 3: 0, 4: -1}, 2: {0: 0, 1: 0}})


@pytest.mark.parametrize(
    ("depth", "measure", "warnings"),
    [
        (2, "AP@2", ["1 of 2 queries have more gold documents than the search depth of 2, so recall, AP and Rprec"]),
        (3, "AP@3", []),
        (3, "Bpref@3", ["1 of 2 queries have more judged documents than the search depth of 3, and Bpref ignores"]),
        (5, "Bpref@5", []),
    ],
)
def test_more_judged_documents_than_results_are_a_warning(depth: int, measure: str, warnings: list[str]) -> None:
    said = list_depth_warnings(JUDGMENTS, 3, depth, [parse(measure)])
    assert len(said) == len(warnings)
    assert all(sentence.startswith(start) for sentence, start in zip(said, warnings, strict=True))


def test_a_warning_names_the_depth_that_is_enough() -> None:
    said = " ".join(list_depth_warnings(JUDGMENTS, 3, 1, [parse("Bpref@1")]))
    assert "set metrics.depth=3" in said
    assert "set metrics.depth=5" in said
