"""Connect to a PostgreSQL server: connections open on demand and reopen after a loss; errors are one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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

_MALFORMED = (
    "dsn: should be an address such as postgresql://user@localhost:5432/database; write special characters in the user "
    "and the password as %XX (%25 for %, %40 for @), or set dsn=null and the variable PGPASSWORD"
)


class ServerError(RetrieverError):
    """A PostgreSQL server refused a statement or cannot be reached."""


@dataclass
class _Session:
    """A connection and its current settings, which apply until a statement needs others."""

    connection: psycopg.Connection[Any]
    settings: Mapping[str, str] = field(default_factory=dict)

    def configure(self, settings: Mapping[str, str]) -> None:
        if settings != self.settings:
            self.connection.execute("RESET ALL")
            for name, value in settings.items():
                self.connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            self.settings = dict(settings)


class PostgresServer:
    """A server. Threads may share it: it has a connection for each statement that runs at the same time."""

    def __init__(self, dsn: str | None) -> None:
        check_installed("psycopg", "psycopg", "postgres")
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            self._options: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, **conninfo_to_dict(dsn or "")}
        except ProgrammingError:
            raise RetrieverError(_MALFORMED) from None  # the error quotes the address, perhaps with the password
        ports = str(self._options.get("port") or "").split(",")
        if "@" in str(self._options.get("host") or "") or not all(port.isdecimal() or not port for port in ports):
            raise RetrieverError(_MALFORMED)  # a part of the password was read as the host or the port
        self._idle: list[_Session] = []  # threads append and pop, which are atomic
        self._versions: dict[str, str] = {}

    @property
    def address(self) -> str:
        """Return the server, port, database and user, as libpq writes them, without the password."""
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

        def execute(own: _Session) -> list[tuple[Any, ...]]:
            own.configure(session or {})
            return own.connection.execute(statement, parameters).fetchall()

        return self._run(execute)

    def transact(self, work: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Return the result of work in one transaction; raises `ServerError`."""

        def within(own: _Session) -> T:
            own.configure({})
            with own.connection.transaction():
                return work(own.connection)

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

    def _run(self, work: Callable[[_Session], T]) -> T:
        """Do work with an idle connection; if it was lost, repeat it with the next one, and finally with a new one."""
        import psycopg

        while True:
            idle = self._pop_idle()
            try:
                session = idle or _Session(psycopg.connect(**self._options, autocommit=True))
            except psycopg.Error as error:
                raise ServerError(self._describe(error)) from None
            try:
                return work(session)
            except psycopg.Error as error:
                if idle is None or not session.connection.closed:
                    raise ServerError(self._describe(error)) from None
            finally:
                if not session.connection.closed:
                    self._idle.append(session)

    def close(self) -> None:
        """Close the idle connections; the next statement opens a new one."""
        while (session := self._pop_idle()) is not None:
            session.connection.close()

    def _pop_idle(self) -> _Session | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _describe(self, error: psycopg.Error) -> str:
        return f"PostgreSQL ({self.address}): {_first_line(error)}"


@cache
def open_server(dsn: str | None) -> PostgresServer:
    """Return the server of an address, shared by the process; it connects when it is first used."""
    return PostgresServer(dsn)


def _first_line(error: Exception) -> str:
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
