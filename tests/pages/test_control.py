"""No text that other people wrote reaches the terminal as a command: it is shown, never obeyed."""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group
from rich.text import Text

from runner.pages import console
from runner.pages.control import CleanLines, clean_text, escape_json
from runner.pages.progress import Progress, Status
from runner.pages.tables import Column, Table
from runner.pages.terminal import open_console, show_groups

LINK = "\x1b]8;;https://evil.example\x1b\\name\x1b]8;;\x1b\\"
HOSTILE = (
    f"a{LINK}b\x1b[2J\x1b[31mc\x9b5md\x9d0;title\x9ce\x07\x08\r\x7f\u202ef\u2066g\x00\x1bch\x1b]0;open [red]i[/red]"
)
SHOWN = "anamebcdefgh0;open [red]i[/red]"
FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_sequences_and_controls_are_removed_and_the_rest_stays() -> None:
    assert clean_text(HOSTILE) == SHOWN
    assert clean_text("tab\t line\n é 漢字 שלום 🎉 [x] \u200d") == "tab\t line\n é 漢字 שלום 🎉 [x] \u200d"


@given(st.text(st.characters(codec="utf-8")))
def test_no_control_character_is_left_and_plain_texts_are_equal(text: str) -> None:
    cleaned = clean_text(text)
    assert not FORBIDDEN.search(cleaned)
    assert cleaned == text or FORBIDDEN.search(text)
    document = orjson.dumps({"a": text}).decode()
    assert not FORBIDDEN.search(escape_json(document))
    assert orjson.loads(escape_json(document)) == {"a": text}


TABLE = Table((Column("name"), Column("grade", numeric=True)), [[HOSTILE, 1.0]])


@pytest.mark.parametrize(
    "show",
    [
        lambda: console.line(HOSTILE),
        lambda: console.paragraph(HOSTILE),
        lambda: console.note(HOSTILE),
        lambda: console.error(HOSTILE),
        lambda: console.announce(HOSTILE),
        lambda: console.show_table(TABLE, HOSTILE),
        lambda: show_groups(
            open_console(), Table((Column("a"), Column("n"), Column("b")), [[HOSTILE, 1, HOSTILE]]), ""
        ),
        lambda: open_console().print(HOSTILE, Group(HOSTILE), Text(HOSTILE)),
    ],
)
@pytest.mark.parametrize("colour", [False, True])
def test_whatever_is_printed_is_obeyed_nowhere(
    show: Callable[[], None], colour: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    show()
    shown = capsys.readouterr()
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.out + shown.err)  # the program's own styles
    assert not FORBIDDEN.search(text)
    assert "[red]i[/red]" in text and "evil" not in text and "\x1b[31mc" not in shown.out + shown.err


class Terminal(io.StringIO):
    """A stream that looks like a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_shows_stages_names_and_warnings_without_controls(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    with Progress(2, best=HOSTILE) as progress:
        progress.note(HOSTILE)
        progress.advance()
        logging.getLogger("retrievers").warning("%s", HOSTILE)
        sys.stderr.write(HOSTILE + "\n")  # as libraries do; a live display prints it above itself
    with Status(HOSTILE) as status:
        status.note(HOSTILE)
    text = stream.getvalue()
    own = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\x1b\[2K|\r")
    written = HOSTILE if not is_terminal else ""
    assert not FORBIDDEN.search(own.sub("", text.replace(written, "") if written else text)), repr(text)
    assert "evil" not in text.replace(written or "\0", "")
    assert "[red]i[/red]" in text


def test_log_messages_without_a_handler_are_clean() -> None:
    record = logging.makeLogRecord({"msg": "%s", "args": (HOSTILE,)})
    assert CleanLines().format(record) == SHOWN


CRASH = """
import logging, sys, warnings
from runner import __main__ as program
def crash(*_):
    logging.getLogger("somewhere").warning(TEXT)
    warnings.warn(TEXT)
    raise RuntimeError(TEXT)
program._run = crash
sys.argv = ["runner", VERB]
sys.exit(program.main())
"""


@pytest.mark.parametrize(("verb", "code"), [("evaluate", 1), ("compare", 3)])
def test_crashes_warnings_and_log_messages_are_clean(tmp_path: Path, verb: str, code: int) -> None:
    script = CRASH.replace("TEXT", repr(HOSTILE)).replace("VERB", repr(verb))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True)
    shown = done.stderr.decode()
    assert (done.returncode, shown.count(SHOWN)) == (code, 3), shown
    assert not FORBIDDEN.search(shown)


def test_json_on_standard_output_escapes_what_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    with console.document_only():
        console.document(lambda: {"name": HOSTILE})
    printed = capsys.readouterr().out
    assert not FORBIDDEN.search(printed)
    assert orjson.loads(printed) == {"name": HOSTILE}
