"""Settings of Hypothesis."""

from __future__ import annotations

from hypothesis import settings


def at_most(examples: int) -> int:
    """Return a number of examples for a test whose examples are slow, no more than other tests draw."""
    return min(examples, settings.default.max_examples if settings.default else examples)
