"""Regular expressions in settings, with a time limit: some would take years for a short text."""

from __future__ import annotations

from functools import lru_cache

import regex

from runner.config.errors import ConfigError

LIMIT_S = 1.0
"""Seconds that a match may take; usual patterns take microseconds for an id."""

_LONGEST = 60
"""The most characters of a text in a message."""


@lru_cache
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """Return a pattern in the syntax of `re`; raises `ValueError`."""
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"not a regular expression ({error})") from None


def match_pattern(pattern: str, text: str, *, whole: bool = False) -> regex.Match[str] | None:
    """Return the first match of a pattern, or with `whole` that of all the text; raises `ConfigError` at the limit."""
    compiled = compile_pattern(pattern)
    try:
        return (compiled.fullmatch if whole else compiled.search)(text, timeout=LIMIT_S)
    except TimeoutError:
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise ConfigError(
            f"pattern {pattern}: takes more than {LIMIT_S:g} s to match {shown}; write one without repetitions or "
            "alternatives that match the same text, such as (a|a)+"
        ) from None
