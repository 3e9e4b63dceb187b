"""Labels of combinations, whole and abbreviated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.__main__ import main
from runner.comparison.labels import abbreviate_labels

Swept = list[dict[str, object]]


@pytest.mark.parametrize(
    ("swept", "brief"),
    [
        pytest.param(
            [
                {"retriever": "bm25", "retriever.k1": 0.9},
                {"retriever": "hybrid", "encoder": "lsa", "retriever.method": "rrf", "retriever.rrf_k": 10},
                {"retriever": "hybrid", "encoder": "lsa", "retriever.method": "weighted", "retriever.alpha": 0.4},
                {"retriever": "hybrid", "encoder": "lsa", "retriever.method": "weighted", "retriever.alpha": 0.6},
            ],
            ["bm25", "hybrid rrf", "hybrid weighted alpha=0.4", "hybrid weighted alpha=0.6"],
            id="a value shared wherever its setting applies is left out",
        ),
        pytest.param(
            [{"a.method": "max", "b.method": "min"}, {"a.method": "min", "b.method": "max"}],
            ["a.method=max b.method=min", "a.method=min b.method=max"],
            id="a word of two settings names its setting",
        ),
        pytest.param(
            [{"chunking.size": 128}, {"chunking.size": None}],
            ["size=128", "size=None"],
            id="numbers and nothing name their setting",
        ),
        pytest.param(
            [
                {"retriever": "bm25", "chunking": "headings"},
                {"retriever": "dense", "encoder": "lsa", "chunking.size": 128},
                {"retriever": "dense", "encoder": "lsa", "chunking.size": 256},
            ],
            ["bm25 headings", "dense size=128", "dense size=256"],
            id="chunks differ from those of other combinations even if each retriever has only one kind",
        ),
        pytest.param(
            [
                {"retriever": "bm25", "retriever.k1": 0.9},
                {"retriever": "bm25", "retriever.k1": 1.2},
                {"retriever": "bm25", "analyzer": "german"},
            ],
            ["k1=0.9", "k1=1.2", "german"],
            id="a setting that only some combinations of a retriever have is shown",
        ),
        pytest.param(
            [{"retriever": "bm25"}, {"retriever": "bm25", "retriever.k1": 0.9}],
            ["0", "1"],
            id="labels that are not unique stay whole",
        ),
    ],
)
def test_labels_are_abbreviated_while_they_stay_unique(swept: Swept, brief: list[str]) -> None:
    assert abbreviate_labels([str(i) for i in range(len(swept))], swept) == brief


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["retriever", "retriever.k1", "retriever.method", "encoder", "parts.a.k1"]),
            st.sampled_from(["bm25", "rrf", 0.5, 10, None, "max"]),
            max_size=4,
        ),
        min_size=1,
        max_size=6,
    )
)
def test_no_two_abbreviated_labels_are_equal(swept: Swept) -> None:
    whole = [f"combination {i}" for i in range(len(swept))]
    assert len(set(abbreviate_labels(whole, swept))) == len(swept)


UNION = """\
# @package _global_
hydra: {mode: MULTIRUN}
sweep:
  union:
    headings: {retriever: bm25, chunking: headings}
    sizes: {retriever: dense, encoder: lsa, chunking: tokens, chunking.size: [32, 64]}
"""


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_rows_of_a_union_show_how_their_documents_are_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", columns)
    Path("union.yaml").write_text(UNION)
    assert main(["experiment=union.yaml", "tracking=none"]) == 0
    rows = re.findall(r"^ *\d+  (.+?)  +0\.\d{4} ", capsys.readouterr().out, re.MULTILINE)
    assert sorted(rows) == ["bm25 headings", "dense tokens size=32", "dense tokens size=64"]
