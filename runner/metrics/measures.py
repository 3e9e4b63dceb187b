"""What a measure is called: `nDCG@10` is a value that parses, prints and hashes by its name.

The names are those of ir_measures. Knows nothing of rankings or of how a measure is computed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runner.metrics.delegated import describe_obstacle, find_largest_grade, parse_delegated, suggest_for_grades
from runner.metrics.errors import MeasureError

NEEDS_CUTOFF = frozenset({"nDCG", "P", "R", "Success", "F1", "Judged"})
TAKES_CUTOFF = frozenset({"RR", "AP"})
ONE_CUTOFF = frozenset({"Rprec", "Bpref"})
"""The measures of the whole ranking whose cutoff only says on how much of it they were computed: `Rprec@100`."""

WHOLE_RANKING = ONE_CUTOFF | {"AP"}
"""The measures that are meant for the whole ranking."""

BUILT_IN = NEEDS_CUTOFF | TAKES_CUTOFF | ONE_CUTOFF
"""The measures computed here. Any other is left to ir_measures."""

WHOLE_FROM = 1000
"""The depth from which a ranking counts as whole: that of TREC runs, on which `AP` without a cutoff is reported."""

_NAMES = {name.lower(): name for name in BUILT_IN} | {"mrr": "RR", "map": "AP", "precision": "P", "recall": "R"}
_PLAIN = re.compile(r"([A-Za-z]\w*)(?:@([0-9]+))?")


@dataclass(frozen=True)
class Measure:
    """A measure and the rank that it looks down to (None for the whole ranking).

    The name of a measure that ir_measures computes carries its parameters: `nDCG(dcg='exp-log2')`.
    """

    name: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        _check_cutoff(str(self), self.cutoff)

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    @property
    def built_in(self) -> bool:
        """Return whether the measure is computed here, not by ir_measures."""
        return self.name in BUILT_IN


def _check_cutoff(text: str, cutoff: int | None) -> None:
    if cutoff is not None and cutoff < 1:
        raise MeasureError(f"the measure {text!r} has the cutoff {cutoff}: the first rank is 1")


def parse(text: str) -> Measure:
    """Return the measure of a name, written in any case; raises `MeasureError`."""
    plain = _PLAIN.fullmatch(text.strip())
    name = _NAMES.get(plain[1].lower()) if plain else None
    if plain is None or name is None:
        return _checked_by_ir_measures(text.strip())
    cutoff = None if plain[2] is None else int(plain[2])
    if cutoff is None and name in NEEDS_CUTOFF:
        raise MeasureError(f"the measure {text!r} has no cutoff: write {name}@10, for example")
    return Measure(name, cutoff)


def expand(measures: Iterable[str], k_values: Sequence[int]) -> tuple[Measure, ...]:
    """Return the measures of names, in their order and each once, with every cutoff of those written without one.

    `P` becomes `P@k` for each k, `AP` becomes `AP` and `AP@k` for each k, `P@7` and `Bpref` stay as they are.
    """
    found: dict[Measure, None] = {}
    for text in measures:
        name = _NAMES.get(text.strip().lower())
        if name in NEEDS_CUTOFF:
            found |= dict.fromkeys(Measure(name, k) for k in k_values)
        elif name in TAKES_CUTOFF:
            found |= dict.fromkeys(Measure(name, k) for k in (None, *k_values))
        else:
            found[parse(text)] = None
    return tuple(found)


def check_grades(measures: Iterable[Measure], greatest: int) -> None:
    """Raise `MeasureError` for a measure that cannot be computed from judgments with grades up to `greatest`."""
    for measure in measures:
        limit = None if measure.built_in else find_largest_grade(str(measure))
        if limit is not None and greatest > limit:
            other = suggest_for_grades(str(measure), greatest)
            raise MeasureError(
                f"{measure} takes grades up to {limit}, and the judgments go up to {greatest}: take it out of "
                f"metrics.measures, or use {other or 'nDCG'}"
            )


def labelled(measure: Measure, depth: int) -> Measure:
    """Return a measure of the whole ranking with the depth that it is computed at, below `WHOLE_FROM`.

    `AP` is `AP@100` at depth 100. `RR` keeps its name: at depth k it is at most 1 / (k + 1) too low. So do measures of
    ir_measures that take no cutoff.
    """
    if measure.cutoff is not None or measure.name == "RR" or depth >= WHOLE_FROM:
        return measure
    deep = Measure(measure.name, depth)
    return deep if measure.built_in or not describe_obstacle(str(deep)) else measure


def _checked_by_ir_measures(text: str) -> Measure:
    try:
        measure = parse_delegated(text)
    except NameError:
        import ir_measures

        known = {name.lower(): name for name in ir_measures.measures.registry} | _NAMES
        raise MeasureError(f"unknown measure {text!r}: {_meant(text, known)}") from None
    except ValueError as error:
        raise MeasureError(f"the measure {text!r} is not well formed: {_one_line(error)}") from None
    cutoff = measure.params.get("cutoff")
    _check_cutoff(text, cutoff)
    if obstacle := describe_obstacle(text):
        raise MeasureError(f"the measure {text!r} cannot be computed: {obstacle}")
    bare = type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})
    found = Measure(repr(bare), cutoff)
    return parse(str(found)) if found.built_in else found  # nDCG(dcg='log2')@10 is nDCG@10


def _meant(text: str, known: dict[str, str]) -> str:
    name, at, cutoff = text.partition("@")
    close = difflib.get_close_matches(name.lower(), known, n=1)
    if close:
        return f"did you mean {known[close[0]]}{at}{cutoff}?"
    return f"there are {', '.join(sorted(BUILT_IN))}, and those of ir_measures"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
