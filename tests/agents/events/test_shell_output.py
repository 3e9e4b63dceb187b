"""Of an output that several programs may have printed, each file is told of the one that it is of."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.agents.events.shell import uses
from runner.agents.events.shell_output import shown

NAMES = st.lists(st.from_regex(r"[A-Za-z_]{1,6}\.py", fullmatch=True), min_size=1, max_size=5, unique=True).map(sorted)
LINES = st.sampled_from(["a.py", "b/c.py", "---", "x:", "total 3", "src/a.py:1:x", "BUILD", "docs", "", "- d.py -"])


def seen(command: str, output: str | None) -> list[str]:
    return shown(uses(command), output)


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


def test_listings_that_follow_each_other_are_told_apart_by_the_order_of_names() -> None:
    assert seen("ls a && ls b", "BUILD\nx.py\nBUILD\ny.py") == ["a/BUILD", "a/x.py", "b/BUILD", "b/y.py"]
    assert seen("ls a; ls b", "a.py\nB.py\nc.py\na.py\nB.py") == ["a/a.py", "a/B.py", "a/c.py", "b/a.py", "b/B.py"]
    long = "total 1\n-rw-r--r-- 1 u g 1 Jan 1 00:00 {}\n"
    assert seen("ls -l a; ls -l b", long.format("x.py") + long.format("y.py")) == ["a/x.py", "b/y.py"]
    assert seen("ls a && find b", "x.py\nb/y.py") == ["a/x.py", "b/y.py"]
    assert seen("ls a; ls c; ls b", "x.py\nls: cannot access 'c': No such file or directory\nx.py") == [
        "a/x.py",
        "b/x.py",
    ]


def test_listings_whose_order_does_not_tell_are_of_no_folder() -> None:
    assert seen("ls a; ls b", "w.py\nx.py\ny.py") == []  # one may be empty, or both sorted as one
    assert seen("ls -t a; ls b", "w.py\nx.py\na.py") == []
    assert seen("ls a; ls b", "b.py\nC.py\na.py") == []  # one by bytes, or the other as languages have it
    assert seen("ls a; ls b", "w.py\na.py\nz.py\nb.py") == []


def test_a_listing_shows_of_what_it_was_asked_for_only_what_it_prints() -> None:
    assert seen("ls a.py src/b.py c.py", "a.py\nsrc/b.py") == ["a.py", "src/b.py"]
    assert seen("ls a.py src", "a.py\n\nsrc:\nx.py") == ["a.py", "src/x.py"]


def test_what_a_script_could_not_open_was_not_seen() -> None:
    command = "python -c \"open('a.py'); open('b.py')\""
    assert seen(command, "FileNotFoundError: [Errno 2] No such file or directory: 'b.py'") == ["a.py"]
    assert seen(command, None) == ["a.py", "b.py"]


@given(NAMES, NAMES)
def test_two_sorted_listings_are_never_mixed_up(first: list[str], second: list[str]) -> None:
    files = seen("ls a; ls b", "\n".join([*first, *second]))
    assert files in ([], [*(f"a/{name}" for name in first), *(f"b/{name}" for name in second)])


@given(
    st.lists(
        st.sampled_from(["ls a", "ls -l", "echo ---", "cat a.py", "find b", 'echo "- $x -"', "grep -r x", "ls || echo"])
    ),
    st.lists(LINES, max_size=12).map("\n".join),
)
def test_any_output_of_any_commands_is_read(commands: list[str], output: str) -> None:
    assert all(seen("; ".join(commands), output))
