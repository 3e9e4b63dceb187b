from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.truth.gold_files import GoldFile
from runner.features.traces.truth.paths import (
    File,
    locate_in_repository,
    looks_like_file,
    match_files,
    normalise_path,
    parse_gold_file,
    short_name,
)
from tests.strategies.gold import REPOSITORY_FILES


@pytest.mark.parametrize(
    ("repo", "name"),
    [
        ("github.com/sg-evals/kafka--0753c489", "kafka"),
        ("apache/Kafka", "kafka"),
        ("kafka", "kafka"),
        ("https://github.com/apache/kafka.git", "kafka"),
        ("github.com/sg-benchmarks/nodebb--nodebb--eb49a649", "nodebb"),
        ("sg-evals/tokio--tokio-1.0.0", "tokio"),
        ("a/--", ""),
        ("", ""),
    ],
)
def test_a_repository_s_short_name_is_without_host_owner_and_version(repo: str, name: str) -> None:
    assert short_name(repo) == name


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/workspace/src/a.py", File("src/a.py")),
        ("/repo_full/src/a.py", File("src/a.py")),
        ("/testbed/./src//a.py", File("src/a.py")),
        ("/APP/src/a.py", File("src/a.py")),
        ("./src/x/../a.py", File("src/a.py")),
        ("/workspace/kafka--0753c489/core/A.java", File("core/A.java", "kafka--0753c489")),
        ("kafka--v3.1/core/A.java", File("core/A.java", "kafka--v3.1")),
        ("/usr/lib/a.py", File("/usr/lib/a.py")),
        ("a/b.py", File("a/b.py")),
        ("b/a.py", File("b/a.py")),
        ("/workspace", File("/workspace")),
        ("src\\a.py", File("src/a.py")),
        ("", File("")),
    ],
)
def test_roots_and_folders_of_clones_are_stripped_and_a_and_b_are_not(path: str, file: File) -> None:
    assert locate_in_repository(File(path)) == file


def test_a_path_in_a_known_repository_starts_there() -> None:
    assert locate_in_repository(File("/src/a.py", "o/kafka")) == File("src/a.py", "o/kafka")


def test_the_first_root_that_fits_is_stripped() -> None:
    assert locate_in_repository(File("/home/me/x/src/a.py"), ("/home/me/x", "/home/me/x/src")) == File("src/a.py")
    assert locate_in_repository(File("/src/a.py"), ("/", "")) == File("/src/a.py")


@given(st.text(max_size=60))
def test_a_plain_path_stays_as_it_is(path: str) -> None:
    assert normalise_path(normalise_path(path)) == normalise_path(path)


@pytest.mark.parametrize(
    "name",
    ["a.py", "x/Makefile", "LICENSE", ".gitignore", ".eslintrc", "a/b.test.js", "COPYING3", "GNUmakefile", "CODE_OF_X"],
)
def test_a_name_with_a_suffix_or_a_well_known_one_looks_like_a_file(name: str) -> None:
    assert looks_like_file(name)


@pytest.mark.parametrize(
    "name", ["src", "a/b/", ".git", ".github", "cilium--v1.16.5", "http://a.b/c.py", "12", "", "x."]
)
def test_a_name_as_folders_have_them_does_not(name: str) -> None:
    assert not looks_like_file(name)


def test_windows_writes_paths_its_own_way() -> None:
    assert locate_in_repository(File("C:\\repo\\src\\a.py"), [normalise_path("c:\\Repo\\")]) == File("src/a.py")


def test_gold_may_name_its_repository_in_the_path() -> None:
    assert parse_gold_file(GoldFile("kafka::core/A.java")) == File("core/A.java", "kafka")
    assert parse_gold_file(GoldFile("core/A.java", "apache/kafka")) == File("core/A.java", "apache/kafka")
    assert parse_gold_file(GoldFile("/workspace/core/A.java")) == File("core/A.java")


@pytest.mark.parametrize(
    ("seen", "gold"),
    [
        (File("core/A.java", "github.com/sg-evals/kafka--0753c489"), File("core/A.java", "kafka")),
        (File("CORE/a.JAVA"), File("core/A.java", "kafka")),
        (File("core/A.java", "kafka"), File("core/A.java")),
        (File("kafka/setup.py"), File("setup.py", "kafka")),
        (File("flask/src/flask/app.py"), File("src/flask/app.py")),
        (File("flask/app.py"), File("src/flask/app.py")),
        (File("/home/me/kafka/core/A.java"), File("core/A.java", "kafka")),
    ],
)
def test_a_file_is_gold_where_repository_and_path_agree_as_far_as_both_are_named(seen: File, gold: File) -> None:
    assert match_files([seen], [gold]) == {seen: 0}


@pytest.mark.parametrize(
    ("seen", "gold"),
    [
        (File("core/A.java", "other"), File("core/A.java", "kafka")),
        (File("app.py"), File("src/app.py")),  # a name alone may be anything's
        (File("vendor/README.md"), File("README.md")),
        (File("xsrc/app.py"), File("src/app.py")),
        (File("core/A.java.orig"), File("core/A.java")),
    ],
)
def test_a_file_is_not_gold_where_they_do_not(seen: File, gold: File) -> None:
    assert match_files([seen], [gold]) == {}


def test_an_equal_path_takes_priority_over_a_folder_named_as_a_repository() -> None:
    gold = [File("kafka/a.py"), File("a.py", "kafka")]
    assert match_files(gold, gold) == {gold[0]: 0, gold[1]: 1}


def test_an_ending_that_two_files_share_is_neither_s() -> None:
    assert match_files([File("one/src/app.py"), File("two/src/app.py")], [File("src/app.py")]) == {}
    assert match_files([File("src/app.py")], [File("one/src/app.py"), File("two/src/app.py")]) == {}


def test_an_equal_path_leaves_nothing_to_one_that_only_ends_so() -> None:
    seen = [File("node_modules/x/src/app.py"), File("src/app.py")]
    assert match_files(seen, [File("src/app.py")]) == {seen[1]: 0}


def test_a_path_of_two_repositories_is_the_one_s_that_is_named() -> None:
    gold = [File("README.md", "kafka"), File("README.md", "flink")]
    assert match_files([File("README.md", "a/flink--v2")], gold) == {File("README.md", "a/flink--v2"): 1}
    assert match_files([File("README.md")], gold) == {}


@given(st.lists(REPOSITORY_FILES, max_size=8), st.lists(REPOSITORY_FILES, max_size=5))
def test_order_and_repetition_of_what_was_seen_change_nothing(seen: list[File], gold: list[File]) -> None:
    found = match_files(seen, gold)
    assert found == match_files([*reversed(seen), *seen], gold)
    assert {*found} <= {*seen}
    assert {*found.values()} <= {*range(len(gold))}


@given(st.lists(REPOSITORY_FILES, max_size=5, unique=True))
def test_seen_gold_is_matched_unless_another_repository_has_the_same_path(gold: list[File]) -> None:
    paths = [file.path.lower() for file in gold]
    found = match_files(gold, gold)
    for position, file in enumerate(gold):
        if paths.count(file.path.lower()) == 1:
            assert found[file] == position
