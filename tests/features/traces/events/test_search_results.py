from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.events import listings, search_results
from runner.features.traces.truth.paths import File

KAFKA = "github.com/x/kafka--07"
MARKDOWN = f"# {KAFKA} – core/A.java\n1: class A\n\n# {KAFKA} – core/B.java\n2: # not/a – header.py\n"
BLOCKS = {
    "blocks": [
        {"type": "file", "repo": KAFKA, "file": "core/A.java", "chunks": [{"content": '1: {"file": "no.py"}'}]},
        {"file": "core/B.java", "repo": KAFKA, "chunks": None, "url": f"https://s.com/{KAFKA}/-/blob/core/B.java"},
    ]
}
BOTH = [File("core/A.java", KAFKA), File("core/B.java", KAFKA)]


def wrapped(text: str) -> str:
    return json.dumps({"meta": None, "content": [{"type": "text", "text": text}], "isError": False})


@pytest.mark.parametrize(
    "result",
    [MARKDOWN, json.dumps({"text": MARKDOWN}), wrapped(MARKDOWN), json.dumps(BLOCKS), wrapped(json.dumps(BLOCKS))],
)
def test_a_server_s_search_shows_the_same_files_in_every_wrapping(result: str) -> None:
    assert search_results.parse_results(result, search_results.parse_matches) == BOTH


@pytest.mark.parametrize("result", [wrapped(MARKDOWN), json.dumps({"text": MARKDOWN}), wrapped(json.dumps(BLOCKS))])
def test_a_result_that_was_cut_short_shows_what_is_whole_in_it(result: str) -> None:
    cut = result[: result.index("core/B.java") + 4]
    assert [file.path for file in search_results.parse_results(cut, search_results.parse_matches)] == ["core/A.java"]


def test_a_result_that_was_cut_short_before_its_link_shows_the_file_that_it_named() -> None:
    block = {"chunks": [], "file": "{}", "url": f"https://s.com/{KAFKA}/-/blob/{{}}"}
    text = json.dumps({"blocks": [json.loads(json.dumps(block).replace("{}", file)) for file in ("a/x.py", "a/y.py")]})
    cut = text[: text.rindex('"url"') + 20]
    assert search_results.find_named(cut) == [File("a/x.py", KAFKA), File("a/y.py")]


def test_a_link_names_repository_and_path() -> None:
    text = f"see [A](https://s.com/{KAFKA}@0f0f/-/blob/core/my%20A.java?L1-9) and https://s.com/{KAFKA}/-/blob/b.py#L3."
    assert search_results.find_named(text) == [File("core/my A.java", KAFKA), File("b.py", KAFKA)]


def test_a_listing_of_a_server_leaves_folders_out() -> None:
    listing = {"files": [{"path": "core/x.d/", "isDirectory": True}, {"path": "core/AUTHOR", "isDirectory": False}]}
    assert search_results.parse_results(json.dumps(listing), listings.parse_listing) == [File("core/AUTHOR")]
    text = json.dumps({"text": "core/test/\ncore/A.java\n"})
    assert search_results.parse_results(text, listings.parse_listing) == [File("core/A.java")]


def test_revisions_that_are_compared_show_the_files_that_differ() -> None:
    result = json.dumps({"files": [{"hunks": [{"body": "+ x"}], "path": "src/a.js"}], "repository": KAFKA})
    assert search_results.parse_results(result, search_results.parse_diff) == [File("src/a.js", KAFKA)]


@pytest.mark.parametrize(
    "result",
    [
        f"URL: https://s.com/{KAFKA}@0f/-/blob/core/A.java%3FL1-9\n1: x",
        json.dumps({"text": f"URL: https://s.com/{KAFKA}@0f/-/blob/core/A.java\n1: x"}),
        wrapped(f"URL: https://s.com/{KAFKA}@0f/-/blob/core/A.java\n1: x"),
        wrapped(f"URL: https://s.com/{KAFKA}@0f/-/blob/core/A.java\n1: x")[:-24],
        json.dumps({"content": "1: URL: none", "url": f"https://s.com/{KAFKA}@0f/-/blob/core/A.java"}),
        wrapped(json.dumps({"content": "1: x", "url": f"https://s.com/{KAFKA}@0f/-/blob/core/A.java"})),
    ],
)
def test_a_reader_s_result_says_which_file_it_is_of(result: str) -> None:
    assert search_results.find_opened(result) == File("core/A.java", KAFKA)


def test_an_editor_s_view_says_so_too_and_plain_content_does_not() -> None:
    view = "Here's the result of running `cat -n` on /workspace/src/a.py:\n     1\tx"
    assert search_results.find_opened(view) == File("/workspace/src/a.py")
    assert search_results.find_opened(f"1\tsee URL: https://s.com/{KAFKA}/-/blob/a.py") is None
    assert search_results.find_opened("") is None


def test_folders_may_have_spaces_where_a_line_is_surely_a_path() -> None:
    lines = "/w/my docs/a.py\nsrc/my docs/b.py:3:import c.py\nsee src/c.py:1:x\n/w/d.py /w/e.py\n"
    assert list(search_results.parse_matches(lines)) == ["/w/my docs/a.py", "src/my docs/b.py"]


def test_lines_of_grep_name_files_in_all_their_forms() -> None:
    text = "src/a.py:3:x = 1\nsrc/b.py-4-y\nsrc/c.py:import d\nsrc/e.py\nf.py\n7:from src/x.py import y\n8-z\n--\n"
    assert list(dict.fromkeys(search_results.parse_matches(text))) == [
        "src/a.py",
        "src/b.py",
        "src/c.py",
        "src/e.py",
        "f.py",
    ]


@pytest.mark.parametrize(
    "line", ["Found 3 files", "//a/b.h: note", "http://a/b.py: x", "a::b(c)", "  src/a.py: x", "ok"]
)
def test_lines_of_content_name_none(line: str) -> None:
    assert list(search_results.parse_matches(line)) == []


def test_a_diff_names_its_files_without_a_and_b() -> None:
    diff = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n"
    assert {*search_results.parse_diff(diff)} == {"src/a.py"}
    assert [*search_results.parse_diff("*** Begin Patch\n*** Update File: b/c.py\n")] == ["b/c.py"]


def test_what_a_harness_appends_is_not_shown() -> None:
    assert search_results.strip_appendix('a.py\n\n[metadata] {"filenames": ["b.py"]}') == "a.py\n"
    assert search_results.strip_appendix("a.py\n\n[stdout]\na.py") == "a.py\n"
    assert search_results.strip_appendix("[metadata]\nname = x") == "[metadata]\nname = x"


@pytest.mark.parametrize(
    "result",
    [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "File does not exist.\n\n[error] tool reported failure",
        'repository not found: repo not found: name="x"',
        "Error: EISDIR",
        '{"content": [], "isError": true}',
        "File content (30000 tokens) exceeds maximum allowed tokens (25000).",
    ],
)
def test_a_failed_result_is_recognised(result: str) -> None:
    assert search_results.is_failure(result)


@pytest.mark.parametrize(
    "result", ["src/error.py:3: raise failed", "error.py", "1\terror: not found", "The file /a.py has been updated", ""]
)
def test_content_is_not_taken_for_a_failure(result: str) -> None:
    assert not search_results.is_failure(result)


def test_what_programs_miss_is_known() -> None:
    text = "cat: a.py: No such file or directory\nls: cannot access 'b': No such file or directory"
    assert search_results.find_missing(f"{text}\ngrep: c: Is a directory") == {"a.py", "b", "c"}


@given(
    st.text(max_size=200) | st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=6).map(json.dumps)
)
def test_any_text_is_read_as_a_result(text: str) -> None:
    for lines in (
        listings.parse_listing,
        search_results.parse_matches,
        search_results.parse_diff,
        listings.parse_heads,
    ):
        assert all(isinstance(file, File) for file in search_results.parse_results(text, lines))
    search_results.find_opened(text)
    assert search_results.is_failure(text) in (True, False)


def test_deeply_nested_json_raises_no_error() -> None:
    assert search_results.parse_results("[" * 100_000 + "]" * 100_000, search_results.parse_matches) == []
    assert search_results.parse_results('{"text":' * 900 + "1" + "}" * 900, search_results.parse_matches) == []
