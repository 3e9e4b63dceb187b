"""Keys and builds of arrays that take long enough to be kept."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from retrievers.store import Arrays, Key
from retrievers.work import WorkKind
from runner.store.base import WORTH_KEEPING_S

THINGS = WorkKind("things", "index")

KEY = Key.of(THINGS, "retrievers.search", name="ünïcode / key")


class Clock:
    """The time that work is measured by, where it passes only when a test says so."""

    now = 0.0


def slowly(calls: list[str], name: str = "built") -> Callable[[], Arrays]:
    def build() -> Arrays:
        calls.append(name)
        time.sleep(WORTH_KEEPING_S * 1.5)
        return {"a": np.arange(20000, dtype=np.int32), "empty": np.zeros((0, 3)), "scalar": np.float32(2.5)}

    return build


def create_key(n: int) -> Key:
    return Key.of(THINGS, "retrievers.search", n=n)
