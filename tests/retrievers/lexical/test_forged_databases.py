"""A database of FTS5 in a store that others wrote runs nothing, and is used only if it could be made here."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings, RetrieverError
from retrievers.lexical import sqlite_fts
from retrievers.lexical.sqlite_fts import SqliteFts, _Database, _fill
from retrievers.store import Arrays, NoStore
from runner.store import disk
from runner.store.disk import DiskStore

CORPUS = Corpus([f"d{i}" for i in range(6)], ["red boat", "red sea", "a boat", "the sea", "red red", "harbour"])
FIELDS, QUERIES = ("title", "text"), ["red", "boat sea"]


def _search(store: Any) -> Rankings:
    return SqliteFts().index(CORPUS, store).search(QUERIES, 4)


def _pack(connection: sqlite3.Connection) -> Arrays:
    return {"image": np.frombuffer(connection.serialize(), dtype=np.uint8)}


def _forge(*statements: str, rows: Corpus = CORPUS, tokenize: str = "unicode61") -> Callable[[], Arrays]:
    """Return what makes a genuine database of documents and then runs statements on it."""

    def forge() -> Arrays:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(_fill(rows, FIELDS, tokenize)["image"].data)
            for statement in statements:
                connection.execute(statement)
            connection.commit()
            return _pack(connection)

    return forge


def _truncate() -> Arrays:
    return {"image": _fill(CORPUS, FIELDS, "unicode61")["image"][:5000]}


VIEW = ("DROP TABLE documents", "CREATE VIEW documents AS SELECT 1 AS rowid, run('view') AS c0")
FORGED: dict[str, Callable[[], Arrays]] = {
    "a view as the table": _forge(*VIEW),
    "a trigger": _forge("CREATE TRIGGER t BEFORE INSERT ON documents_config BEGIN SELECT run('trigger'); END"),
    "another table": _forge("CREATE TABLE other (x DEFAULT (run('default')))"),
    "an index by a function": _forge("CREATE INDEX i ON documents_docsize (length(sz))"),
    "another ranking function": _forge("INSERT INTO documents(documents, rank) VALUES ('rank', 'bm25(0, 9)')"),
    "another tokenizer": _forge(tokenize="porter unicode61"),
    "more documents": _forge(rows=Corpus([str(i) for i in range(9)], ["red"] * 9)),
    "no documents": _forge("DELETE FROM documents_docsize"),
    "sizes of other rows": _forge("UPDATE documents_docsize SET id = 77 WHERE id = 6"),
    "half a database": _truncate,
    "no database": lambda: {"image": np.frombuffer(b"SQLite format 3\0" * 300, dtype=np.uint8)},
    "an empty image": lambda: {"image": np.zeros(0, dtype=np.uint8)},
    "numbers": lambda: {"image": np.zeros((9, 9), dtype=np.float64)},
}


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the function `run`, which every connection has, was called with."""
    calls: list[str] = []
    connect = sqlite3.connect

    def connect_with_function(*args: Any, **own: Any) -> sqlite3.Connection:
        connection = connect(*args, **own)
        connection.create_function("run", 1, calls.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_with_function)
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    return calls


def _store_forged(forge: Callable[[], Arrays], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a forged entry under the key of the genuine one."""
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_fts, "_fill", lambda *_: forge())
        patch.setattr(sqlite_fts, "_Database", lambda image: None)
        SqliteFts().index(CORPUS, DiskStore(folder))


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_database_is_built_again_and_reported_once(
    forge: Callable[[], Arrays],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ran: list[str],
) -> None:
    genuine = _search(NoStore())
    assert genuine.documents.tolist() == [[4, 1, 0, -1], [3, 2, 1, 0]]
    _store_forged(forge, tmp_path, monkeypatch)
    for _ in range(2):
        again = _search(DiskStore(tmp_path))
        assert again.documents.tobytes() == genuine.documents.tobytes()
        assert again.scores.tobytes() == genuine.scores.tobytes()
    assert caplog.text.count("; computing it again") == 1
    assert ran == []


def test_words_of_rows_without_a_size_are_refused_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = [(1001 + row, "", text) for row, text in enumerate(CORPUS.texts)]
    values = ", ".join(map(str, later))
    forge = _forge(
        f"INSERT INTO documents(rowid, c0, c1) VALUES {values}", "DELETE FROM documents_docsize WHERE id > 1000"
    )
    _store_forged(forge, tmp_path, monkeypatch)
    with pytest.raises(RetrieverError) as raised:
        _search(DiskStore(tmp_path))
    assert str(raised.value) == (
        "SQLite: database disk image is malformed; the index in the store is not that of this corpus; remove it with "
        "python -m runner cache cache.kind='fts5 database' cache.remove=true"
    )


def test_rows_beyond_the_corpus_are_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the rows were not counted when the database was opened."""
    more = _fill(Corpus([str(i) for i in range(9)], ["red boat"] * 9), FIELDS, "unicode61")
    monkeypatch.setattr(sqlite_fts, "_fill", lambda *_: more)
    with pytest.raises(RetrieverError, match=r"^fts5 database: the places .* whole numbers from 0 to 5; "):
        _search(NoStore())


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("SELECT c0 FROM documents", "unsafe use of run"),
        ("SELECT load_extension('/tmp/evil.so')", "not authorized"),
        ("CREATE TABLE other (x)", "attempt to write a readonly database"),
        ("PRAGMA user_version = 3", "attempt to write a readonly database"),
    ],
)
def test_a_database_that_others_wrote_runs_nothing(statement: str, refusal: str, ran: list[str]) -> None:
    database = _Database(_forge(*VIEW)()["image"])
    with pytest.raises(RetrieverError, match=refusal):
        database.select(statement)
    assert ran == []
