"""Lists that local programs print, each with the files that it shows."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.events import listings


def test_a_folder_that_was_read_shows_the_files_in_it() -> None:
    tree = f"1: 100644 blob {'0' * 40}\ta.go\n2: 040000 tree {'0' * 40}\tsub\n"
    wrapped = json.dumps({"content": tree})
    assert listings.parse_git_tree(tree) == listings.parse_git_tree(json.dumps([wrapped])) == ["a.go"]


def test_listings_in_columns_in_long_form_and_under_heads_are_read() -> None:
    assert list(listings.parse_listing("a.py  src  LICENSE\nb.c", "x")) == ["x/a.py", "x/LICENSE", "x/b.c"]
    long = "total 8\ndrwxr-xr-x 1 me me 4096 Feb  3 03:32 x.d\n-rw-r--r-- 1 me me 75 Mar 22 01:25 notes\n"
    assert list(listings.parse_listing(long, "x")) == ["x/notes"]
    assert list(listings.parse_listing("lib:\na.py\n\nlib/b:\nc.py\n", None)) == ["lib/a.py", "lib/b/c.py"]
    assert list(listings.parse_listing("./a.py\nb.py", None, "x")) == ["x/./a.py"]
    assert list(listings.parse_listing("find . -name a.py\nNo such a.py", "")) == []


def test_folders_may_have_spaces_where_a_line_is_surely_a_path() -> None:
    assert list(listings.parse_listing("./my docs/a.py\nb.py  c.py\n")) == ["./my docs/a.py", "b.py", "c.py"]


def test_a_folder_s_list_has_a_word_a_line_and_folders_end_with_a_slash() -> None:
    assert listings.parse_folder("lib/\na.py\nLICENSE\n") == ["a.py", "LICENSE"]
    for text in ("", "a.py\nb.py", "lib/\nbuilt a.py", "lib/ a.py"):
        assert listings.parse_folder(text) == []


def test_numbers_before_a_path_are_not_part_of_it() -> None:
    text = f"  3 a.py\n 1  2  3 src/b.py\n4.0K\tc.py\n{'0' * 32}  d.py\n17 total\nsee 3 e.py\n"
    assert list(listings.parse_counts(text)) == ["a.py", "src/b.py", "c.py", "d.py"]


@given(st.text(alphabet="│├└─|`- \u00a0abc./\n\tM?12:", max_size=200))
def test_any_text_is_read_as_a_list(text: str) -> None:
    found = [
        *listings.parse_tree(text, "x"),
        *listings.parse_status(text),
        *listings.parse_changes(text),
        *listings.parse_counts(text),
    ]
    assert all([*found, *listings.parse_listing(text, "x"), *listings.parse_folder(text)])
