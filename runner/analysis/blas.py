"""One thread for small matrix products.

Knows nothing of what is multiplied.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_LIMITING = threading.Lock()
"""Two limits at once would each restore the limit of the other."""


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit BLAS to one thread: a small product gains little from more, and on a busy machine it waits for them."""
    with _LIMITING, _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
