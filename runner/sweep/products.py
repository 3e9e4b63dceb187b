"""The products of a sweep: axes that multiply, grouped into dimensions, with conditions on combinations.

`sweep.when` decides where an axis applies. A grid evaluates every point of a product, a search some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser

from runner.config.objects import ConfigError, suggestion
from runner.config.values import VOLATILE
from runner.sweep.axes import Axis, Value, axes_by_name, name_of, override_lines
from runner.sweep.expressions import Expression, Read, parse
from runner.sweep.settings import Space

Lookup = Callable[[Sequence[str], str], Any]
"""Returns the value of a key that none of the given overrides sets; raises `ConfigError`."""


@dataclass(frozen=True)
class Combination:
    """One point of a sweep: its overrides, one per key, and the values that vary, by key."""

    overrides: tuple[str, ...]
    swept: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the name of the run: the swept keys, shortened if unambiguous, with their values."""
        if not self.swept:
            return "single combination"
        lasts = [key.rpartition(".")[2] for key in self.swept]
        short = {key: last if lasts.count(last) == 1 else key for key, last in zip(self.swept, lasts, strict=True)}
        return ", ".join(f"{short[key]}={value}" for key, value in self.swept.items())


@dataclass(frozen=True, eq=False)
class Dimension:
    """Axes that vary together, usually one. A point has a value for each axis; an interval has no points."""

    axes: tuple[Axis, ...]
    points: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, eq=False)
class Product:
    """Axes that multiply, in the order of their overrides, and the conditions that keep or drop combinations."""

    axes: tuple[Axis, ...]
    dimensions: tuple[Dimension, ...]
    include: Sequence[Expression]
    exclude: Sequence[Expression]
    lookup: Lookup
    siblings: Collection[str]
    """The names of the axes of all products of the sweep."""

    def apply(self, choose: Callable[[Dimension], Sequence[Value]]) -> dict[str, Value]:
        """Return the value of each axis that applies, by name.

        `choose` returns a value for each axis of a dimension. It is called once for each dimension with an axis that
        applies.
        """
        points: dict[Dimension, Sequence[Value]] = {}
        values: dict[str, Value] = {}
        read = self._reader(values)
        for axis, dimension, position in self._in_turn:
            if axis.condition is None or axis.condition.holds(read):
                if dimension not in points:
                    points[dimension] = choose(dimension)
                values[axis.name] = points[dimension][position]
        return {axis.name: values[axis.name] for axis in self.axes if axis.name in values}

    def combination(self, applied: Mapping[str, Value]) -> Combination | None:
        """Return the combination of these values, None if it is excluded."""
        read = self._reader(applied)
        if self.include and not any(expression.holds(read) for expression in self.include):
            return None
        if any(expression.holds(read) for expression in self.exclude):
            return None
        swept = {axis.name: applied[axis.name].shown for axis in self.axes if axis.varies and axis.name in applied}
        return Combination(tuple(value.override for value in applied.values()), swept)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(axis.name for axis in self.axes)

    @cached_property
    def _in_turn(self) -> list[tuple[Axis, Dimension, int]]:
        """Return the axes with their dimensions and positions; each axis comes after those that its condition reads."""
        places = {axis.name: (axis, d, i) for d in self.dimensions for i, axis in enumerate(d.axes)}
        free = [axis.name for axis in self.axes if axis.condition is None]
        reads = {a.name: sorted(a.condition.keys & self._names - {*free}) for a in self.axes if a.condition is not None}
        try:
            return [places[name] for name in (*free, *TopologicalSorter(reads).static_order())]
        except CycleError as error:
            circle = " <- ".join(error.args[1])
            raise ConfigError(
                f"sweep.when: {circle}: these conditions depend on each other in a circle; remove one of them"
            ) from None

    def _reader(self, values: Mapping[str, Value]) -> Read:
        """Return a function that reads a key: None for an axis that does not apply; other keys are looked up."""

        def read(key: str) -> Any:  # noqa: ANN401 (any plain value)
            if key in self._names:
                return values[key].plain if key in values else None
            try:
                return self.lookup([value.override for value in values.values()], key)
            except ConfigError:
                if key in self.siblings:
                    return None
                raise

        return read


def products(
    arguments: Sequence[str],
    params: Mapping[str, Any],
    space: Space,
    loader: ConfigLoader | None = None,
    lookup: Lookup | None = None,
) -> list[Product]:
    """Return the products of a sweep; raises `ConfigError`.

    `arguments` are overrides as on the command line, `params` axes by key, as under `hydra.sweeper.params`. Both
    multiply with each product of `space.union`; if that is empty, there is one product. If a key is set more than once,
    the last of params, product and command line counts. `loader` lists the choices that match glob(...), `lookup`
    returns the values of keys in conditions that are not axes.
    """
    parser = OverridesParser.create(loader)
    parsed = cache(lambda line: parser.parse_overrides([line])[0])
    drafts = [
        axes_by_name(
            ((parsed(line), listed, yaml) for line, listed, yaml in override_lines(params, product, arguments)),
            space.seed,
            space.max_combinations,
        )
        for product in space.union or [{}]
    ]
    siblings = list(dict.fromkeys(name for draft in drafts for name in draft))
    apart = {name for name in siblings if len({_overrides(draft.get(name)) for draft in drafts}) > 1}
    known = [name for name in siblings if name.partition(".")[0] not in VOLATILE]
    when = {name_of(key): parse(text, f"sweep.when.{key}") for key, text in space.when.items()}
    for place, names in (("sweep.when", when), ("sweep.zip", _together(space.zip))):
        for name in names:
            if name not in siblings:
                raise ConfigError(f"{place}: {name}: not an axis of this sweep; {suggestion(name, known)}")
    include = [parse(text, "sweep.include") for text in space.include]
    exclude = [parse(text, "sweep.exclude") for text in space.exclude]
    if loader:
        _check_choices((*when.values(), *include, *exclude), loader)

    def unknown(_: Sequence[str], key: str) -> Any:  # noqa: ANN401 (never returns)
        raise ConfigError(f"{key}: not an axis of this sweep; {suggestion(key, known)}")

    made = []
    for draft in drafts:
        axes = tuple(
            replace(axis, varies=axis.varies or name in apart, condition=when.get(name)) for name, axis in draft.items()
        )
        dimensions = tuple(_dimensions(axes, _together(space.zip)))
        made.append(Product(axes, dimensions, include, exclude, lookup or unknown, frozenset(siblings)))
    return made


def _check_choices(conditions: Iterable[Expression], loader: ConfigLoader) -> None:
    """Raise `ConfigError` for a condition on a choice that its group does not have."""
    for condition in conditions:
        for key, word in sorted(condition.words):
            choices = loader.get_group_options(key.partition("@")[0])
            if choices and word not in choices:
                raise ConfigError(f"{condition.place}: {condition.text}: no {key} {word}; {suggestion(word, choices)}")


def _overrides(axis: Axis | None) -> tuple[str, ...] | None:
    return tuple(value.override for value in axis.values) if axis else None


def _together(groups: Iterable[Iterable[str]]) -> dict[str, int]:
    """Return the number of the group of each key in `sweep.zip`."""
    numbers: dict[str, int] = {}
    for number, group in enumerate(groups):
        for key in group:
            if name_of(key) in numbers:
                raise ConfigError(f"sweep.zip: {key}: occurs more than once; name it once")
            numbers[name_of(key)] = number
    return numbers


def _dimensions(axes: Iterable[Axis], together: Mapping[str, int]) -> Iterator[Dimension]:
    """Yield the dimensions of a product; an axis with one value is a separate dimension."""
    groups: dict[str | int, list[Axis]] = {}
    for axis in axes:
        groups.setdefault(together.get(axis.name, axis.name) if len(axis.values) != 1 else axis.name, []).append(axis)
    for group in groups.values():
        first = group[0]
        for axis in group[1:]:
            if axis.interval or first.interval:
                line = (axis if axis.interval else first).line
                raise ConfigError(f"sweep.zip: {line}: an interval cannot be zipped with other axes; write its values")
            if len(axis.values) != len(first.values):
                raise ConfigError(
                    f"sweep.zip: {first.name} has {len(first.values)} values, but {axis.name} has "
                    f"{len(axis.values)}; zipped axes need the same number of values"
                )
        points = {tuple(v.override for v in point): point for point in zip(*(a.values for a in group), strict=True)}
        yield Dimension(tuple(group), tuple(points.values()))
