from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.features.traces.events.sightings import Sighting, View, choose_richer, create_observer
from runner.features.traces.trace import ToolCall
from runner.features.traces.truth.paths import File
from tests.strategies.json_values import JSON
from tests.strategies.traces import ARGUMENT_NAMES, TOOL_NAMES

KAFKA = "github.com/x/kafka--07"


def seen(name: str, result: str | None = None, shell: bool = True, **arguments: Any) -> Sighting:
    return create_observer(shell=shell)(ToolCall(name, arguments, result))


def views(sighting: Sighting) -> tuple[View, ...]:
    """Return the views without their lines, which `test_line_ranges.py` tests."""
    return tuple(View(view.category, view.files) for view in sighting.views)


def paths(sighting: Sighting) -> list[str]:
    return [file.path for view in sighting.views for file in view.files]


def test_a_file_that_is_read_is_the_argument_s_until_the_result_says_otherwise() -> None:
    assert paths(seen("Read", file_path="/workspace/a.py")) == ["/workspace/a.py"]
    assert paths(seen("Read", "1\tx", file_path="/workspace/a.py")) == ["/workspace/a.py"]
    view = "Here's the result of running `cat -n` on /workspace/b.py:\n 1\tx"
    assert paths(seen("str_replace_editor", view, command="view", path="/workspace/a.py")) == ["/workspace/b.py"]
    page = json.dumps({"text": f"URL: https://s.com/{KAFKA}@0f/-/blob/core/B.java\n1: x"})
    assert views(seen("read_file", page, repo=KAFKA, path="core/A.java")) == (
        View("file_read", (File("core/B.java", KAFKA),)),
    )


@pytest.mark.parametrize(
    "result", ["File does not exist.", "<tool_use_error>Sibling tool call errored</tool_use_error>"]
)
def test_what_failed_was_not_seen_but_is_an_event(result: str) -> None:
    assert seen("Read", result, file_path="a.py").views == (View("file_read"),)
    assert seen("Write", result, file_path="a.py").views == (View("file_write"),)


def test_an_editor_does_what_its_command_says() -> None:
    def category(command: str, result: str | None = None) -> str:
        return seen("str_replace_editor", result, command=command, path="/workspace/a.py").views[0].category

    assert category("view") == "file_read"
    assert {category(command) for command in ("create", "str_replace", "insert", "undo_edit", "append")} == {
        "file_write"
    }
    listing = "Here's the files and directories up to 2 levels deep in /workspace:\n/workspace/\n/workspace/b.py\n"
    assert category("view", listing) == "file_search"
    assert paths(seen("str_replace_editor", listing, command="view", path="/workspace")) == ["/workspace/b.py"]


def test_a_search_shows_what_its_result_names_in_its_order() -> None:
    text = f"# {KAFKA} – core/B.java\n1: x\n\n# {KAFKA} – core/A.java\n1: x\n"
    found = seen("keyword_search", json.dumps({"text": text}), query="repo:^github.com/x/kafka--07$ x")
    assert found == Sighting(
        "keyword_search",
        True,
        (View("code_search", (File("core/B.java", KAFKA), File("core/A.java", KAFKA))),),
        query="repo:^github.com/x/kafka--07$ x",
    )
    assert paths(seen("Grep", "src/b.py:1:x\nsrc/a.py:2:x", pattern="x", path="/workspace/src")) == [
        "src/b.py",
        "src/a.py",
    ]
    assert paths(seen("Grep", "Found 1 file\nsrc/a.py", pattern="x")) == ["src/a.py"]
    assert paths(seen("Glob", "/workspace/a.py\n/workspace/b\n", pattern="*")) == ["/workspace/a.py"]
    assert paths(seen("grep", "src/b.py:1:x", pattern="x", include="*.py")) == ["src/b.py"]


def test_results_belong_to_the_repository_that_a_search_is_limited_to() -> None:
    listing = json.dumps({"text": "core/A.java\n"})
    assert seen("list_files", listing, repo=KAFKA, path="core").views[0].files == (File("core/A.java", KAFKA),)
    blocks = json.dumps({"blocks": [{"file": "core/A.java"}]})
    assert seen("nls_search", blocks, query="repo:^github\\.com/x/kafka--07$ y").views[0].files == (
        File("core/A.java", KAFKA),
    )


def test_a_search_of_one_file_shows_it_where_it_shows_anything() -> None:
    assert paths(seen("Grep", "3:x\n4-y", pattern="x", path="/workspace/a.py")) == ["/workspace/a.py"]
    assert paths(seen("Grep", "No matches found", pattern="x", path="/workspace/a.py")) == []
    assert paths(seen("Grep", pattern="x", path="/workspace/a.py")) == ["/workspace/a.py"]
    assert paths(seen("Grep", pattern="x", path="/workspace/src")) == []
    assert paths(seen("keyword_search", json.dumps({"text": "No results."}), query="x", path="a.py")) == []


def test_references_show_the_requested_file_and_the_files_with_matches() -> None:
    text = json.dumps({"text": f"# {KAFKA} – core/B.java\n1: x\n"})
    found = seen("find_references", text, repo=KAFKA, path="core/A.java", symbol="A")
    assert paths(found) == ["core/A.java", "core/B.java"]
    assert found.symbol == "A"


def test_a_patch_writes_the_files_that_it_names() -> None:
    assert paths(seen("apply_patch", "Done", input="*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n")) == [
        "src/a.py"
    ]


def test_a_patch_that_a_shell_is_given_writes_the_files_that_it_names() -> None:
    patch = "*** Begin Patch\n*** Add File: src/a.py\n+x\n*** End Patch"
    for command in (["apply_patch", patch], ["bash", "-lc", f"apply_patch <<'EOF'\n{patch}\nEOF"]):
        assert seen("shell", "Success", command=command).views == (View("file_write", (File("src/a.py"),)),)


def test_content_that_speaks_of_errors_was_seen() -> None:
    for content in ("# Error handling\n", "// File not found is what it says.\n", "Error codes\n" + 2000 * "x"):
        assert paths(seen("read_file", content, path="docs/errors.md")) == ["docs/errors.md"]
    assert paths(seen("read_file", '{"error": "no such revision"}', path="docs/errors.md")) == []


def test_tools_that_retrieve_nothing_are_events_without_files() -> None:
    for name in ("TodoWrite", "Agent", "ToolSearch", "unheard_of"):
        assert seen(name, "src/a.py", path="src/a.py").views == (View("other"),)


@pytest.mark.parametrize(
    ("command", "result", "expected"),
    [
        ("cat a.py", "x = 1", (View("file_read", (File("a.py"),)),)),
        ("cat a.py", "cat: a.py: No such file or directory", (View("file_read"),)),
        ("cd s && cat a.py b.py", "x\ncat: a.py: No such file or directory", (View("file_read", (File("s/b.py"),)),)),
        ("cat a.py 2>/dev/null || echo none", "none", ()),
        ("cat a.py 2>/dev/null || echo none", "x = 1", (View("file_read", (File("a.py"),)),)),
        ("cat a.py 2>/dev/null", "", (View("file_read"),)),
        ("cat list.txt", "src/b.py\nsrc/c.py\n", (View("file_read", (File("list.txt"),)),)),
        ("grep -rn x src", "src/b.py:1:x", (View("code_search", (File("src/b.py"),)),)),
        ("cd s && grep -rl x .", "./b.py", (View("code_search", (File("s/./b.py"),)),)),
        ("grep -n x a.py b.py", "b.py:1:x", (View("code_search", (File("b.py"),)),)),
        ("grep -n x a.py", "", (View("code_search"),)),
        (
            "find . -name '*.py' | head",
            "./a.py\n./src/b.py",
            (View("file_search", (File("./a.py"), File("./src/b.py"))),),
        ),
        ("ls src", "a.py  lib\n", (View("file_search", (File("src/a.py"),)),)),
        ("ls src && ls lib", "a.py\nb.py\n", (View("file_search"),)),  # which is whose?
        ("ls src; cat a.py", "b.py\nc/d.py\n", (View("file_read", (File("a.py"),)),)),
        ("git diff", "diff --git a/a.py b/a.py\n", (View("commit_search", (File("a.py"),)),)),
        ("cat > b.py <<EOF\nx\nEOF", "", (View("file_write", (File("b.py"),)),)),
        ("sort a.py; cat a.py > b.py", "", (View("file_read"), View("file_write", (File("b.py"),)))),
        ("head *.py", "==> a.py <==\nx\n\n==> b.py <==\ny", (View("file_read", (File("a.py"), File("b.py"))),)),
        ("ask 'where'", f"# {KAFKA} – core/A.java\n1: x", (View("code_search", (File("core/A.java", KAFKA),)),)),
        ("npm test", "src/a.py:1: error", ()),
        (
            f"ask ls {KAFKA} | head",
            "core/\nLICENSE\na.py\n",
            (View("file_search", (File("LICENSE", KAFKA), File("a.py", KAFKA))),),
        ),
        ("make", "core/\nbuilt a.py\n", ()),
        ("grep x a.py", "ERROR: Cannot execute multiple commands at once.", (View("code_search"),)),
    ],
)
def test_a_shell_command_is_classified_by_its_actions_and_output(
    command: str, result: str, expected: tuple[View, ...]
) -> None:
    found = seen("Bash", result, command=command)
    assert views(found) == (expected or (View("other"),))
    assert found.inferred == ("shell" if expected else None)
    assert seen("Bash", result, shell=False, command=command).views == (View("other"),)


def test_what_a_command_printed_may_be_within_json() -> None:
    result = json.dumps({"output": "src/a.py:1:x\n", "metadata": {"exit_code": 0}})
    assert paths(seen("shell", result, command=["rg", "-n", "x"])) == ["src/a.py"]
    assert paths(seen("Bash", '{"output": 1}', command="cat a.json")) == ["a.json"]


def test_a_terminal_is_given_keys() -> None:
    assert paths(seen("bash_command", "x", keystrokes="cat a.py\n", duration=0.1)) == ["a.py"]


def test_a_command_may_be_a_list_of_words() -> None:
    assert paths(seen("shell", "x", command=["bash", "-lc", "cd s && cat a.py"])) == ["s/a.py"]


def test_a_command_runs_in_the_folder_that_its_call_names() -> None:
    for name in ("workdir", "cwd", "workingDirectory", "directory"):
        assert paths(seen("shell", "x", command=["bash", "-lc", "cat a.py /b.py"], **{name: "/w/s"})) == [
            "/w/s/a.py",
            "/b.py",
        ]
    assert paths(seen("exec_command", "b.py", cmd="cd t && ls", workdir="s")) == ["s/t/b.py"]
    assert paths(seen("shell", "x", command="cat a.py", workdir="", cwd=None)) == ["a.py"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"files": [{"path": "a.py"}, {"path": "b.py", "line_ranges": ["1-2"]}]},
        {"args": [{"path": "a.py"}, {"path": "b.py"}, {"lines": 3}, 7]},
        {"paths": ["a.py", "b.py"]},
        {"include": ["a.py", "b.py"]},
    ],
)
def test_one_call_may_read_several_files(arguments: dict[str, Any]) -> None:
    assert paths(seen("read_file", "x", **arguments)) == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("view_file", {"AbsolutePath": "/w/a.py"}),
        ("read_file", {"target_file": "/w/a.py"}),
        ("functions.read_file", {"absolute_path": "/w/a.py"}),
        ("developer__text_editor", {"command": "view", "path": "/w/a.py"}),
        ("run_command", {"CommandLine": "cat a.py", "Cwd": "/w"}),
        ("write_to_file", {"TargetFile": "/w/a.py", "CodeContent": "x"}),
        ("patch", {"patchText": "*** Begin Patch\n*** Update File: /w/a.py\n"}),
        ("replace_in_file", {"path": "/w/a.py", "diff": "x"}),
    ],
)
def test_tools_of_many_agents_name_files_each_in_its_way(name: str, arguments: dict[str, Any]) -> None:
    assert paths(seen(name, "x = 1", **arguments)) == ["/w/a.py"]


def test_the_richer_of_two_sightings_of_a_call_wins() -> None:
    poor, rich = seen("Grep", pattern="x"), seen("Grep", "src/a.py", pattern="x")
    assert choose_richer(poor, rich) is choose_richer(rich, poor) is rich
    assert choose_richer(poor, seen("Grep", pattern="x")) is poor


def test_tools_of_a_user_are_known(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("local: {file_read: [peek]}")
    assert paths(create_observer(str(file))(ToolCall("peek", {"path": "a.py"}, None))) == ["a.py"]
    with pytest.raises(ConfigError, match="cannot be read"):
        create_observer(str(tmp_path / "nowhere.yaml"))


@given(
    TOOL_NAMES | st.text(max_size=10),
    st.dictionaries(ARGUMENT_NAMES, JSON),
    st.none() | st.text(max_size=100) | JSON.map(json.dumps),
)
def test_any_arguments_and_any_result_make_a_sighting(name: str, arguments: dict[str, Any], result: str | None) -> None:
    found = create_observer()(ToolCall(name, arguments, result))
    assert found.views
    assert all(isinstance(file, File) for view in found.views for file in view.files)
