"""Which files prose asks the agent to write, and which it only mentions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.truth.gold_files import find_paths
from runner.features.traces.truth.output_files import find_output_files, is_output


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ("Fix the bug in src/a.c and write your findings to reports/out.json.", ["reports/out.json"]),
        ("Write your findings to\n`reports/y.json`, and update src/k.py.", ["reports/y.json"]),
        ("Save the results in `docs/x.md`.", ["docs/x.md"]),
        ("Modify `src/a.py` and create `src/b.py`.", ["src/b.py"]),
        ("Generate `docs/a.md` and `docs/b.md` from `src/spec.yaml`.", ["docs/a.md", "docs/b.md"]),
        ("Create two new files: `src/log.h` and `src/log.c`.", ["src/log.h", "src/log.c"]),
        ("Create the following files:\n\n- `a/b.md`: x\n- `c/d.json`\n\nSee e/f.py.", ["a/b.md", "c/d.json"]),
        ("1. Create these modules:\n   - `a/b.py`\n2. Start at\n   - `src/c.py`", ["a/b.py"]),
        ("## Deliverables\n\n1. `docs/r.md` from src/z.c\n\n## Hints\n- src/x.c", ["docs/r.md"]),
        ("**OUTPUT FILE**: /logs/agent/solution.md", ["/logs/agent/solution.md"]),
        ("Your report `docs/r.md` must contain all callers of src/x.py.", ["docs/r.md"]),
        ("The answer must be written to out/a.json.", ["out/a.json"]),
        ('cat src/a.c > out/b.json\nREPORT="$W/docs/q.md"', ["out/b.json", "/docs/q.md"]),
        ("Do NOT write to /app/solution.md.", ["/app/solution.md"]),
    ],
)
def test_what_prose_asks_to_write_is_an_output(prose: str, expected: Sequence[str]) -> None:
    assert list(find_output_files(prose)) == expected


@pytest.mark.parametrize(
    "prose",
    [
        "Write a regression test for src/a.c.",
        "Create a helper method in src/foo.c",
        "Write the fix directly to src/main.c",
        "Produce a list of all callers of `src/api/x.go`.",
        "The design document in docs/design.md describes src/a.c.",
        "Update docs/x.md, then rewrite src/b.py.",
        "Add tests to tests/t.py.",
        "> src/quoted.c is where it starts; x -> src/b.py",
        "Implement the API in `src/a.c` and `src/b.c`:",
    ],
)
def test_what_is_read_or_edited_in_place_is_not_an_output(prose: str) -> None:
    assert find_output_files(prose) == ()


def test_an_output_is_the_same_file_with_its_checkout_s_root_or_by_its_bare_name() -> None:
    assert is_output("analysis/REPORT.md", ["/workspace/analysis/report.md"])
    assert is_output("kubernetes/REPORT.md", ["REPORT.md"])
    assert not is_output("docs/other-report.md", ["report.md"])


@given(st.text("ab/.-:#>* \n\"'`|", max_size=200) | st.text(max_size=80).filter(lambda prose: "$" not in prose))
def test_any_text_has_outputs_that_stand_in_it(prose: str) -> None:
    assert all(path in prose.replace("\\n", "\n") for path in find_output_files(prose))


REPORTS = {"api-contract-dual-envoy-istio-001", "dep-graph-tri-tokio-hyper-tonic-001", "incident-investigation-002"}
"""The real tasks whose instruction names no file but the report that it asks for."""


def test_the_instructions_of_real_tasks_leave_no_report_among_what_they_mention(real_traces: Path) -> None:
    left = {}
    for file in sorted((real_traces / "tasks").rglob("instruction.md")):
        prose = file.read_text()
        if mentioned := find_paths(prose):
            left[file.parent.name] = [path for path in mentioned if not is_output(path, find_output_files(prose))]
    assert {name for name, paths in left.items() if not paths} == REPORTS
    assert not [
        path for paths in left.values() for path in paths if path.lower().endswith(("report.md", "solution.md"))
    ]
