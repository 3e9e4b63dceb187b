"""Of an output that several programs may have printed, each file is told of the one that it is of."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.events import shell_output
from runner.features.traces.events.git_paths import resolve_paths
from runner.features.traces.events.shell import find_uses
from runner.features.traces.events.shell_output import find_shown
from runner.features.traces.truth.paths import LONGEST
from tests.strategies.shell import OUTPUTS


def seen(command: str, output: str | None) -> list[str]:
    return find_shown(find_uses(command), output)


@pytest.mark.parametrize(
    ("command", "output", "files"),
    [
        ("ls a; echo ---; ls b", "x.py\n---\ny.py", ["a/x.py", "b/y.py"]),
        ("ls a && echo && echo '== b ==' && ls b", "y.py\n\n== b ==\nx.py", ["a/y.py", "b/x.py"]),
        ("cat a.py; echo --; find . -name '*.py'", "b/c.py:1\n--\n./d.py", ["a.py", "./d.py"]),
        ("cat a.py 2>/dev/null; echo --; cat b.py", "--\ntext", ["b.py"]),
        ("grep x a.py; echo --; grep x b.py", "1:x\n--", ["a.py"]),
        ('for d in a b; do echo "== $d"; ls $d; done', "== a\nx.py\n== b\nx.py", ["a/x.py", "b/x.py"]),
        ("cat a.py; echo --; cat b.py", "text, and the rest was cut", ["a.py", "b.py"]),  # the line did not come
        ('echo "$(date)"; cat a.py', "text", ["a.py"]),
        ("echo '== a: '; ls a; echo '== b: '; ls b", "== a: \nx.py\n== b: \ny.py", ["a/x.py", "b/y.py"]),
        ('echo "$n == $m =="; cat a.py', "x == y.py == == z ==\ntext", ["a.py"]),
    ],
)
def test_what_is_printed_between_tells_parts_apart(command: str, output: str, files: list[str]) -> None:
    assert seen(command, output) == files


@pytest.mark.parametrize(
    ("command", "output", "files"),
    [
        ("cd src/app && git show --stat", " src/app/x.py | 2 +-\n docs/y.md | 1 +", ["src/app/x.py", "docs/y.md"]),
        ("cd /w/repo/src/app; git diff", "+++ b/src/app/x.py", ["/w/repo/src/app/x.py"]),
        ("cd sub && git diff -- a.py", "+++ b/sub/a.py", ["sub/a.py"]),
        ("cd /w/sub && git diff a.py", "+++ b/sub/a.py", ["/w/sub/a.py"]),
        ("cd sub && git diff -- a.py", "+++ b/a.py", ["sub/a.py"]),  # a repository of its own
        ("cd repo && git show --stat", " src/x.py | 2 +-", ["repo/src/x.py"]),
        ("cd flask && git show --stat", " flask/x.py | 2 +-", ["flask/flask/x.py"]),  # a repository, or a part of one
        ("cd src/app && git show HEAD:src/app/x.py", "text", ["src/app/x.py"]),
        ("cd src/app && git show HEAD:./x.py", "text", ["src/app/./x.py"]),
    ],
)
def test_paths_that_git_prints_begin_at_the_root_where_that_is_sure(
    command: str, output: str, files: list[str]
) -> None:
    assert [*dict.fromkeys(map(posixpath.normpath, seen(command, output)))] == [*map(posixpath.normpath, files)]


@pytest.mark.parametrize(
    "command",
    [
        "find . -name '*.toml' | xargs -I{} sh -c 'echo \"--- {} ---\"; cat {}'",
        'for f in */*.toml; do echo "--- $f ---"; cat $f; done',
        "for f in $(git ls-files '*.toml'); do echo \"--- ${f} ---\"; grep -n x $f; done",
    ],
)
def test_a_line_printed_before_each_file_names_it(command: str) -> None:
    output = "--- a/x.toml ---\n[package]\n--- b/y.toml ---\n[package]"
    assert [file for file in seen(command, output) if file.endswith("toml")] == ["a/x.toml", "b/y.toml"]


def test_names_in_listings_of_several_folders_have_no_folder() -> None:
    assert seen("ls a && ls b", "BUILD\nx.py\nBUILD\ny.py") == []
    assert seen("ls a; ls b", "a.py  c.py\nb.py\nB.md  x.py") == []
    assert seen("ls a; ls b", "x.py\nb/y.py\n\nb/c:\nz.py") == ["b/y.py", "b/c/z.py"]
    assert seen("ls a; tree b", "x.py\nb\n└── y.py") == ["a/x.py", "b/y.py"]


def test_names_in_listings_of_one_folder_are_in_it() -> None:
    assert seen("ls a; ls -l a", "x.py\n-rw-r--r-- 1 u g 1 Jan 1 00:00 x.py\n") == ["a/x.py"]
    missing = "ls: cannot access 'c': No such file or directory"
    assert seen("ls a; ls c", f"x.py\n{missing}") == seen("ls c; ls a", f"{missing}\nx.py") == ["a/x.py"]


def test_a_listing_shows_only_the_requested_files_that_it_prints() -> None:
    assert seen("ls a.py src/b.py c.py", "a.py\nsrc/b.py") == ["a.py", "src/b.py"]
    assert seen("ls a.py src", "a.py\n\nsrc:\nx.py") == ["a.py", "src/x.py"]


def test_what_a_listing_does_not_have_is_not_shown_by_what_follows() -> None:
    assert seen("ls a.py 2>/dev/null && head a.py; cat b.py", "x = 1") == ["b.py"]
    assert seen("ls a.py >/dev/null && head a.py", "x = 1") == ["a.py"]
    assert seen("ls a.py && echo there || echo none; grep -n x a.py", "none") == []
    assert seen("ls b.py a.py c.py", "a.py  b.py") == ["b.py", "a.py"]
    assert seen("cd x; ls a.py 2>/dev/null; cat a.py", "oops") == []
    assert seen("cd x; ls 'y/my a.py' && cat 'y/my a.py'", "'y/my a.py'\ntext") == ["x/y/my a.py"]


@pytest.mark.parametrize(
    ("command", "output", "files"),
    [
        ("ls a | head; grep -l x a/*.py", "BUILD\nz.py\na/z.py", ["a/BUILD", "a/z.py"]),
        ("grep -rl x /w/src; cat a.py", "/w/src/b.py\nsee /w/src/c.py", ["a.py"]),
        ("find ./src -name '*.py'; cat a.py", "./src/b.py\nsrc/c.py", ["a.py"]),
        ("grep x a.py b.py; cat c.py", "a.py:x", ["a.py", "b.py", "c.py"]),  # or what c.py holds
    ],
)
def test_what_a_search_lists_is_where_it_looked(command: str, output: str, files: list[str]) -> None:
    assert seen(command, output) == files


@pytest.mark.parametrize(
    ("command", "output", "files"),
    [
        ("wc -l src/*.py", "  3 src/a.py\n 14 src/b.py\n 17 total", ["src/a.py", "src/b.py"]),
        ("find . | xargs wc -l", "  3 ./a.py\n  3 total", ["./a.py"]),
        ("du -h src", "12K\tsrc/a.py\n16K\tsrc", ["src/a.py"]),
        ("cat a.py | wc -l", "3", ["a.py"]),
        ("grep -rn x src | cut -d: -f1 | sort | uniq -c | sort -rn", "  3 src/a.py\n  1 b.py", ["src/a.py", "b.py"]),
        (
            "tree src",
            "src\n├── a.py\n├── lib\n│   └── b.py\n└── LICENSE -> x\n\n1 directory",
            ["src/a.py", "src/lib/b.py", "src/LICENSE"],
        ),
        ("cd x; tree", ".\n|-- lib\n|   |-- d.py\n|   `-- e/\n`-- a.py\n", ["x/lib/d.py", "x/a.py"]),
        ("tree", ".\n├── a.py\n└── lib\n    └── b.py", ["a.py", "lib/b.py"]),
        ("tree -fi src", "src\nsrc/a.py", []),
        ("tree -f src", "src\n├── src/a.py\n└── src/lib\n    └── src/lib/b.py", ["src/a.py", "src/lib/b.py"]),
        ("cd x; tree -f src", "src\n├── src/a.py", ["x/src/a.py"]),
        ("tree a b", "a\n└── x.py\nb\n└── y.py", []),
        (
            "cd a; git status",
            'On branch x\nUntracked files:\n  (use "git add")\n\tb.py\n\t../.notes\n\tlib/',
            ["a/b.py", "a/../.notes"],
        ),
        ("git status -s", " M src/a.py\nR  x.py -> y.py\n?? lib/", ["src/a.py", "y.py"]),
        ("git status", "        modified:   src/a.py\n", ["src/a.py"]),  # a terminal's tabs
        ("git status", "nothing to commit, working tree clean", []),
        ("git status; make", "Untracked files:\n\tb.py\n\nmake: all\n  done\n\tok", ["b.py"]),
        ("git status; git diff", "\tmodified:   a.py\n\n+++ b/a.py\n     pass\n         else:", ["a.py"]),
        ("fd -e py", "src/a.py\nb.py", ["src/a.py", "b.py"]),
    ],
)
def test_lists_of_all_kinds_show_files(command: str, output: str, files: list[str]) -> None:
    assert seen(command, output) == files


def test_a_search_of_several_files_shows_those_that_begin_a_line() -> None:
    assert seen("grep x a.py b.py c.py", "a.py:x\nc.py:x: b.py") == ["a.py", "c.py"]
    assert seen("cd /w; grep x a.py b.py", "b.py:x") == ["/w/b.py"]


def test_file_headers_are_read_only_in_the_output_of_commands_that_print_them() -> None:
    assert seen("tail *.py", "==> a.py <==\nx") == ["a.py"]
    assert seen("cat a.py", "==> b.py <==\nx") == ["a.py"]


def test_of_a_very_long_output_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_output, "_MAX_READ", 14)
    assert seen("find .", "a.py\nb.py\nc.py\n") == ["./a.py", "./b.py"]
    assert seen("find .; find .", "./a.py\n./b.py\n") == ["./a.py"]


def test_no_path_is_longer_than_paths_are() -> None:
    long = "n" * LONGEST
    assert seen("ls -R", f"{long}x:\na.py") == ["a.py"]
    assert seen("tree", f"├── {long}\n│   └── a.py\n└── b.py") == ["b.py"]
    assert {use.cwd for use in find_uses("cd " + "a/" * 400 + "; cd " + "b/" * 400 + "; ls")} == {"a/" * 400}


def test_the_root_of_a_repository_is_inferred_from_the_first_paths_only() -> None:
    paths = [f"{n}.py" for n in range(250)]
    assert resolve_paths([*paths[:100], "src/app/a.py"], "src/app")[-1] == "src/app/a.py"
    assert resolve_paths([*paths, "src/app/a.py"], "src/app")[-1] == "src/app/src/app/a.py"


def test_what_a_script_could_not_open_was_not_seen() -> None:
    command = "python -c \"open('a.py'); open('b.py')\""
    assert seen(command, "FileNotFoundError: [Errno 2] No such file or directory: 'b.py'") == ["a.py"]
    assert seen(command, None) == ["a.py", "b.py"]


@given(
    st.lists(
        st.sampled_from(
            [
                "ls a",
                "ls -l",
                "echo ---",
                "cat a.py",
                "find b",
                'echo "- $x -"',
                "grep -r x src",
                "ls || echo",
                "tree",
                "git status",
                "wc *",
            ]
        )
    ),
    OUTPUTS,
)
def test_any_output_of_any_commands_is_read(commands: list[str], output: str) -> None:
    assert all(seen("; ".join(commands), output))
