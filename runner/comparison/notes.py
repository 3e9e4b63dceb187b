"""Texts for notes and errors: a few names of many, a dataset, and hits that a dataset lacks."""

from __future__ import annotations

from collections.abc import Sequence

from runner.result import Result


def list_some(names: Sequence[str], most: int = 5) -> str:
    """Return the first few names and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def describe_dataset(result: Result) -> str:
    """Return the name, split and fingerprint of a result's dataset."""
    d = result.dataset
    return f"{d.name} ({d.split}, {d.fingerprint[:8]})"


def describe_unknown_hits(result: Result) -> str:
    """Return how many hits the dataset lacks and what they count as; "" where it has all."""
    holes = result.holes
    if holes is None or not holes.unknown_anywhere:
        return ""
    share = f"{holes.unknown:,} of {holes.hits:,} hits in the top {holes.cutoff}"
    share += f" ({holes.unknown / holes.hits:.1%})" if holes.hits else ""
    return (
        f"{share} are missing from the dataset, {holes.unknown_anywhere:,} at any rank: they keep their rank and count "
        "as unjudged unless the judgments grade them"
    )
