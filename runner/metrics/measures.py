"""Measures as values that parse, print and hash by name, such as `nDCG@10`. Names are those of ir_measures."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runner.metrics.delegated import describe_obstacle, find_largest_grade, parse_delegated, suggest_for_grades
from runner.metrics.errors import MeasureError
from runner.metrics.formulas import FORMULAS, Formula, is_merit

WHOLE_FROM = 1000
"""The depth from which a ranking counts as whole: that of TREC runs, for which `AP` without a cutoff is reported."""

TOKEN_MEASURES = tuple(name for name, formula in FORMULAS.items() if formula.needs_spans)
"""The measures that count the words of gold spans."""

REPORT_MEASURES = tuple(n for n, formula in FORMULAS.items() if not (formula.needs_spans or formula.not_in_reports))
"""The measures of a golden report."""

_TOKENS = "tokens="
_NAMES = {name.lower(): name for name in FORMULAS} | {a: f.name for f in FORMULAS.values() for a in f.aliases}
_PLAIN = re.compile(r"([A-Za-z]\w*)(?:@(tokens=)?([0-9]+))?")


@dataclass(frozen=True)
class Measure:
    """A measure and its cutoff (None for the whole ranking), a number of hits or, if `in_tokens`, of words.

    The name of a measure that ir_measures computes includes its parameters: `nDCG(dcg='exp-log2')`.
    """

    name: str
    cutoff: int | None = None
    in_tokens: bool = False

    def __post_init__(self) -> None:
        _check_cutoff(str(self), self.cutoff)

    def __str__(self) -> str:
        if self.cutoff is None:
            return self.name
        return f"{self.name}@{_TOKENS if self.in_tokens else ''}{self.cutoff}"

    @property
    def formula(self) -> Formula | None:
        """Return how the measure is computed; None for a measure of ir_measures."""
        return FORMULAS.get(self.name)

    @property
    def needs_spans(self) -> bool:
        """Return whether the measure counts the words of gold spans."""
        return self.formula is not None and self.formula.needs_spans

    @property
    def built_in(self) -> bool:
        """Return whether the measure is computed here, not by ir_measures."""
        return self.name in FORMULAS


def parse(text: str) -> Measure:
    """Return the measure with a name, in any case; raises `MeasureError`."""
    plain = _PLAIN.fullmatch(text.strip())
    name = _NAMES.get(plain[1].lower()) if plain else None
    if plain is None or name is None:
        return _parse_delegated(text.strip())
    cutoff = None if plain[3] is None else int(plain[3])
    if plain[2] and not FORMULAS[name].needs_spans:
        counted = ", ".join(f"{name}@{_TOKENS}{cutoff}" for name in TOKEN_MEASURES)
        raise MeasureError(f"the measure {text!r} cannot be cut at a number of tokens; choose from {counted}")
    if cutoff is None and FORMULAS[name].cutoff == "required":
        raise MeasureError(f"the measure {text!r} needs a cutoff; write for example {name}@10")
    return Measure(name, cutoff, bool(plain[2]))


def parse_primary(text: str) -> Measure:
    """Return the measure with a name, if systems can be ranked by it; raises `MeasureError`."""
    measure = parse(text)
    if not is_merit(measure.name):
        raise MeasureError(
            f"systems cannot be ranked by {measure}, because it describes the judgments; choose another measure, "
            "such as nDCG@10"
        )
    return measure


def expand(measures: Iterable[str], k_values: Sequence[int], token_budgets: Sequence[int] = ()) -> tuple[Measure, ...]:
    """Return the measures with these names, without duplicates, adding every cutoff to those written without one.

    Measures of tokens are also cut at every number of tokens in `token_budgets`.
    `P` becomes `P@k` for each k, `AP` becomes `AP` and `AP@k` for each k, `P@7` and `Bpref` stay as they are.
    """
    expanded: dict[Measure, None] = {}
    for text in measures:
        name = _NAMES.get(text.strip().lower(), "")
        cutoff = FORMULAS[name].cutoff if name else "depth"
        if cutoff == "depth":
            expanded[parse(text)] = None
        else:
            cutoffs = k_values if cutoff == "required" else (None, *k_values)
            expanded |= dict.fromkeys(Measure(name, k) for k in cutoffs)
            if FORMULAS[name].needs_spans:
                expanded |= dict.fromkeys(Measure(name, budget, in_tokens=True) for budget in token_budgets)
    return tuple(expanded)


def check_grades(measures: Iterable[Measure], largest: int) -> None:
    """Raise `MeasureError` for a measure that cannot be computed from judgments with grades up to `largest`."""
    for measure in measures:
        limit = None if measure.built_in else find_largest_grade(str(measure))
        if limit is not None and largest > limit:
            other = suggest_for_grades(str(measure), largest)
            raise MeasureError(
                f"{measure} supports grades up to {limit}, but the judgments go up to {largest}; remove it from "
                f"metrics.measures, or use {other or 'nDCG'}"
            )


def add_depth(measure: Measure, depth: int) -> Measure:
    """Return a measure of the whole ranking with the depth of the search as its cutoff, if below `WHOLE_FROM`.

    `AP` is `AP@100` at depth 100. `RR` keeps its name: at depth k it is at most 1 / (k + 1) too low. Measures of
    ir_measures that take no cutoff keep their names too.
    """
    if measure.cutoff is not None or measure.name == "RR" or depth >= WHOLE_FROM:
        return measure
    deep = Measure(measure.name, depth)
    return deep if measure.built_in or not describe_obstacle(str(deep)) else measure


def _check_cutoff(text: str, cutoff: int | None) -> None:
    if cutoff is not None and cutoff < 1:
        raise MeasureError(f"the measure {text!r} has the cutoff {cutoff}; a cutoff must be at least 1")


def _parse_delegated(text: str) -> Measure:
    try:
        measure = parse_delegated(text)
    except NameError:
        raise MeasureError(f"unknown measure {text!r}; {_suggest_name(text)}") from None
    except ValueError as error:
        raise MeasureError(f"the measure {text!r} is not valid: {' '.join(str(error).split())}") from None
    cutoff = measure.params.get("cutoff")
    _check_cutoff(text, cutoff)
    if obstacle := describe_obstacle(text):
        raise MeasureError(f"the measure {text!r} cannot be computed: {obstacle}")
    bare = type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})
    delegated = Measure(repr(bare), cutoff)
    return parse(str(delegated)) if delegated.built_in else delegated  # nDCG(dcg='log2')@10 is nDCG@10


def _suggest_name(text: str) -> str:
    import ir_measures

    names = {name.lower(): name for name in ir_measures.measures.registry} | _NAMES
    name, at, cutoff = text.partition("@")
    close = difflib.get_close_matches(name.lower(), names, n=1)
    if close:
        return f"did you mean {names[close[0]]}{at}{cutoff}?"
    return f"choose from {', '.join(sorted(FORMULAS))}, or the measures of ir_measures (docs/measures.md)"
