"""The numbers of an artifact by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from runner.features.traces.measures.figures import FigureNames, build_row, group_columns, list_figures
from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.runs.outcomes import RunOutcome
from tests.features.traces.documents import done
from tests.strategies.artifacts import OUTCOMES, documents

NAMES = FigureNames()


def test_figures_are_those_of_all_stages_and_of_the_outcome() -> None:
    found = list_figures(done("t", "a.py", "x.py", reward=1.0, seconds=9))
    assert (found["precision@1"], found["recall@10"], found["mrr"], found["context_efficiency"]) == (1, 0.5, 1, 0.5)
    assert (found["n_retrieved"], found["missed_key_evidence"]) == (2, 1)
    assert found["util_read_overlap_with_relevant_files"] == 0.5
    assert (found["reward"], found["seconds"]) == (1, 9)
    assert {"cost", "ttfr_seconds", "chunk_recall"}.isdisjoint(found)


@pytest.mark.parametrize(
    ("cutoffs", "headline", "precision"),
    [
        ((1, 3, 5, 10, 100), "ndcg@10", "precision@5"),
        ((2, 7), "ndcg@7", "precision@2"),
        ((20,), "ndcg@20", "precision@20"),
    ],
)
def test_what_is_shown_follows_the_cutoffs(cutoffs: tuple[int, ...], headline: str, precision: str) -> None:
    names = FigureNames(cutoffs)
    assert (names.headline, names.precision) == ((headline,), (precision,))
    assert {headline, precision} < {*names.measures}
    assert [name for name in names.all if name.startswith("ndcg")] == [f"ndcg@{k}" for k in cutoffs]


def test_a_task_that_cannot_be_measured_has_its_outcome_alone() -> None:
    assert list_figures(done("t", "a.py", gold=(), reward=0.0)) == {"reward": 0}


def test_a_reward_of_nan_is_left_out() -> None:
    assert "reward" not in list_figures(done("t", reward=math.nan))


def test_columns_have_nan_where_a_figure_is_not_known() -> None:
    found = group_columns((build_row(each, NAMES) for each in (done("t", reward=0.5), done("u"))), NAMES)
    np.testing.assert_array_equal(found["reward"], [0.5, np.nan])
    np.testing.assert_array_equal(found["mrr"], [0, 0])


@given(documents(), OUTCOMES)
def test_every_figure_is_finite_and_named(made: dict[str, Any], outcome: RunOutcome | None) -> None:
    found = list_figures(build_artifact(made, outcome))
    assert list(found) == [name for name in NAMES.all if name in found]
    assert all(math.isfinite(value) for value in found.values())
