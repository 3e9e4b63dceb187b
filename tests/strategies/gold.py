"""Gold files of tasks, and paths in traces."""

from __future__ import annotations

from hypothesis import strategies as st

from runner.features.traces.truth.ground_truth import GoldChunk, GoldFile, GoldSymbol, GroundTruth
from runner.features.traces.truth.paths import File
from tests.strategies.json_values import json_values
from tests.strategies.texts import texts_of

SEEN_PATHS = st.sampled_from(
    ["src/a.py", "/workspace/src/a.py", "b.py", "k--1/src/a.py", "x/src/a.py", "\ud800.py", "a::b.py"]
)
GOLD_FILES = st.builds(GoldFile, SEEN_PATHS, st.none() | st.sampled_from(["k", "o/k--1", "other", ""]))
GROUND_TRUTHS = st.builds(
    GroundTruth,
    files=st.lists(GOLD_FILES, max_size=3),
    chunks=st.lists(st.builds(GoldChunk, SEEN_PATHS, st.just(1), st.just(2)), max_size=2),
    symbols=st.lists(st.builds(GoldSymbol, SEEN_PATHS, st.text(max_size=5)), max_size=2),
    expected_edit_files=st.none() | st.lists(GOLD_FILES, max_size=2),
)

REPOSITORY_FILES = st.builds(
    File,
    texts_of(st.sampled_from(["a", "b", "src", "A.py", "b.py", "kafka", "x--1"]), 4, min_size=1, separator="/"),
    st.none() | st.sampled_from(["kafka", "github.com/o/kafka--v1", "other"]),
)
"""Files with and without a repository, of which many differ by a folder or by case."""

FIELDS = (
    "files path file repo symbols symbol chunks line_start line_end ground_truth entries expected_file "
    "expected_edit_files expected_line_range artifacts oracle required_symbols root_cause fix_files"
)
GOLD_JSON = json_values(keys=st.sampled_from(FIELDS.split()) | st.text(max_size=5))
"""Values with the fields of files of gold."""
