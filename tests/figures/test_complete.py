"""Every figure that the code logs is read from a database by a test here, or has no right value to expect.

A new figure fails until a test expects its value, which is neither 0 nor 1; None is a value that a test computes.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from runner.metrics.formulas import FORMULAS
from runner.metrics.measures import TOKEN_MEASURES
from runner.tracking.record import metric_name
from tests.figures.in_code import list_names

MODULES = [
    import_module(f"tests.figures.{file.stem}")
    for file in sorted(Path(__file__).parent.glob("test_*.py"))
    if file.stem != Path(__file__).stem
]
EXPECTED: list[tuple[str, float | None]] = [item for module in MODULES for item in module.EXPECTED.items()]
MEASURED_BY_OTHERS = {"Judged", *TOKEN_MEASURES}
"""Measures whose values tests of `tests/metrics` compare with oracles, but none here reads from a database."""

NO_RIGHT_VALUE = {"encoding_ms": "a time of a model on this machine"}
EXPECTED_ELSEWHERE = {
    "features/load/test_measuring.py": (
        "failed", "load_requests", "quality", "saturation", "throughput", "timed_out",
    ),
    "features/mine/test_traffic.py": ("coverage_{}",),
    "features/monitor/test_command.py": (
        "drift/queries", "drift/scores", "failed_rate", "hole_rate", "no_result_rate", "slice/{}", "traffic/judged",
        "traffic/searches", "traffic/users",
    ),
}  # fmt: skip
"""Figures whose values the tests of their features expect."""
NOT_LOGGED = {
    "lexical_overlap": "the start of lexical_overlap/{}", "bm25_hit_at_1": "the start of bm25_hit_at_1/{}",
    "bm25_hit_at_10": "the start of bm25_hit_at_10/{}",
    "unasked": "the start of grade/unasked", "asked": "the start of grade/asked", "_cut": "the end of documents_cut",
    "ragas_context_relevance": "a figure of one query", "pairs": "the end of judge/pairs",
    "clamped": "the end of judge/clamped", "1.5bit": "a setting", "2bit": "a setting",
}  # fmt: skip


def is_expected(name: str) -> bool:
    """Return whether a test expects a figure of this name with a value that is neither 0 nor 1."""
    pattern = re.compile(re.escape(name).replace(r"\{\}", ".+") + r"(, step \d+)?")
    return any(pattern.fullmatch(logged) and value not in (0, 1) for logged, value in EXPECTED)


def test_every_figure_in_the_code_has_a_test_or_is_listed() -> None:
    missing = {name for name in list_names() if not is_expected(name)}
    elsewhere = {name for names in EXPECTED_ELSEWHERE.values() for name in names}
    assert missing == {*NO_RIGHT_VALUE, *NOT_LOGGED, *elsewhere}


def test_figures_that_are_expected_elsewhere_are_named_there() -> None:
    for file, names in EXPECTED_ELSEWHERE.items():
        text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
        assert [name for name in names if name.partition("{")[0].rstrip("_") not in text] == []


def test_every_measure_is_read_from_a_database() -> None:
    formulas = [name for name in FORMULAS if name not in MEASURED_BY_OTHERS]
    assert [
        name for name in formulas if not (is_expected(metric_name(name)) or is_expected(f"{metric_name(name)}_at_{{}}"))
    ] == []
