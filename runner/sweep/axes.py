"""The axes of a sweep: settings with their values, parsed from overrides and YAML."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, Quote, QuotedString, RangeSweep

from runner.config.hydra_internals import format_element, get_parsed_value, to_plain
from runner.config.objects import ConfigError
from runner.config.values import VOLATILE
from runner.sweep.expressions import Expression


@dataclass(frozen=True, eq=False)
class Value:
    """One value of an axis: its override, the plain value, and its text in reports."""

    override: str
    plain: Any
    shown: str


@dataclass(frozen=True)
class Interval:
    """The numbers from `low` to `high`, on a logarithmic scale if `log`, only integers if `integer`."""

    low: float
    high: float
    log: bool
    integer: bool


@dataclass(frozen=True, eq=False)
class Axis:
    """A setting with its values or its interval, and the condition under which it applies.

    `key` is the key of the override, with its sign (`+k`, `~k`), `line` the text of the override. An axis with one
    value `varies` if it was written as an axis or has another value in another product.
    """

    key: str
    line: str
    values: tuple[Value, ...]
    varies: bool
    interval: Interval | None = None
    condition: Expression | None = None

    @property
    def name(self) -> str:
        """Return the key without its sign."""
        return name_of(self.key)

    def value(self, value: Any) -> Value:  # noqa: ANN401 (any plain value)
        """Return a value of this axis, such as a number of its interval."""
        return _value(self.key, value)


def override_lines(
    params: Mapping[str, Any], product: Mapping[str, Any], arguments: Iterable[str]
) -> Iterator[tuple[str, bool, bool]]:
    """Yield each override, whether it was written as a list, and whether it comes from YAML.

    In YAML, a list is a choice between its elements, and a string is the text of an override.
    """
    for key, value in (*params.items(), *product.items()):
        yield f"{key}={_choice(key, value)}", isinstance(value, (list, tuple)), True
    for argument in arguments:
        yield argument, False, False


def _choice(key: str, value: Any) -> str:  # noqa: ANN401 (any YAML value)
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)):
        return _text(value, _quote)
    if not value:
        raise ConfigError(f"{key}=[]: an axis needs at least one value")
    return ",".join(_text(element, _quote) for element in value)


def _text(value: Any, string: Callable[[str], str]) -> str:  # noqa: ANN401 (any YAML value)
    """Return a value as text; `string` formats the strings in it."""
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_text(element, string) for element in value)}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_text(element, string)}' for key, element in value.items())}}}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _quote(text: str) -> str:
    return QuotedString(text, Quote.single).with_quotes()


def name_of(key: str) -> str:
    """Return a key without the sign that adds or deletes it."""
    return key.lstrip("+~")


def _value(key: str, parsed: Any) -> Value:  # noqa: ANN401 (any parsed value)
    bare = parsed is None and key.startswith("~")
    override = key if bare else f"{key}={format_element(parsed)}"
    plain = to_plain(parsed)
    return Value(override, plain, _text(plain, str))


def axes_by_name(overrides: Iterable[tuple[Override, bool, bool]], seed: int, most: int) -> dict[str, Axis]:
    """Return an axis for each key, by name; raise `ConfigError` for more than `most` values before building them."""
    axes: dict[str, Axis] = {}
    typed: dict[str, Override] = {}
    for override, listed, yaml in overrides:
        if override.is_sweep_override() or yaml:
            _refuse_what_is_shared(override)
        key = override.get_key_element()
        if not yaml:
            _refuse_twice(typed.setdefault(name_of(key), override), override)
        before = axes.pop(name_of(key), None)  # the last override of a key counts, as on Hydra's command line
        if before and before.key.startswith("+") and key == before.name:
            key = before.key  # the first override adds the key
        interval = _interval(override)
        if (n := _range_length(override)) > most:
            raise ConfigError(too_many(override.input_line or key, n, "values", most))
        values = () if interval else tuple(_value(key, parsed) for parsed in _parse_values(override, seed))
        if not interval and not values:
            raise ConfigError(f"{override.input_line}: an axis needs at least one value")
        varies = listed or override.is_sweep_override()
        axes[name_of(key)] = Axis(key, override.input_line or "", values, varies, interval)
    return axes


def _refuse_twice(first: Override, override: Override) -> None:
    """Raise `ConfigError` if two axes on the command line have the same key."""
    if first is not override and first.is_sweep_override() and override.is_sweep_override():
        raise ConfigError(
            f"{override.input_line}: {name_of(override.get_key_element())} is already given by {first.input_line}; "
            "write all values once, separated by commas"
        )


def too_many(place: str, n: int, what: str, most: int) -> str:
    """Return the message for a sweep with too many values or combinations."""
    way_out = f"remove some values, or raise the limit with sweep.max_combinations={n}"
    return f"{place}: {n:,} {what} exceed sweep.max_combinations={most}; {way_out}"


def _range_length(override: Override) -> int:
    """Return the number of values of a range, 0 for anything else."""
    sweep = get_parsed_value(override)
    if not isinstance(sweep, RangeSweep) or sweep.start is None or sweep.stop is None or not sweep.step:
        return 0
    start, stop, step = _decimals(sweep)
    return max(math.ceil((stop - start) / step), 0)


def _refuse_what_is_shared(override: Override) -> None:
    """Raise `ConfigError` for an axis of a setting that all combinations share, where it would have no effect."""
    root = (override.package or override.key_or_group).partition(".")[0]
    if override.key_or_group == "experiment":
        together = ",".join(str(to_plain(value)) for value in _parse_values(override, 0))
        raise ConfigError(
            f"{override.input_line}: an axis cannot have several experiments; sweep one at a time, or combine "
            f"them with 'experiment=[{together}]'"
        )
    if root in (*VOLATILE, "hydra"):
        raise ConfigError(
            f"{override.input_line}: {root} applies to the whole sweep and cannot be an axis; give it one value"
        )


def _interval(override: Override) -> Interval | None:
    sweep = get_parsed_value(override)
    if not isinstance(sweep, IntervalSweep):
        return None
    assert sweep.start is not None and sweep.end is not None  # noqa: S101 (Hydra's parser gives both)
    log = "log" in sweep.tags
    if unknown := sorted(sweep.tags - {"log"}):
        raise ConfigError(f"{override.input_line}: unknown tag {unknown[0]}; an interval supports only log")
    if not sweep.start < sweep.end or (log and sweep.start <= 0):
        ends = "two bounds above 0, the lower one first" if log else "two bounds, the lower one first"
        raise ConfigError(f"{override.input_line}: an interval needs {ends}")
    return Interval(sweep.start, sweep.end, log, isinstance(sweep.start, int))


def _parse_values(override: Override, seed: int) -> list[Any]:
    """Return the values of an override as Hydra parsed them."""
    if not override.is_sweep_override():
        return [get_parsed_value(override)]
    sweep = get_parsed_value(override)
    if isinstance(sweep, RangeSweep):
        values = _numbers(sweep, override.input_line)
    else:
        values = list(sweep.list if isinstance(sweep, ChoiceSweep) else override.sweep_iterator())
    if getattr(sweep, "shuffle", False):
        random.Random(seed).shuffle(values)  # noqa: S311 (an order of combinations)
    return values


def _numbers(sweep: RangeSweep, line: str | None) -> list[Any]:
    """Return the numbers of a range, computed in decimal arithmetic."""
    assert sweep.start is not None and sweep.stop is not None  # noqa: S101 (Hydra's parser gives both)
    written = (sweep.start, sweep.stop, sweep.step)
    if not sweep.step:
        raise ConfigError(f"{line}: a range cannot have a step of 0")
    if all(isinstance(number, int) for number in written):
        return list(range(*written))  # type: ignore[arg-type]  # mypy does not read all()
    start, stop, step = _decimals(sweep)
    return [float(start + step * i) for i in range(math.ceil((stop - start) / step))]


def _decimals(sweep: RangeSweep) -> tuple[Decimal, Decimal, Decimal]:
    """Return the start, stop and step of a range as decimals."""
    assert sweep.start is not None and sweep.stop is not None  # noqa: S101 (Hydra's parser gives both)
    written = (sweep.start, sweep.stop, sweep.step)
    start, stop, step = (Decimal(n) if isinstance(n, int) else Decimal(f"{n:.15g}") for n in written)
    return start, stop, step  # a float preserves 15 digits of text
