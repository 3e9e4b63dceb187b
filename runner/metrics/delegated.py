"""Measures that ir_measures computes: whether it can compute one here, why not, and their values."""

from __future__ import annotations

import ast
import logging
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ir_measures
    from ir_measures.providers import Provider

Qrels = dict[str, dict[str, int]]
Runs = dict[str, dict[str, float]]

GDEVAL_LARGEST_GRADE = 4
"""gdeval, which computes ERR and exponential nDCG, aborts at a larger grade."""

LARGEST_EXPONENT = 10
"""The largest grade for which a suggestion writes out exponential gains."""

_QRELS: Qrels = {"1": {"0": 1, "1": 0}}
_RUNS: Runs = {"1": {"0": 2.0, "1": 1.0}}
"""A tiny example on which every measure is tried before any work starts."""

_EXAMPLES: Mapping[str, object] = {"cutoff": 10, "recall": 0.5}
"""Example values of required parameters in a suggestion; other parameters get 1."""

_ACCURACY = "Accuracy"
"""The share of pairs of a relevant and an irrelevant hit that are in the right order."""

_FORM = "write it as Measure(name=value)@cutoff, with numbers, texts and mappings as values"


def parse_delegated(text: str) -> ir_measures.Measure:
    """Return the ir_measures object for a name such as `SetF(beta=2.0)@5`; raises `NameError` or `ValueError`.

    Its own parser uses names of `ast` that Python 3.12 deprecates and Python 3.14 no longer has.
    """
    from ir_measures import measures

    cutoff = None
    parameters: dict[str | None, Any] = {}
    try:
        node: Any = ast.parse(text, mode="eval").body
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            node, cutoff = node.left, ast.literal_eval(node.right)
        if isinstance(node, ast.Call) and not node.args:
            parameters = {given.arg: ast.literal_eval(given.value) for given in node.keywords}
            node = node.func
    except (SyntaxError, ValueError) as error:
        raise ValueError(_FORM) from error
    if not isinstance(node, ast.Name) or None in parameters:
        raise ValueError(_FORM)
    if node.id not in measures.registry:
        raise NameError(f"measure not found: {node.id}")
    measure = measures.registry[node.id]
    named: dict[str, Any] = {str(name): value for name, value in parameters.items()}
    return measure(**named | ({} if cutoff is None else {measure.AT_PARAM: cutoff}))  # type: ignore[no-any-return]


@cache
def describe_obstacle(text: str) -> str:
    """Return why ir_measures cannot compute a measure here, for the end of a sentence; "" if it can.

    A measure is tried on a tiny example, so that parameters that make its provider fail are rejected before any work.
    """
    import ir_measures

    measure = parse_delegated(text)
    if wrong := _describe_parameters(measure):
        return wrong
    if any(measure.NAME == supported.NAME for supported in ir_measures.pyndeval.SUPPORTED_MEASURES):
        return "it needs judgments of subtopics, which the dataset formats do not have"
    supporting = _list_providers(measure)
    if not any(provider.is_available() for provider in supporting):
        ways: list[Any] = [(p.NAME, p.install_instructions) for p in supporting]  # ir_measures is mostly untyped
        missing = " or ".join(f"it needs {name} ({instructions()})" for name, instructions in ways)
        return _describe_form(measure) or missing or "no package computes it"
    try:
        values = [value for *_, value in compute([text], _QRELS, _RUNS)]
    except Exception as error:  # any error of its provider
        return f"it fails with these parameters ({type(error).__name__}: {' '.join(str(error).split())})"
    return "" if all(map(math.isfinite, values)) else "its value is not finite with these parameters"


def find_largest_grade(text: str) -> int | None:
    """Return the largest grade that a measure can be computed from; None if there is no limit."""
    measure = parse_delegated(text)
    if "max_rel" in measure.params:
        return int(measure.params["max_rel"])
    first = next((provider for provider in _list_providers(measure) if provider.is_available()), None)
    return GDEVAL_LARGEST_GRADE if first is not None and first.NAME == "gdeval" else None


def suggest_for_grades(text: str, largest: int) -> str:
    """Return how to write a measure so that it accepts grades up to `largest`; "" if this is impossible."""
    measure = parse_delegated(text)
    if "max_rel" in measure.params:
        return repr(measure(max_rel=largest))
    if measure.NAME == "nDCG" and largest <= LARGEST_EXPONENT:
        params = {name: value for name, value in measure.params.items() if name != "dcg"}
        return repr(type(measure)(**params, gains={grade: 2**grade - 1 for grade in range(1, largest + 1)}))
    return ""


def list_delegated() -> Iterator[tuple[str, str, str]]:
    """Yield an example, the title and the obstacle ("" if none) of each measure of ir_measures, by name."""
    import ir_measures

    registered = reversed(ir_measures.measures.registry.values())  # the first of several by one name has no parameters
    for _, measure in sorted({measure.NAME: measure for measure in registered}.items(), key=lambda item: item[0]):
        required = [name for name, spec in measure.SUPPORTED_PARAMS.items() if spec.required]
        complete = _complete(measure, required)
        example = repr(_complete(complete, _find_unmet(complete)))
        yield example, measure.PRETTY_NAME, describe_obstacle(example)


def compute(measures: Sequence[str], qrels: Qrels, runs: Runs) -> Iterator[tuple[int, str, float]]:
    """Yield (position of the measure, query, value); a query that a provider leaves out has none.

    Accuracy is 1 for a query all of whose hits are relevant, where ir_measures divides by zero.
    """
    import ir_measures

    logging.getLogger("ir_measures.cwl_eval").disabled = True  # warns of grades that `check_grades` has checked
    positions = {parse_delegated(text): position for position, text in enumerate(measures)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for measure, position in positions.items():
            if measure.NAME == _ACCURACY:
                perfect = _find_perfect(measure, qrels, runs)
                yield from ((position, query, 1.0) for query in runs if query in perfect)
                others = {query: run for query, run in runs.items() if query not in perfect}
                for metric in ir_measures.iter_calc([measure], qrels, others):
                    yield position, metric.query_id, float(metric.value)
        together = [measure for measure in positions if measure.NAME != _ACCURACY]
        for metric in ir_measures.iter_calc(together, qrels, runs) if together else ():
            yield positions[metric.measure], metric.query_id, float(metric.value)


def _find_perfect(measure: ir_measures.Measure, qrels: Qrels, runs: Runs) -> set[str]:
    """Return the queries whose hits, down to the cutoff of a measure, are all relevant."""
    cutoff, least = measure.params.get("cutoff"), measure["rel"]
    perfect = set()
    for query, run in runs.items():
        best = sorted(run, key=run.__getitem__, reverse=True)[:cutoff]
        if all(qrels.get(query, {}).get(document, 0) >= least for document in best):
            perfect.add(query)
    return perfect


def _list_providers(measure: ir_measures.Measure) -> list[Provider]:
    """Return the providers that support a measure, installed or not, in the order in which they are tried."""
    import ir_measures

    return [provider for provider in ir_measures.DefaultPipeline.providers if provider.supports(measure)]


def _describe_parameters(measure: ir_measures.Measure) -> str:
    """Return what is wrong with the parameters of a measure, or which are missing; "" if they are valid."""
    known: Mapping[str, Any] = measure.SUPPORTED_PARAMS
    for name, value in measure.params.items():
        if name not in known:
            return f"it does not support the parameter {name}"
        if not known[name].validate(value):
            kind = getattr(known[name].dtype, "__name__", "")
            return f"{name}={value!r} should be {'an' if kind == 'int' else 'a'} {kind} that it accepts"
    return _describe_missing(measure, [n for n, p in known.items() if p.required and n not in measure.params])


def _describe_form(measure: ir_measures.Measure) -> str:
    """Return which parameter keeps the available providers of a measure from supporting it; "" if none does."""
    from ir_measures.providers.base import NOT_PROVIDED, Choices

    unmet = _find_unmet(measure)
    if not unmet:
        return ""
    missing = [name for name in unmet if measure[name] is NOT_PROVIDED]
    name, spec = next(iter(unmet.items()))
    refused = isinstance(spec, Choices) and spec.choices == (NOT_PROVIDED,)
    text = f"it does not support the parameter {name}" if refused else f"{name}={measure[name]!r} is not supported"
    return _describe_missing(measure, missing) or text


def _find_unmet(measure: ir_measures.Measure) -> dict[str, Any]:
    """Return the parameters, with their specifications, for which the closest available provider needs other values."""
    import ir_measures
    from ir_measures.providers.base import NOT_PROVIDED

    unmet: list[dict[str, Any]] = [
        {name: spec for name, spec in supported.params.items() if not spec.validate(measure[name])}
        for provider in ir_measures.DefaultPipeline.providers
        if provider.is_available()
        for supported in provider.SUPPORTED_MEASURES
        if supported.NAME == measure.NAME
    ]
    return min(unmet, key=lambda of: (len(of), -sum(measure[n] is NOT_PROVIDED for n in of)), default={})


def _describe_missing(measure: ir_measures.Measure, missing: Sequence[str]) -> str:
    return f"it needs {' and '.join(missing)}; write for example {_complete(measure, missing)!r}" if missing else ""


def _complete(measure: ir_measures.Measure, missing: Iterable[str]) -> ir_measures.Measure:
    """Return a measure with an example of each missing parameter."""
    complete: ir_measures.Measure = measure(**{name: _EXAMPLES.get(name, 1) for name in missing})
    return complete
