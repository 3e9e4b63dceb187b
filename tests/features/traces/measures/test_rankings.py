"""Rankings of what agents found: scored as any rankings are, ir_measures being the oracle."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from hypothesis import given

from retrievers.base import NOTHING
from runner.features.traces.measures.rankings import rank_files
from runner.metrics.delegated import parse_delegated
from runner.metrics.measures import expand, parse
from tests.strategies.rankings import unique_lists
from tests.strategies.scores import value_pairs

MEASURES = expand(["P", "R", "F1", "nDCG", "RR", "AP"], (1, 3, 5, 10))


@given(value_pairs(unique_lists([f"src/{letter}.py" for letter in "abcdefghijklmnop"], 14), 1, 4))
def test_measures_are_those_of_ir_measures(tasks: list[tuple[list[str], list[str]]]) -> None:
    found, gold = zip(*tasks, strict=True)
    scores = rank_files(found, gold).score(MEASURES)
    qrels = {str(i): dict.fromkeys(files, 1) for i, files in enumerate(gold) if files}
    run = {str(i): {name: -float(rank) for rank, name in enumerate(files)} for i, files in enumerate(found) if files}
    theirs = [m for m in MEASURES if m.name != "F1"]
    expected = np.zeros((len(theirs), len(tasks)))
    at = {parse_delegated(str(measure)): row for row, measure in enumerate(theirs)}
    if qrels:
        for metric in ir_measures.iter_calc(list(at), qrels, run):
            expected[at[metric.measure], int(metric.query_id)] = metric.value
    for row, measure in enumerate(theirs):
        values = scores.of(measure)
        for i, files in enumerate(gold):
            assert values[i] == pytest.approx(expected[row, i], abs=1e-12) if files else np.isnan(values[i])
    precision, recall = scores.of("P@5"), scores.of("R@5")
    harmonic = [2 / (1 / p + 1 / r) if p > 0 else p for p, r in zip(precision, recall, strict=True)]
    np.testing.assert_allclose(scores.of("F1@5"), harmonic)


def test_the_first_file_seen_ranks_first_and_a_depth_cuts_the_last_ones_off() -> None:
    files = rank_files([["b", "c", "a"], []], [["a"], ["b"]], depth=2)
    names = [[files.files[d] for d in row if d != NOTHING] for row in files.rankings.documents.tolist()]
    assert names == [["b", "c"], []]
    assert files.rankings.scores.tolist() == [[0.0, -1.0], [-np.inf, -np.inf]]
    assert files.score([parse("R@2")]).values.tolist() == [[0.0, 0.0]]


def test_a_task_with_an_error_enters_no_mean() -> None:
    scores = rank_files([["a"], []], [["a"], ["b"]], errors={1: "no trace"}).score([parse("RR")])
    assert scores.means() == {"RR": 1.0}
    assert np.isnan(scores.values[0, 1])


def test_precision_divides_by_k_even_with_fewer_results() -> None:
    assert rank_files([["a"]], [["a"]]).score([parse("P@5")]).values.tolist() == [[0.2]]
