"""How the checks of this package fail."""

from __future__ import annotations


def require(condition: object, message: str) -> None:
    """Raise `AssertionError` with a message unless a condition holds."""
    if not condition:
        raise AssertionError(message)
