"""A ledger of calls in a SQLite file: each call is reserved before it is made and settled afterwards.

All threads and processes of a run share it, so that budgets are exact to the call and rates to the minute. A call of a
killed process stays reserved at its highest possible cost. The ledger also caches replies and stores every vector that
was paid for, in the transaction that settles its call.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from retrievers.llm.chat import BudgetSpent, ChatError, Reply
from retrievers.work import METER
from runner.config.objects import ConfigError
from runner.system.processes import holder, is_gone

NANO = 1_000_000_000
"""Costs are whole billionths of the currency of the prices, so that sums are exact."""

_PATIENCE_S = 60.0

_KEYS = 10_000
"""How many vectors are read at a time."""

_FROM_VECTORS = "FROM vectors WHERE key IN (SELECT value FROM json_each(?))"

_TABLES = """
CREATE TABLE IF NOT EXISTS budgets (name TEXT PRIMARY KEY, calls INTEGER NOT NULL, nanos INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY, budget TEXT NOT NULL, purpose TEXT NOT NULL, model TEXT NOT NULL, attempt INTEGER NOT NULL,
    began REAL NOT NULL, seconds REAL, outcome TEXT, tokens_in INTEGER, tokens_out INTEGER, nanos INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS calls_of_budget ON calls (budget, purpose);
CREATE INDEX IF NOT EXISTS calls_under_way ON calls (budget) WHERE outcome IS NULL;
CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, level REAL NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS sizes (
    server TEXT, model TEXT, bytes INTEGER NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (server, model)
);
"""


@dataclass(frozen=True)
class Usage:
    """The totals of some calls. `failures` counts the calls without an answer, by kind; retries are calls too."""

    calls: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    failures: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Usage) -> Usage:
        kinds = [*self.failures, *(kind for kind in other.failures if kind not in self.failures)]
        return Usage(
            self.calls + other.calls,
            self.retries + other.retries,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.cost + other.cost,
            {kind: self.failures.get(kind, 0) + other.failures.get(kind, 0) for kind in kinds},
        )


@dataclass(frozen=True)
class Order:
    """A call to reserve: its budget, model and server, and its highest possible cost.

    `tokens` is an estimate that is corrected when the call is settled. `patience_s` is how long to wait for calls under
    way if the budget depends on their cost. `group` is the prefix of its settings, for messages, and `size` the size of
    its texts in bytes if tokens per byte are to be recorded.
    """

    budget: str
    purpose: str
    server: str
    model: str
    attempt: int
    tokens: int
    most_nanos: int
    max_calls: int | None
    max_nanos: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    patience_s: float
    group: str = "llm"
    size: int = 0

    def rates(self) -> Iterator[tuple[str, float, float]]:
        """Yield the rate limits of the call: the bucket's name, the amount it takes, and the amount per minute."""
        if self.requests_per_minute:
            yield f"requests {self.server} {self.model}", 1.0, self.requests_per_minute
        if self.tokens_per_minute:
            yield self.tokens_bucket, float(self.tokens), self.tokens_per_minute

    @property
    def tokens_bucket(self) -> str:
        """Return the name of the bucket for tokens."""
        return f"tokens {self.server} {self.model}"


@dataclass(frozen=True)
class Ticket:
    """A reserved call, and the seconds to wait before making it."""

    id: int
    order: Order
    wait_s: float


class Ledger:
    """A SQLite file of calls, shared by threads. Raises `ConfigError` if the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{path}.lock", timeout=_PATIENCE_S):  # processes cannot switch to WAL at the same time
                self._db = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
                weakref.finalize(self, self._db.close)
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"llm.ledger={path}: cannot be opened as a ledger of calls ({error})") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise ChatError(f"llm.ledger={self._path}: cannot be written ({error})", "ledger", True) from error

    def _query(self, query: str, values: Sequence[str]) -> list[Any]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise ChatError(f"llm.ledger={self._path}: cannot be read ({error})", "ledger", True) from error

    def reserve(self, order: Order) -> Ticket | None:
        """Reserve a call at its highest possible cost; raises `BudgetSpent` if the budget does not cover it.

        Returns None if this depends on the cost of calls that are under way.
        """
        now = time.time()
        with self._transaction() as db:
            row = db.execute("SELECT calls, nanos FROM budgets WHERE name = ?", (order.budget,)).fetchone()
            calls, nanos = row or (0, 0)
            if order.max_calls is not None and calls >= order.max_calls:
                raise BudgetSpent(
                    f"{order.group}.max_calls={order.max_calls}: all calls in the budget have been used; raise the "
                    "limit to make more",
                    "budget",
                    True,
                )
            if order.max_nanos is not None and nanos + order.most_nanos > order.max_nanos:
                under_way = db.execute(
                    "SELECT coalesce(sum(nanos), 0) FROM calls WHERE budget = ? AND outcome IS NULL AND began > ?",
                    (order.budget, now - order.patience_s),
                ).fetchone()[0]
                if nanos - under_way + order.most_nanos <= order.max_nanos:
                    return None
                raise BudgetSpent(
                    f"{order.group}.max_cost={order.max_nanos / NANO:g}: the rest of the budget does not cover another "
                    f"call, which may cost up to {order.most_nanos / NANO:g}; raise the limit to make more",
                    "budget",
                    True,
                )
            wait_s = max((self._take(db, now, *rate) for rate in order.rates()), default=0.0)
            self._spend(db, order.budget, 1, order.most_nanos)
            reserved = db.execute(
                "INSERT INTO calls (budget, purpose, model, attempt, began, nanos) VALUES (?, ?, ?, ?, ?, ?)",
                (order.budget, order.purpose, order.model, order.attempt, now + wait_s, order.most_nanos),
            )
            return Ticket(int(reserved.lastrowid or 0), order, wait_s)

    def settle(
        self, ticket: Ticket, outcome: str, tokens: tuple[int, int] | None, nanos: int, seconds: float, key: str = "",
        text: str = "", vectors: Mapping[str, bytes] | None = None,
    ) -> None:  # fmt: skip
        """Record the outcome of a call, "ok" or the kind of its fault, and store its results in the same transaction.

        With a `key`, the text of the reply is stored; `vectors`, by key, are always stored. `tokens` are None if
        unknown.
        """
        tokens_in, tokens_out = tokens or (0, 0)
        METER.add(nanos)
        with self._transaction() as db:
            db.execute(
                "UPDATE calls SET outcome = ?, tokens_in = ?, tokens_out = ?, nanos = ?, seconds = ? WHERE id = ?",
                (outcome, tokens_in, tokens_out, nanos, seconds, ticket.id),
            )
            self._spend(db, ticket.order.budget, 0, nanos - ticket.order.most_nanos)
            if tokens is not None and ticket.order.tokens_per_minute:
                self._put_back(db, ticket.order.tokens_bucket, ticket.order.tokens - sum(tokens))
            if key:
                values = (key, text, tokens_in, tokens_out, time.time())
                db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", values)
            if vectors:
                db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", vectors.items())
            if outcome == "ok" and tokens_in and ticket.order.size:
                db.execute(
                    "INSERT INTO sizes VALUES (?, ?, ?, ?) ON CONFLICT (server, model) DO UPDATE "
                    "SET bytes = bytes + excluded.bytes, tokens = tokens + excluded.tokens",
                    (ticket.order.server, ticket.order.model, ticket.order.size, tokens_in),
                )

    def cancel(self, ticket: Ticket) -> None:
        """Remove the reservation of a call that was never made."""
        with self._transaction() as db:
            db.execute("DELETE FROM calls WHERE id = ?", (ticket.id,))
            self._spend(db, ticket.order.budget, -1, -ticket.order.most_nanos)
            for name, amount, _ in ticket.order.rates():
                self._put_back(db, name, amount)

    def recall(self, key: str) -> Reply | None:
        """Return the cached reply for a key, None if there is none."""
        rows = self._query("SELECT text, tokens_in, tokens_out FROM replies WHERE key = ?", (key,))
        return next((Reply(text, read, written, cached=True, calls=0) for text, read, written in rows), None)

    def recall_vectors(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the stored vectors of some keys, as (key, bytes)."""
        for start in range(0, len(keys), _KEYS):  # in parts, because all together may exceed the memory
            yield from self._query(f"SELECT key, vector {_FROM_VECTORS}", (json.dumps(keys[start : start + _KEYS]),))

    def find_missing(self, keys: Sequence[str]) -> list[str]:
        """Return the keys without a vector, in their order."""
        there = {key for (key,) in self._query(f"SELECT key {_FROM_VECTORS}", (json.dumps(keys),))}
        return [key for key in keys if key not in there]

    def claim(self, keys: Sequence[str], patience_s: float) -> list[str]:
        """Claim the keys whose vectors are to be paid for; return those that no other call has claimed.

        A claim expires when its process ends, or after `patience_s`. Keys with a vector are not claimed.
        """
        now, mine, listed = time.time(), holder(), (json.dumps(keys),)
        with self._transaction() as db:
            claims = db.execute(
                "SELECT key, holder, until FROM claims WHERE key IN (SELECT value FROM json_each(?))", listed
            )
            unavailable = {key for key, other, until in claims if until > now and not is_gone(other)}
            unavailable.update(key for (key,) in db.execute(f"SELECT key {_FROM_VECTORS}", listed))
            free = [key for key in keys if key not in unavailable]
            rows = [(key, mine, now + patience_s) for key in free]
            db.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", rows)
        return free

    def release(self, keys: Sequence[str]) -> None:
        """Release claims."""
        with self._transaction() as db:
            db.execute("DELETE FROM claims WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(keys),))

    def tokens_per_byte(self, server: str, model: str) -> float | None:
        """Return the mean tokens per byte of the texts sent to a model, None if there are none."""
        rows = self._query("SELECT tokens, bytes FROM sizes WHERE server = ? AND model = ?", (server, model))
        return next((tokens / size for tokens, size in rows), None)

    def usage(self, budget: str) -> dict[str, Usage]:
        """Return the totals of a budget's calls, by purpose. A call without a recorded outcome is `lost`."""
        query = """SELECT purpose, coalesce(outcome, 'lost'), count(*), sum(attempt > 0), sum(coalesce(tokens_in, 0)),
            sum(coalesce(tokens_out, 0)), sum(nanos) FROM calls WHERE budget = ? GROUP BY 1, 2 ORDER BY 1, 2"""
        usage: dict[str, Usage] = {}
        for purpose, outcome, calls, retries, tokens_in, tokens_out, nanos in self._query(query, (budget,)):
            failures = {} if outcome == "ok" else {outcome: calls}
            part = Usage(calls, retries, tokens_in, tokens_out, nanos / NANO, failures)
            usage[purpose] = usage.get(purpose, Usage()) + part
        return usage

    def mean_tokens(self, purpose: str, model: str) -> tuple[float, float] | None:
        """Return the mean tokens in and out of the answers for a purpose, None if there are none."""
        query = "SELECT avg(tokens_in), avg(tokens_out) FROM calls WHERE purpose = ? AND model = ? AND outcome = 'ok'"
        ((tokens_in, tokens_out),) = self._query(query, (purpose, model))
        return None if tokens_in is None or tokens_out is None else (tokens_in, tokens_out)

    def _spend(self, db: sqlite3.Connection, budget: str, calls: int, nanos: int) -> None:
        db.execute(
            "INSERT INTO budgets VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET calls = calls + excluded.calls, nanos = nanos + excluded.nanos",
            (budget, calls, nanos),
        )

    def _put_back(self, db: sqlite3.Connection, bucket: str, amount: float) -> None:
        db.execute("UPDATE buckets SET level = level + ? WHERE name = ?", (amount, bucket))

    def _take(self, db: sqlite3.Connection, now: float, name: str, amount: float, per_minute: float) -> float:
        row = db.execute("SELECT level, at FROM buckets WHERE name = ?", (name,)).fetchone()
        level, at = row or (None, now)
        level, wait_s = draw(level, at, now, amount, per_minute)
        db.execute("INSERT OR REPLACE INTO buckets VALUES (?, ?, ?)", (name, level, now))
        return wait_s


def draw(level: float | None, at: float, now: float, amount: float, per_minute: float) -> tuple[float, float]:
    """Return the level of a token bucket after drawing an amount, and the seconds to wait for the amount.

    A full bucket holds the amount of one second, at least 1, and is full at first (`level` None). It may be overdrawn;
    the caller then waits, so that calls are made in the order of their reservations.
    """
    per_second = per_minute / 60
    most = max(per_second, 1.0)
    filled = most if level is None else min(level + max(now - at, 0.0) * per_second, most)
    return filled - amount, max(amount - filled, 0.0) / per_second


def open_ledger(path: str) -> Ledger:
    """Return the ledger in a file, opened once per process."""
    with _OPENING:
        return _open(Path(path).resolve(), os.getpid())


_OPENING = threading.Lock()


@cache
def _open(path: Path, _process: int) -> Ledger:
    return Ledger(path)
