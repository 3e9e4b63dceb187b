from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.events.shell import find_uses
from runner.features.traces.events.shell_use import ShellUse
from tests.strategies.shell import COMMANDS


def named(command: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(use.category, use.files) for use in find_uses(command)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat src/a.py", [("file_read", ("src/a.py",))]),
        ("cat -n 'src/my file.py' \"src/b.py\"", [("file_read", ("src/my file.py", "src/b.py"))]),  # quoted
        ("head -n 20 a.py", [("file_read", ("a.py",))]),
        ("tail -20 a.py b.py", [("file_read", ("a.py", "b.py"))]),
        ("sed -n '10,20p' src/a.py", [("file_read", ("src/a.py",))]),
        ("sed -n -e 1p -e 5p src/a.py", [("file_read", ("src/a.py",))]),
        ("sed -i 's/a/b/' src/a.py", [("file_write", ("src/a.py",))]),
        ("awk -F: '{print $1}' a.txt", [("file_read", ("a.txt",))]),
        ("less /etc/hosts", [("file_read", ("/etc/hosts",))]),
        ("grep -n 'a b' src/a.py", [("code_search", ("src/a.py",))]),
        ("grep -A 3 -e foo src/a.py", [("code_search", ("src/a.py",))]),
        ("rg -t py foo", [("code_search", ())]),
        ("grep -rn foo src", [("code_search", ())]),
        ("find . -name '*.py'", [("file_search", ())]),
        ("ls -la src", [("file_search", ())]),
        ("wc -l src/a.py", [("file_search", ("src/a.py",))]),
        ("git show HEAD~1:src/a.py", [("file_read", ("src/a.py",))]),
        ("git diff HEAD -- src/a.py", [("commit_search", ("src/a.py",))]),
        ("git --no-pager -C sub log --oneline -5 a.py", [("commit_search", ("sub/a.py",))]),
        ("git show --stat HEAD", [("commit_search", ())]),
        ("git commit -m 'a.py'", []),
        ("npm test", []),
        ("cat $FILE *.py", [("file_read", ())]),
        ("cat a.py | grep foo | head -5", [("file_read", ("a.py",))]),
        ("cat a.py && cat b.py; cat c.py || cat d.py", [("file_read", (f"{name}.py",)) for name in "abcd"]),
        ("cd /workspace/x && cat a.py", [("file_read", ("/workspace/x/a.py",))]),
        ("cd x; cd y; cat a.py", [("file_read", ("x/y/a.py",))]),
        ("bash -lc 'cd x && cat a.py'", [("file_read", ("x/a.py",))]),
        ("echo $(cat a.py)", [("file_read", ("a.py",))]),
        ("find . -name '*.py' | xargs grep -l foo", [("file_search", ()), ("code_search", ())]),
        ("find . -type f -exec grep -l foo {} \\;", [("code_search", ())]),
        ("cat a.py > b.py", [("file_read", ("a.py",)), ("file_write", ("b.py",))]),
        ("cat > b.py <<'EOF'\ncat c.py\nEOF\ncat d.py", [("file_write", ("b.py",)), ("file_read", ("d.py",))]),
        ("echo x >> notes.md 2>/dev/null", [("file_write", ("notes.md",))]),
        ("make 2> errors.log >/dev/null", []),
        ("echo x | tee -a notes.md", [("file_write", ("notes.md",))]),
        ("cp a.py b.py", [("file_write", ("b.py",))]),
        ("# cat a.py isn't run\ncat b.py # nor c.py", [("file_read", ("b.py",))]),
        ("X=1 sudo timeout 30 cat a.py", [("file_read", ("a.py",))]),
        ("for f in x; do cat a.py; done", [("file_read", ("a.py",))]),
        (
            "for f in a.py *.py 'b c'; do cat src/$f; done",
            [("file_read", ("src/a.py",)), ("file_read", ()), ("file_read", ())],
        ),
        ("for r in x y; do git -C /w/$r log -3 a.py; done", [("commit_search", (f"/w/{r}/a.py",)) for r in "xy"]),
        ('for d in x y; do\n  grep foo "${d}/a.py" && echo $d\ndone', [("code_search", (f"{d}/a.py",)) for d in "xy"]),
        ("for f in a b; do cat $g; done", [("file_read", ()), ("file_read", ())]),
        (
            "for f in a b; do cat $f/x.py; grep y $f/z.py; done; ls",
            "cat a/x.py; grep y a/z.py; cat b/x.py; grep y b/z.py; ls",
        ),
        (
            "for f in a b; do for g in c d; do cat $f/$g.py; done; done",
            "cat a/c.py; cat a/d.py; cat b/c.py; cat b/d.py",
        ),
        ("for f in a b; do cat $f.py", "cat a.py; cat b.py"),  # cut short
        ("D=/w/src; cd $D && cat a.py ${D}/b.py", "cat /w/src/a.py /w/src/b.py"),
        ("D=$(pwd); cat $D/a.py", [("file_read", ())]),
        ("python3 -c \"print(open('a.py').read())\"", [("file_read", ("a.py",))]),
        ("cd x && python - <<'EOF'\nwith open('a.json') as f:\n    pass\nEOF\ncat b.py", "cat x/a.json; cat x/b.py"),
        (
            "python -c \"open('a.txt', 'w').write(open('b.txt', 'rb').read())\"",
            [("file_read", ("b.txt",)), ("file_write", ("a.txt",))],
        ),
        (
            "python -c \"Path('a.py').read_text(); Path('b.py').write_text(''); Path('c').mkdir()\"",
            [("file_read", ("a.py",)), ("file_write", ("b.py",))],
        ),
        ("node -e \"fs.readFileSync('a.json', 'utf8')\"", [("file_read", ("a.json",))]),
        ("python -c \"open(f'{x}/a.py'); reopen('b.py')\"", []),
        ("bash <<'EOF'\ncat a.py\nEOF", [("file_read", ("a.py",))]),
        ("grep x < a.py", [("file_read", ("a.py",))]),
        ("sort -k 2 a.txt | cut -d , -f 1", [("file_read", ("a.txt",))]),
        ("cat a\\\n.py 2>&1", [("file_read", ("a.py",))]),
        ("grep '|' a.py", [("code_search", ("a.py",))]),
        ("cat 'a.py", [("file_read", ("a.py",))]),  # cut short
        ("nice -n 19 env A=1 cat a.py", [("file_read", ("a.py",))]),
        ("git log --grep 'mend src/a.py'", [("commit_search", ())]),
        ("git show --format=%h:%s HEAD", [("commit_search", ())]),
        ("echo $((1<<2))\ncat a.py", [("file_read", ("a.py",))]),
        ("fd -e py foo src", [("file_search", ())]),
        ("rg --files -g '*.py' src", [("file_search", ())]),
        ("tree -L 2 src", [("file_search", ())]),
        ("md5sum a.py", [("file_search", ("a.py",))]),
        ("bat -r 1:20 a.py | less +10 b.py", [("file_read", ("a.py",)), ("file_read", ("b.py",))]),
        ("Get-Content -TotalCount 20 a.py", [("file_read", ("a.py",))]),
        ("cat src/{a,b}.py", [("file_read", ("src/a.py", "src/b.py"))]),
        ("head {x,y}/{a,b}.py", [("file_read", ("x/a.py", "x/b.py", "y/a.py", "y/b.py"))]),
        ("cat 'src/{a,b}.py' ${a,b}.py", [("file_read", ())]),  # quoted, or of a variable
        ("for f in {a,b}.py; do cat $f; done", "cat a.py; cat b.py"),
        ("(cd src; cat a.py); cat b.py", "cat src/a.py; cat b.py"),
        ("cd x; (cd y && (cd z; cat a.py)); cat b.py", "cat x/y/z/a.py; cat x/b.py"),
        ("cd x; (cd y", []),  # cut short
        ("case $x in a) cat a.py;; esac", "cat a.py"),
        ("echo a.py b.py | xargs -n 1 cat", [("file_read", ("a.py", "b.py"))]),
        (
            "printf 'a.py\\nb.py\\n' | xargs cat; echo c.py; xargs cat",
            [("file_read", ("a.py", "b.py")), ("file_read", ())],
        ),
        ("perl -ne 'print if 1..20' a.py", [("file_read", ("a.py",))]),
        ("perl -pi -e 's/a/b/' a.py b.py", [("file_write", ("a.py", "b.py"))]),
        ("ruby -ne 'puts $_' a.rb", [("file_read", ("a.rb",))]),
        ("perl a.pl b.py; perl -e 'print 1' b.py", []),
        ("ssh -p 22 me@host 'cd /srv && cat a.py'", [("file_read", ("/srv/a.py",))]),
        ("ssh host", []),
        ("docker exec -it -w /app web cat a.py", [("file_read", ("/app/a.py",))]),
        ("docker compose exec -T web bash -lc 'cd /app && cat a.py'", [("file_read", ("/app/a.py",))]),
        ("kubectl -n x exec pod -c c -- cat /etc/a.yaml", [("file_read", ("/etc/a.yaml",))]),
        ("docker exec web; docker ps", []),
        ("git cat-file -p HEAD:src/a.py", [("file_read", ("src/a.py",))]),
        ("git status --short", [("file_search", ())]),
        ("", []),
    ],
)
def test_a_command_names_the_files_that_its_programs_open_search_and_write(
    command: str, expected: list[tuple[str, tuple[str, ...]]] | str
) -> None:
    assert named(command) == (named(expected) if isinstance(expected, str) else expected)


def test_listing_commands_are_distinguished_from_counting_and_reading_ones() -> None:
    assert find_uses("ls src")[0] == ShellUse("file_search", (), "listing", "", "src", answers=True)
    assert find_uses("cd x && ls")[0] == ShellUse("file_search", (), "listing", "x", "x", answers=True)
    assert find_uses("ls a b")[0].inside is None
    assert find_uses("find /r/src -name x")[0].inside == "/r/src"
    assert find_uses("find . -type d")[0].lists is None
    assert find_uses("grep -rn foo src | wc -l")[0].lists is None
    assert find_uses("grep -rn foo src > found.txt")[0].lists is None
    assert [use.lists for use in find_uses("ls; ls src | wc -l")] == ["listing", None]
    assert find_uses("grep -n foo a.py")[0].lists is None
    assert find_uses("grep -n foo a.py b.py")[0].lists == "matches"
    assert find_uses("grep -q foo a.py") == []
    assert find_uses("cat a.py")[0].shows
    assert find_uses("find . -exec cat {} +")[0].shows


def test_a_listing_answers_for_each_file_where_all_of_it_is_printed() -> None:
    assert find_uses("ls a.py && cat a.py")[0].answers
    for command in ("ls a.py | head -1", "ls a.py > /dev/null", "find a.py"):
        assert not find_uses(command)[0].answers


def test_the_paths_given_to_a_program_are_the_prefixes_of_its_listing() -> None:
    assert find_uses("grep -rn foo src /w/*.py | sort | head")[0].prefixes == ("src", "/w/")
    assert find_uses("find . /w -name '*.py'")[0].prefixes == (".", "/w")
    for command in ("grep -rn foo", "grep foo *.py", "grep -rn foo $D", "grep -rl foo src | xargs -n 1 basename"):
        assert find_uses(command)[0].prefixes == ()
    assert find_uses("find src -printf '%f'")[0].prefixes == ()


@pytest.mark.parametrize(
    "command", ["cat a.py", "cat a.py | head", "cat a.py && echo ok", "(cat a.py)", "{ cat a.py; }"]
)
def test_what_is_said_in_place_of_a_command_is_said_of_that_one_alone(command: str) -> None:
    assert [use.otherwise for use in find_uses(f"{command} || echo 'not there'")] == ["not there"]
    assert [use.otherwise for use in find_uses(f"{command}; make || echo 'not there'")] == [""]


def test_a_use_has_the_line_that_is_printed_before_it() -> None:
    assert [use.head for use in find_uses("cat a; echo; echo -e '== b\\n'; cat b; echo x > c; cat d")] == [
        "",
        "== b",
        "",
        "",
    ]
    assert [use.head for use in find_uses("echo x | tee a; ls || echo none; cat b")] == ["", "", ""]
    assert [use.head for use in find_uses("printf -- '---\\n'; for f in a b; do echo $f; cat $f; done")] == ["a", "b"]
    assert [use.head for use in find_uses("echo all; find . | xargs -I{} sh -c 'echo \"- {}\"; cat {}'")] == [
        "all",
        "- {}",
    ]


@given(COMMANDS | st.text(max_size=80))
def test_any_text_is_read_as_a_command(command: str) -> None:
    for use in find_uses(command):
        assert all(use.files)


def test_a_very_long_command_and_very_many_turns_are_read_in_part() -> None:
    assert [use.files for use in find_uses("cat a.py;" + " " * 2**17 + "cat b.py")] == [("a.py",)]
    turns = " ".join(map(str, range(30)))
    name = "a" * 900
    within = f'for j in {turns}; do bash -c "for k in {turns}; do cat {name}; done"; done'
    assert 900 < len(find_uses(f"for i in {turns}; do bash -c '{within}'; done")) < 1100
    assert len(find_uses(f"for i in {turns}; do bash -c 'cat a$i'; done")) == 30


def test_a_search_of_very_many_places_lists_any_path() -> None:
    assert find_uses("grep x " + "src/ " * 100)[0].prefixes == ("src/",) * 100
    assert find_uses("grep x " + "src/ " * 101)[0].prefixes == ()


def test_commands_within_commands_are_read_to_a_depth() -> None:
    command = "cat a.py"
    for _ in range(2):
        command = f'bash -c "{command.replace(chr(34), chr(92) + chr(34))}"'
    assert named(command) == [("file_read", ("a.py",))]
    assert len(find_uses("find . -exec " * 3000)) == 1
    assert find_uses("xargs " * 3000) == []
    assert find_uses("for f in a b; do " * 3000 + "cat $f") == []
