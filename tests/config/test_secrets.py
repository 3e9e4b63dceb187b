"""No part of a password is shown, whatever its characters: in messages, tracebacks, logs, configs and records."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from retrievers.base import RetrieverError
from retrievers.engines.postgres_server import PostgresServer
from runner.__main__ import main
from runner.commands import list_commands
from runner.config.environment import forget_references, hide_values, note_secrets
from runner.config.values import hide_config, list_secrets, note_overrides, public
from runner.pages.control import CleanLines

PART = "hush"
"""A part of each password, on both sides of an odd character."""

ODD = [
    "%",
    "%zz",
    "%00",
    "%25",
    "@",
    ":",
    "/",
    "?",
    "#",
    "&",
    "=",
    ";",
    ",",
    "'",
    '"',
    "\\",
    " ",
    "é",
    "{}",
    "[x]",
    "$",
    "|",
]
PASSWORDS = [f"{PART}1{character}{PART}2" for character in ODD]
VERBS = sorted(list_commands())


def write_dsn(password: str, form: str) -> str:
    """Return an address with a password, which is not encoded in the form `raw`."""
    if form == "words":
        quoted = password.replace("\\", "\\\\").replace("'", "\\'")
        return f"host=127.0.0.1 port=1 user=anna password='{quoted}' dbname=db"
    written = quote(password, safe="") if form == "encoded" else password
    return f"postgresql://anna:{written}@127.0.0.1:1/db"


def quote_override(key: str, value: str) -> str:
    """Return an override as Hydra's grammar quotes it."""
    escaped = value.replace("\\'", "\\\\'").replace("'", "\\'") if "'" in value else value
    return f"{key}='{escaped}'"


@pytest.mark.parametrize("form", ["raw", "encoded", "words"])
@pytest.mark.parametrize("password", PASSWORDS)
def test_a_recorded_config_has_no_part_of_a_password(password: str, form: str) -> None:
    dsn = write_dsn(password, form)
    shown = public({"retriever": {"dsn": dsn, "parts": [{"dsn": dsn}]}})
    assert PART not in str(shown)
    assert "anna" in shown["retriever"]["dsn"] and "127.0.0.1" in shown["retriever"]["dsn"]
    assert PART not in str(hide_config({"hydra": {"overrides": [f"retriever.dsn={dsn}"]}, "dsn": dsn}))


@pytest.mark.parametrize("form", ["raw", "encoded", "words"])
@pytest.mark.parametrize("password", PASSWORDS)
def test_messages_and_logs_have_no_spelling_of_a_noted_password(password: str, form: str) -> None:
    dsn = write_dsn(password, form)
    forget_references()
    note_secrets(list_secrets({"retriever": {"dsn": dsn}}))
    spellings = [password, quote(password, safe=""), quote(password), repr(password), dsn, repr(dsn)]
    for spelling in spellings:
        assert PART not in hide_values(f"cannot connect ({spelling}): refused"), spelling
        record = logging.makeLogRecord({"msg": "lost %s", "args": (spelling,)})
        assert PART not in CleanLines().format(record)
    forget_references()
    assert hide_values(password) == password


@pytest.mark.parametrize("form", ["raw", "encoded", "words"])
@pytest.mark.parametrize("password", PASSWORDS)
def test_the_error_of_an_address_quotes_no_part_of_its_password(password: str, form: str) -> None:
    try:
        server = PostgresServer(write_dsn(password, form))
    except RetrieverError as error:
        assert PART not in str(error)
        assert "write special characters in the user and the password as %XX" in str(error)
    else:
        assert PART not in server.address


@pytest.mark.parametrize(
    ("words", "secrets"),
    [
        (["retriever.dsn='postgresql://u:a\\'b@h'"], {"a\\'b", "a'b"}),
        (["llm.api_key=sk-1"], {"sk-1"}),
        (['tracking.uri="http://u:p w@h"'], {"p w"}),
        (["retriever.k1=0.9", "dataset.path=a@b", "dataset.url=https://h:80/x@y"], set()),
        (["llm.api_key=${oc.env:KEY}"], set()),
    ],
)
def test_the_secrets_of_overrides_are_noted(
    words: list[str], secrets: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = set[str]()
    monkeypatch.setattr("runner.config.environment._secrets", noted)
    note_overrides(words)
    assert noted - {"'", '"'} >= secrets and bool(noted) == bool(secrets)


SPELLED = [("%zz", "raw"), ("@", "raw"), (" ", "raw"), ("#", "raw"), ("'", "words"), ("%", "encoded")]
"""Odd characters of a password, with the form of its address."""


@pytest.mark.parametrize(
    ("verb", "spelled"),
    [("evaluate", SPELLED), *((verb, [SPELLED[i % 6]]) for i, verb in enumerate(VERBS) if verb != "evaluate")],
)
def test_no_verb_prints_a_part_of_a_password(
    verb: str,
    spelled: list[tuple[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runner.web.server.serve", refuse_to_serve)
    for character, form in spelled:
        dsn = write_dsn(f"{PART}1{character}{PART}2", form)
        for words in (
            ["--cfg", "job", quote_override("++retriever.dsn", dsn)],
            ["--cfg", "all", "--resolve", quote_override("++tracking.uri", dsn)],
            ["--cfg", "job", "-p", "retriever", quote_override("++retriever.dsn", dsn)],
            ["retriever=postgres", "dataset=golden", quote_override("retriever.dsn", dsn)],
            [quote_override("retriever.dns", dsn)],
        ):
            try:
                main([verb, *words])
            except Exception as error:
                assert PART not in hide_values(str(error)), words
            shown = capfd.readouterr()
            assert PART not in shown.out + shown.err, (words, shown)


def refuse_to_serve(*_: Any, **__: Any) -> None:
    raise AssertionError("a server would start")
