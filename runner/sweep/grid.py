"""What a sweep is made of: axes from the command line and from presets, multiplied into combinations.

It knows override syntax, and nothing of configs, retrievers or results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString

from runner.config.objects import ConfigError
from runner.config.values import VOLATILE


@dataclass(frozen=True)
class Combination:
    """One point of a sweep: the overrides that make it (one a key), and those of them that vary, by key."""

    overrides: tuple[str, ...]
    swept: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the run's name: the swept keys and their values, each key as short as stays clear."""
        if not self.swept:
            return "single combination"
        lasts = [key.rpartition(".")[2] for key in self.swept]
        short = {key: last if lasts.count(last) == 1 else key for key, last in zip(self.swept, lasts, strict=True)}
        return ", ".join(f"{short[key]}={value}" for key, value in self.swept.items())


def combinations(
    arguments: Sequence[str],
    params: Mapping[str, Any],
    union: Sequence[Mapping[str, Any]],
    loader: ConfigLoader | None = None,
) -> list[Combination]:
    """Return every combination of a sweep, without repetitions, in the order in which it was written.

    `arguments` are overrides as on the command line, `params` axes by key, as under `hydra.sweeper.params`; both
    multiply with each product of `union` (one product of no axes when it is empty). `loader` knows the choices that
    glob(...) stands for. Raises `ConfigError`.
    """
    parser = OverridesParser.create(loader)
    found: dict[tuple[str, ...], Combination] = {}
    for product in union or [{}]:
        lines = [*_lines(params), *_lines(product), *arguments]
        axes = _axes(parser.parse_overrides(lines), varies=product.keys(), given={*params, *product})
        for point in itertools.product(*(axis.values for axis in axes)):
            overrides = tuple(axis.override(value) for axis, value in zip(axes, point, strict=True))
            swept = {
                axis.key.lstrip("+~"): _text(Override._convert_value(value), str)
                for axis, value in zip(axes, point, strict=True)
                if axis.sweeps
            }
            found.setdefault(overrides, Combination(overrides, swept))
    return list(found.values())


def _lines(axes: Mapping[str, Any]) -> list[str]:
    """Return axes of YAML as override lines: a list is a choice between its elements, a string is override text."""
    return [f"{key}={_choice(key, value)}" for key, value in axes.items()]


def _choice(key: str, value: Any) -> str:  # noqa: ANN401 (any YAML value)
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)):
        return _text(value, _quoted)
    if not value:
        raise ConfigError(f"{key}=[]: an axis without a value")
    return ",".join(_text(element, _quoted) for element in value)


def _text(value: Any, string: Callable[[str], str]) -> str:  # noqa: ANN401 (any YAML value)
    """Return a value as text, with `string` for how the strings in it are written."""
    if isinstance(value, str):
        return string(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_text(element, string) for element in value)}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_text(element, string)}' for key, element in value.items())}}}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    return QuotedString(text, Quote.single).with_quotes()


@dataclass(frozen=True)
class _Axis:
    """A key with its sign (`+k`, `~k`), its values as Hydra parsed them, and whether it is one of those that vary."""

    key: str
    values: Sequence[Any]
    sweeps: bool

    def override(self, value: Any) -> str:  # noqa: ANN401 (any parsed value)
        """Return the override that gives the key one of its values."""
        if value is None and self.key.startswith("~"):
            return self.key
        return f"{self.key}={Override._get_value_element_as_str(value)}"


def _axes(overrides: Sequence[Override], varies: Collection[str], given: Collection[str]) -> list[_Axis]:
    """Return an axis for each key; those that `varies` has vary, be it between one value. `given` are YAML's keys."""
    axes: dict[str, _Axis] = {}
    for override in overrides:
        key = override.get_key_element()
        sweeps = override.is_sweep_override() or key in varies
        if sweeps or key in given:
            _refuse_what_is_shared(override)
        if override.is_interval_sweep():
            raise ConfigError(
                f"{override.input_line}: an interval is no list of values; write range(from,to,step) or choice(...)"
            )
        values = list(override.sweep_iterator()) if override.is_sweep_override() else [override._value]
        if not values:
            raise ConfigError(f"{override.input_line}: an axis without a value")
        axes.pop(key, None)  # a key given twice: the last one counts, as on Hydra's command line
        axes[key] = _Axis(key, values, sweeps)
    return list(axes.values())


def _refuse_what_is_shared(override: Override) -> None:
    """Refuse an axis of what all combinations have in common, which would be ignored."""
    root = (override.package or override.key_or_group).partition(".")[0]
    if override.key_or_group == "experiment":
        raise ConfigError(f"{override.input_line}: one experiment at a time")
    if root in (*VOLATILE, "hydra"):
        raise ConfigError(f"{override.input_line}: {root} is one for the whole sweep: set it outside the axes")
