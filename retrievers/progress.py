"""Report the progress of long work to the logger "retrievers"."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

REPORT_INTERVAL_S = 5.0
"""The shortest time between two progress messages."""

logger = logging.getLogger("retrievers")


def report_progress(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield items and report their number to the logger "retrievers" every few seconds."""
    last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if done < total and time.monotonic() - last >= REPORT_INTERVAL_S:
            last = time.monotonic()
            logger.info("%s %s of %s queries", what, f"{done:,}", f"{total:,}")
