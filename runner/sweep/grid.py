"""What a sweep is made of: axes from the command line and from presets, multiplied into combinations.

It knows override syntax, and nothing of configs, retrievers or results.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from runner.config.objects import ConfigError


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
    arguments: Sequence[str], params: Mapping[str, Any], union: Sequence[Mapping[str, Any]]
) -> list[Combination]:
    """Return every combination of a sweep, without repetitions, in the order in which it was written.

    `arguments` are overrides as on the command line, `params` axes by key, as under `hydra.sweeper.params`; both
    multiply with each product of `union` (one product of no axes when it is empty). Raises `ConfigError`.
    """
    parser = OverridesParser.create()
    found: dict[tuple[str, ...], Combination] = {}
    for product in union or [{}]:
        lines = [*_lines(params), *_lines(product), *arguments]
        axes = _axes(parser.parse_overrides(lines), varies=product.keys() if union else ())
        for point in itertools.product(*(values for _, values, _ in axes)):
            chosen = [(key, value) for (key, _, _), value in zip(axes, point, strict=True)]
            overrides = tuple(key if value is None else f"{key}={value}" for key, value in chosen)
            swept = {
                key.lstrip("+~"): _bare(value)
                for (key, _, sweeps), (_, value) in zip(axes, chosen, strict=True)
                if sweeps
            }
            found.setdefault(overrides, Combination(overrides, swept))
    return list(found.values())


def _lines(axes: Mapping[str, Any]) -> list[str]:
    """Return axes of YAML as override lines: a list is a choice between its elements."""
    return [f"{key}={_choice(value)}" for key, value in axes.items()]


def _choice(value: Any) -> str:  # noqa: ANN401 (any YAML value)
    if isinstance(value, (list, tuple)):
        return ",".join(_element(element) for element in value)
    return _element(value)


def _element(value: Any) -> str:  # noqa: ANN401 (any YAML value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_element(element) for element in value)}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_element(element)}' for key, element in value.items())}}}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


Axis = tuple[str, list[str | None], bool]
"""A key with its sign (`+k`, `~k`), its values as override text, and whether it is one of those that vary."""


def _axes(overrides: Sequence[Override], varies: Any) -> list[Axis]:  # noqa: ANN401 (a view of keys)
    axes: dict[str, Axis] = {}
    for override in overrides:
        key = override.get_key_element()
        values: list[str | None]
        if override.is_sweep_override():
            if not override.is_discrete_sweep():
                raise ConfigError(
                    f"{override.input_line}: an interval is no list of values; write range(from,to,step) or choice(...)"
                )
            values = list(override.sweep_string_iterator())
        else:
            values = [
                None if override.is_delete() and override.value() is None else override.get_value_element_as_str()
            ]
        sweeps = override.is_sweep_override() or key in varies
        axes.pop(key, None)  # a key given twice: the last one counts, as on Hydra's command line
        axes[key] = (key, values, sweeps)
    return list(axes.values())


def _bare(value: str | None) -> str:
    return "null" if value is None else value.strip("'\"")
