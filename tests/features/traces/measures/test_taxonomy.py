"""The five labels of errors, and the slices: by hand."""

from __future__ import annotations

from typing import Any

import pytest

from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.measures.taxonomy import LABELS
from tests.features.traces.documents import document, event, read, search, write


def taxonomy(gold: list[str], *events: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = build_artifact(document(events, gold))["error_taxonomy"]
    return found


def test_each_label_counts_its_files() -> None:
    found = taxonomy(
        ["src/a.py", "src/b.py", "lib/c.py"],
        search("src/near.py", "far/away.py"),
        read("src/a.py", "src/b.py"),
        write("src/a.py", "far/away.py", "src/new.py"),
    )
    assert found["labels"] == {
        "irrelevant_retrieval": 2,  # near, away
        "missed_key_evidence": 1,  # c
        "wrong_evidence_used": 2,  # away, new
        "unused_correct_retrieval": 1,  # b
        "ambiguity_near_miss": 1,  # near
    }
    assert found["labels"].keys() == LABELS.keys()


def test_a_gold_file_is_not_a_near_miss_of_another() -> None:
    assert taxonomy(["src/a.py", "src/b.py"], read("src/a.py"))["labels"]["ambiguity_near_miss"] == 0


def test_files_at_the_root_are_no_near_misses_nor_are_those_in_a_folder_below() -> None:
    found = taxonomy(["setup.py", "src/a.py"], read("readme.md", "src/deep/b.py", "other/src/b.py"))
    assert found["labels"]["ambiguity_near_miss"] == 0


def test_folders_differ_between_repositories_unless_one_repository_is_unknown() -> None:
    gold = ["kafka::src/a.py"]
    near = {name: taxonomy(gold, read(name))["labels"]["ambiguity_near_miss"] for name in ("zk::src/b.py", "src/b.py")}
    assert near == {"zk::src/b.py": 0, "src/b.py": 1}


def test_the_folder_where_a_gold_file_was_seen_is_its_folder_too() -> None:
    found = taxonomy(["src/a.py"], read("clone/src/a.py", "clone/src/b.py"))["labels"]
    assert (found["missed_key_evidence"], found["ambiguity_near_miss"]) == (0, 1)


@pytest.mark.parametrize(("files", "size"), [(0, "small"), (5, "small"), (6, "medium"), (20, "medium"), (21, "large")])
def test_the_size_of_the_candidate_set_is_a_slice(files: int, size: str) -> None:
    slices = taxonomy(["gold.py"], search(*(f"f{i}.py" for i in range(files))))["slices"]
    assert (slices["candidate_set_size"], slices["candidate_set_count"]) == (size, files)


def test_one_call_of_an_mcp_tool_makes_the_evidence_mcp() -> None:
    assert taxonomy(["a.py"], read("a.py"))["slices"]["evidence_type"] == "local"
    assert taxonomy(["a.py"], read("a.py"), event("other", is_mcp=True))["slices"]["evidence_type"] == "mcp"


def test_the_dominant_category_is_that_of_most_events_the_first_by_name_of_several() -> None:
    slices = taxonomy(["a.py"], read("a.py"), search("a.py"), read("b.py"))["slices"]
    assert slices["dominant_retrieval_category"] == "file_read"
    assert taxonomy(["a.py"], read(), search())["slices"]["dominant_retrieval_category"] == "code_search"
    assert taxonomy(["a.py"])["slices"]["dominant_retrieval_category"] == "none"
