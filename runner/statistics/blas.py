"""Run small matrix products on one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_LIMITING = threading.Lock()
"""Held while the limit is set: two limits at the same time would each restore the limit of the other."""


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit BLAS to one thread: small products gain little from more threads and wait for them on a busy machine."""
    with _LIMITING, _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
