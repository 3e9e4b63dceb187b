"""Data frames with types, figures, and differences in a line, as notebooks show them."""

from __future__ import annotations

import numpy as np
import pytest

import runner
from retrievers import extras
from runner.api.sweep import SweepBoard


@pytest.fixture
def board(data: runner.Dataset) -> SweepBoard:
    """Return the board of three combinations of one retriever, and one of another."""
    union = "sweep.union=[{retriever: bm25, retriever.k1: [0.6, 1.2, 2]}, {retriever: sqlite_fts}]"
    return runner.run_sweep(union, dataset=data, tracking_uri="none")


def test_settings_are_numbers_booleans_or_categories(board: SweepBoard, data: runner.Dataset) -> None:
    frame = board.frame
    assert frame.dtypes["retriever"] == "category"
    assert frame.dtypes["retriever.k1"] == np.float64
    assert sorted(frame["retriever.k1"].dropna()) == [0.6, 1.2, 2.0]
    assert frame[frame["retriever.k1"] < 1]["name"].str.contains("k1=0.6").tolist() == [True]
    other = runner.run_sweep("retriever=bm25", "analyzer=english,plain", dataset=data, tracking_uri="none").frame
    assert list(other["analyzer"].cat.categories) == ["english", "plain"]


def test_a_board_is_drawn_as_means_with_intervals_the_best_on_top(board: SweepBoard) -> None:
    (panel,) = board.plot().axes
    labels = {"bm25 k1=0.6", "bm25 k1=1.2", "bm25 k1=2", "sqlite_fts"}
    assert {label.get_text() for label in panel.get_yticklabels()} == labels
    drawn = [float(line.get_xdata()[0]) for line in panel.lines if line.get_marker() == "o"]  # type: ignore[index,arg-type]
    assert drawn == board.frame["nDCG@10"].tolist()
    assert panel.get_xlabel() == "nDCG@10, 95% intervals"
    assert panel.yaxis_inverted()


def test_a_result_is_drawn_as_the_number_of_queries_with_each_value(board: SweepBoard) -> None:
    (panel,) = board.best.plot().axes
    assert sum(bar.get_height() for bar in panel.patches) == 3  # type: ignore[attr-defined]  # a rectangle
    legend = panel.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["mean of 3 queries"]


def test_without_matplotlib_an_error_says_how_to_install_it(board: SweepBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda module: None)
    for one in (board, board.best):
        with pytest.raises(extras.MissingPackageError, match="run pip install matplotlib"):
            one.plot()
