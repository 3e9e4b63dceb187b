from __future__ import annotations

from pathlib import Path

import pytest

from runner.config.objects import ConfigError
from runner.features.traces.events.tools import ToolKind, load_tools


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Read", ToolKind("file_read", False)),
        ("Grep", ToolKind("code_search", False)),
        ("Glob", ToolKind("file_search", False)),
        ("MultiEdit", ToolKind("file_write", False)),
        ("Bash", ToolKind("shell", False)),
        ("execute_bash", ToolKind("shell", False)),
        ("str_replace_editor", ToolKind("editor", False)),
        ("Agent", ToolKind("other", False)),
        ("Task", ToolKind("other", False)),
        ("ToolSearch", ToolKind("other", False)),
        ("mcp__sourcegraph__sg_read_file", ToolKind("file_read", True)),
        ("mcp__sourcegraph__read_file", ToolKind("file_read", True)),
        ("mcp__some_other__keyword_search", ToolKind("code_search", True)),
        ("keyword_search", ToolKind("code_search", True)),
        ("sg_nls_search", ToolKind("code_search", True)),
        ("find_references", ToolKind("symbol_navigation", True)),
        ("mcp__x__compare_revisions", ToolKind("commit_search", True)),
        ("mcp__x__deepsearch_read", ToolKind("deep_search", True)),
        ("list_repos", ToolKind("other", True)),
        ("mcp__files__write_file", ToolKind("file_write", True)),
        ("mcp__x__unheard_of", ToolKind("other", True)),
        ("unheard_of", ToolKind("other", False)),
        ("", ToolKind("other", False)),
        ("mcp____", ToolKind("other", False)),
        ('Edit(file_path="/a.py")', ToolKind("file_write", False)),
        ('mcp__x__read_file(path="a__b")', ToolKind("file_read", True)),
        ("READ", ToolKind("file_read", False)),
        ("mcp__a__b__read_file", ToolKind("file_read", True)),  # of a server that is called `a__b`
        ("mcp__github__get_file_contents", ToolKind("file_read", True)),
        ("bash_command", ToolKind("shell", False)),
        ("container.exec", ToolKind("shell", False)),
        ("functions.exec_command", ToolKind("shell", False)),
        ("developer__shell", ToolKind("shell", False)),
        ("default_api.sg_read_file", ToolKind("file_read", True)),
        ("functions.unheard_of", ToolKind("other", False)),
    ],
)
def test_a_tool_is_known_by_its_name_bare_or_behind_a_server_s(name: str, kind: ToolKind) -> None:
    assert load_tools().classify(name) == kind


def test_a_user_s_table_adds_to_the_shipped_one_and_overrides_it(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("local: {file_read: [Peek], other: [Read]}\nmcp: {code_search: [grope]}\nprefixes: [my_]\n")
    table = load_tools(str(file))
    assert table.classify("peek") == ToolKind("file_read", False)
    assert table.classify("Read") == ToolKind("other", False)
    assert table.classify("mcp__a__my_grope") == ToolKind("code_search", True)
    assert table.classify("Grep") == ToolKind("code_search", False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("local: {file_raed: [Peek]}", "local.file_raed: no such category; did you mean file_read"),
        ("lcoal: {}", "lcoal: no such section; did you mean local"),
        ("local: [Peek]", r"local should map categories to lists of tool names; it is \['Peek'\]"),
        ("mcp: {file_read: Peek}", "mcp.file_read should be a list of tool names; it is 'Peek'"),
        ("prefixes: {a: b}", "prefixes should be a list of tool names"),
        ("- a", "expected the sections local, mcp, found list"),
        ("local: {", "cannot be read"),
    ],
)
def test_a_mistake_in_a_table_is_named_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=message) as error:
        load_tools(str(file))
    assert "\n" not in str(error.value)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tools=.*nowhere.yaml: cannot be read"):
        load_tools(str(tmp_path / "nowhere.yaml"))
