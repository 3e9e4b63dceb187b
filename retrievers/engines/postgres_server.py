"""A PostgreSQL server: a connection that is opened when needed and again after it was lost, errors in one line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from retrievers.base import RetrieverError
from retrievers.extras import check_installed

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import SQL, Composed

T = TypeVar("T")

CONNECT_TIMEOUT_S = 10
"""Seconds to wait for a connection, unless the address sets `connect_timeout`."""

_UNSHOWN = ("password", "sslpassword", "passfile")


class ServerError(RetrieverError):
    """A PostgreSQL server refused a statement or cannot be reached."""


class PostgresServer:
    """A server, used by one thread at a time. Settings of a session apply until a statement brings others."""

    def __init__(self, dsn: str | None) -> None:
        check_installed("psycopg", "psycopg", "postgres")
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            self._options: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, **conninfo_to_dict(dsn or "")}
        except ProgrammingError as error:
            raise RetrieverError(
                f"dsn: should be an address such as postgresql://user@localhost:5432/database ({_first_line(error)})"
            ) from None
        self._turn = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._session: Mapping[str, str] = {}
        self._versions: dict[str, str] = {}

    @property
    def address(self) -> str:
        """Return the server, port, database and user, as libpq writes them; no password."""
        from psycopg.conninfo import make_conninfo

        shown = {name: value for name, value in self._options.items() if name in ("host", "port", "dbname", "user")}
        return make_conninfo(**shown)

    def select(
        self,
        statement: Composed | SQL,
        parameters: Mapping[str, object] | None = None,
        session: Mapping[str, str] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, with settings of the session; raises `ServerError`."""

        def execute(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
            self._configure(connection, session or {})
            return connection.execute(statement, parameters).fetchall()

        return self._run(execute)

    def transact(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Return the result of work in one transaction; raises `ServerError`."""

        def within(connection: psycopg.Connection[Any]) -> T:
            self._configure(connection, {})
            with connection.transaction():
                return work(connection)

        return self._run(within)

    def read_version(self, extension: str = "") -> str:
        """Return the version of the server or of an extension, installed or not; "" without the extension."""
        if extension not in self._versions:
            from psycopg import sql

            statement = (
                "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = %(name)s"
                if extension
                else "SELECT current_setting('server_version')"
            )
            rows = self.select(sql.SQL(statement), {"name": extension})
            self._versions[extension] = str(rows[0][0]).partition(" ")[0] if rows else ""
        return self._versions[extension]

    def _run(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Do work with a connection; if an open connection was lost, do it again with a new one."""
        import psycopg

        with self._turn:
            while True:
                fresh = self._connection is None
                try:
                    return work(self._open())
                except psycopg.Error as error:
                    lost = self._connection is not None and self._connection.closed
                    if lost:
                        self._connection = None
                    if fresh or not lost:
                        raise ServerError(self._describe(error)) from None

    def close(self) -> None:
        """Close the connection; the next statement opens one."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _open(self) -> psycopg.Connection[Any]:
        import psycopg

        if self._connection is None:
            self._connection, self._session = psycopg.connect(**self._options, autocommit=True), {}
        return self._connection

    def _configure(self, connection: psycopg.Connection[Any], session: Mapping[str, str]) -> None:
        if session != self._session:
            connection.execute("RESET ALL")
            for name, value in session.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            self._session = dict(session)

    def _describe(self, error: psycopg.Error) -> str:
        return f"PostgreSQL ({self.address}): {_first_line(error)}"


@cache
def open_server(dsn: str | None) -> PostgresServer:
    """Return the server of an address, shared by the process; it connects when it is first used."""
    return PostgresServer(dsn)


def _first_line(error: Exception) -> str:
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
