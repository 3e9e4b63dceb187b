from __future__ import annotations

from pathlib import Path

import pytest

from runner.agents.events.tools import Kind, tools
from runner.config.objects import ConfigError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Read", Kind("file_read", False)),
        ("Grep", Kind("code_search", False)),
        ("Glob", Kind("file_search", False)),
        ("MultiEdit", Kind("file_write", False)),
        ("Bash", Kind("shell", False)),
        ("execute_bash", Kind("shell", False)),
        ("str_replace_editor", Kind("editor", False)),
        ("Agent", Kind("other", False)),
        ("Task", Kind("other", False)),
        ("ToolSearch", Kind("other", False)),
        ("mcp__sourcegraph__sg_read_file", Kind("file_read", True)),
        ("mcp__sourcegraph__read_file", Kind("file_read", True)),
        ("mcp__some_other__keyword_search", Kind("code_search", True)),
        ("keyword_search", Kind("code_search", True)),
        ("sg_nls_search", Kind("code_search", True)),
        ("find_references", Kind("symbol_navigation", True)),
        ("mcp__x__compare_revisions", Kind("commit_search", True)),
        ("mcp__x__deepsearch_read", Kind("deep_search", True)),
        ("list_repos", Kind("other", True)),
        ("mcp__files__write_file", Kind("file_write", True)),
        ("mcp__x__unheard_of", Kind("other", True)),
        ("unheard_of", Kind("other", False)),
        ("", Kind("other", False)),
        ("mcp____", Kind("other", False)),
        ('Edit(file_path="/a.py")', Kind("file_write", False)),
        ('mcp__x__read_file(path="a__b")', Kind("file_read", True)),
        ("READ", Kind("file_read", False)),
        ("mcp__a__b__read_file", Kind("file_read", True)),  # of a server that is called `a__b`
        ("mcp__github__get_file_contents", Kind("file_read", True)),
        ("bash_command", Kind("shell", False)),
        ("container.exec", Kind("shell", False)),
        ("functions.exec_command", Kind("shell", False)),
        ("developer__shell", Kind("shell", False)),
        ("default_api.sg_read_file", Kind("file_read", True)),
        ("functions.unheard_of", Kind("other", False)),
    ],
)
def test_a_tool_is_known_by_its_name_bare_or_behind_a_server_s(name: str, kind: Kind) -> None:
    assert tools().kind(name) == kind


def test_a_user_s_table_adds_to_the_shipped_one_and_overrides_it(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("local: {file_read: [Peek], other: [Read]}\nmcp: {code_search: [grope]}\nprefixes: [my_]\n")
    table = tools(str(file))
    assert table.kind("peek") == Kind("file_read", False)
    assert table.kind("Read") == Kind("other", False)
    assert table.kind("mcp__a__my_grope") == Kind("code_search", True)
    assert table.kind("Grep") == Kind("code_search", False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("local: {file_raed: [Peek]}", "local.file_raed: no such category; did you mean file_read"),
        ("lcoal: {}", "lcoal: no such section; did you mean local"),
        ("local: [Peek]", r"local is \['Peek'\], not categories"),
        ("mcp: {file_read: Peek}", "mcp.file_read is 'Peek', not a list"),
        ("prefixes: {a: b}", "prefixes is .*, not a list"),
        ("- a", "holds list, not the sections local, mcp"),
        ("local: {", "cannot be read"),
    ],
)
def test_a_mistake_in_a_table_is_named_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=message) as error:
        tools(str(file))
    assert "\n" not in str(error.value)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tools=.*nowhere.yaml: cannot be read"):
        tools(str(tmp_path / "nowhere.yaml"))
