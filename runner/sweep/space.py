"""The search space of a sweep: each dimension of its products is a parameter of a trial, each trial a point."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Protocol

from retrievers.store import fingerprint
from runner.config.objects import ConfigError
from runner.config.values import VOLATILE
from runner.sweep.axes import Value
from runner.sweep.products import Combination, Dimension, Product

UNION = "sweep.union"
"""The name of the parameter that chooses one of several products."""

MOST_EXCLUDED = 1000
"""The number of consecutive excluded points after which a search gives up."""

ALL_EXCLUDED = "sweep.include, sweep.exclude: the conditions exclude all combinations; relax them"

_DIGITS = 6  # significant digits of a number from an interval; with many more, points would never be equal


class ParameterSource(Protocol):
    """Suggests values of parameters, as Optuna's trials do."""

    def suggest_categorical(self, name: str, choices: Sequence[Any], /) -> Any:  # noqa: ANN401 (one of the choices)
        """Return one of the choices."""

    def suggest_int(self, name: str, low: int, high: int, /, *, step: int, log: bool) -> int:
        """Return an integer."""

    def suggest_float(self, name: str, low: float, high: float, /, *, step: float | None, log: bool) -> float:
        """Return a number."""


class _Drawn:
    """A trial with uniformly random values."""

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def suggest_categorical(self, _: str, choices: Sequence[Any], /) -> Any:  # noqa: ANN401 (one of the choices)
        return self._generator.choice(choices)

    def suggest_int(self, _: str, low: int, high: int, /, *, step: int, log: bool) -> int:
        return self._generator.randrange(low, high + 1, step)

    def suggest_float(self, _: str, low: float, high: float, /, *, step: float | None, log: bool) -> float:
        if step is None:
            return self._generator.uniform(low, high)
        return low + step * self._generator.randrange(round((high - low) / step) + 1)


@dataclass(frozen=True)
class Parameter:
    """A dimension as a parameter of Optuna: one of `choices`, or a number from `low` to `high`, optionally in steps."""

    name: str
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False
    integer: bool = False

    def suggest(self, trial: ParameterSource) -> Any:  # noqa: ANN401 (a text or a number)
        """Return the value that a trial suggests."""
        if self.choices:
            return trial.suggest_categorical(self.name, self.choices)
        if self.integer:
            return trial.suggest_int(self.name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log)


class SearchSpace:
    """The products of a sweep as parameters; the parameters of a trial may depend on its values."""

    def __init__(self, products: Sequence[Product]) -> None:
        self.products = products
        self.labels = _labels(products)
        self._parameters: dict[tuple[int, Dimension], Parameter] = {}
        for number, product in enumerate(products):
            for dimension in product.dimensions:
                if dimension.axes[0].interval or len(dimension.points) > 1:
                    self._parameters[number, dimension] = self._parameter(number, dimension)
        if not self._parameters and len(products) == 1:
            raise ConfigError(
                "a search needs at least one axis, such as 'retriever.k1=interval(0.1,3)' or "
                "'retriever.b=range(0,1.05,0.05)'"
            )

    @property
    def conditional(self) -> bool:
        """Return whether trials may have different parameters."""
        return len(self.products) > 1 or any(axis.condition for axis in self.products[0].axes)

    @property
    def unrestricted(self) -> bool:
        """Return whether no condition limits the points, so that probes have every choice of every axis."""
        return not any(p.include or p.exclude or any(axis.condition for axis in p.axes) for p in self.products)

    @property
    def axes(self) -> dict[str, str]:
        """Return each axis that varies, with its values as text."""
        axes: dict[str, dict[str, None]] = {}
        for axis in (axis for product in self.products for axis in product.axes if axis.varies):
            values = [axis.line.partition("=")[2]] if axis.interval else [value.shown for value in axis.values]
            axes.setdefault(axis.name, {}).update(dict.fromkeys(values))
        return {name: ", ".join(values) for name, values in axes.items()}

    @property
    def identity(self) -> str:
        """Return a hash of everything that maps the values of a trial to a point."""
        parts = [
            repr((parameter, [[v.override for v in point] for point in dimension.points]))
            for (_, dimension), parameter in self._parameters.items()
        ]
        for product in self.products:
            deciding = [axis for axis in product.axes if axis.name.partition(".")[0] not in VOLATILE]
            fixed = sorted(axis.values[0].override for axis in deciding if len(axis.values) == 1)
            conditions = [f"{axis.name}: {axis.condition.text}" for axis in product.axes if axis.condition]
            texts = [expression.text for expression in (*product.include, *product.exclude)]
            parts.append(repr((fixed, conditions, texts, len(product.include))))
        return fingerprint("space", *self.labels, *parts)

    def point(self, trial: ParameterSource) -> Combination | None:
        """Return the point of a trial, None if it is excluded."""
        number = self.labels.index(trial.suggest_categorical(UNION, self.labels)) if len(self.labels) > 1 else 0
        product = self.products[number]
        return product.combination(product.apply(lambda dimension: self._choose(trial, number, dimension)))

    def probes(self, seed: int) -> list[Combination]:
        """Return points that reveal errors early: each choice and each end of an interval, other axes at their first.

        Axes that do not apply at these points are not covered. If all of these points are excluded, one point is drawn
        with the seed. Raises `ConfigError` if none is found.
        """
        if corners := {corner.overrides: corner for corner in self._corners()}:
            return list(corners.values())
        drawn = _Drawn(random.Random(seed))  # noqa: S311 (a point of a sweep)
        points = (self.point(drawn) for _ in range(MOST_EXCLUDED))
        probe = next((point for point in points if point is not None), None)
        if probe is None:
            raise ConfigError(ALL_EXCLUDED)
        return [probe]

    def _corners(self) -> Iterator[Combination]:
        for product in self.products:
            first = {dimension: _ends(dimension)[0] for dimension in product.dimensions}
            others = [{**first, dimension: end} for dimension in product.dimensions for end in _ends(dimension)[1:]]
            for ends in (first, *others):
                point = product.combination(product.apply(ends.__getitem__))
                if point is not None:
                    yield point

    def intervals(self) -> list[str]:
        """Return the overrides of axes that are intervals."""
        return [axis.line for product in self.products for axis in product.axes if axis.interval]

    def _parameter(self, number: int, dimension: Dimension) -> Parameter:
        """Return the parameter of a dimension; products with equal dimensions share it."""
        name = " and ".join(axis.name for axis in dimension.axes)
        parameter = _parameter(name, dimension)
        others = [other for other in self._parameters.values() if other.name == name]
        return (
            parameter
            if all(parameter == other for other in others)
            else _parameter(f"{name} ({number + 1})", dimension)
        )

    def _choose(self, trial: ParameterSource, number: int, dimension: Dimension) -> Sequence[Value]:
        parameter = self._parameters.get((number, dimension))
        if parameter is None:
            return dimension.points[0]
        value = parameter.suggest(trial)
        if parameter.choices:
            return dimension.points[parameter.choices.index(value)]
        if dimension.axes[0].interval:
            return (_of_interval(dimension, value),)
        return dimension.points[round((value - parameter.low) / (parameter.step or 1))]


def _labels(products: Sequence[Product]) -> list[str]:
    """Return a name for each product: the settings that differ from other products."""
    fixed = [[f"{a.name}={a.values[0].shown}" for a in p.axes if a.varies and len(a.values) == 1] for p in products]
    labels = [", ".join(texts) for texts in fixed]
    return [text if labels.count(text) == 1 else f"{text} ({i + 1})".lstrip() for i, text in enumerate(labels)]


def _parameter(name: str, dimension: Dimension) -> Parameter:
    interval = dimension.axes[0].interval
    if interval:
        return Parameter(name, (), interval.low, interval.high, None, interval.log, interval.integer)
    if len(dimension.axes) == 1 and (step := _step(dimension)):
        first, last = dimension.points[0][0].plain, dimension.points[-1][0].plain
        return Parameter(name, (), first, last, step, integer=all(isinstance(n, int) for n in (first, last, step)))
    texts = [", ".join(value.shown for value in point) for point in dimension.points]
    if len(set(texts)) < len(texts):  # '1' and 1
        texts = [", ".join(value.override for value in point) for point in dimension.points]
    return Parameter(name, tuple(texts))


def _step(dimension: Dimension) -> float | None:
    """Return the step of a dimension of at least three ascending, evenly spaced numbers, else None."""
    numbers = [point[0].plain for point in dimension.points]
    if len(numbers) < 3 or not all(type(n) in (int, float) and math.isfinite(n) for n in numbers):
        return None
    steps = {Decimal(str(after)) - Decimal(str(before)) for before, after in pairwise(numbers)}
    if len(steps) > 1 or min(steps) <= 0:
        return None
    return int(numbers[1] - numbers[0]) if all(isinstance(n, int) for n in numbers) else float(steps.pop())


def _ends(dimension: Dimension) -> Sequence[Sequence[Value]]:
    """Return the points of a dimension, or the ends of an interval."""
    interval = dimension.axes[0].interval
    if interval is None:
        return dimension.points
    return [(_of_interval(dimension, end),) for end in (interval.low, interval.high)]


def _of_interval(dimension: Dimension, number: float) -> Value:
    """Return a number of an interval as a value, rounded to significant digits."""
    (axis,) = dimension.axes
    assert axis.interval is not None  # noqa: S101 (the caller checks)
    if axis.interval.integer:
        return axis.value(int(number))
    rounded = float(f"{number:.{_DIGITS}g}")
    return axis.value(min(max(rounded, axis.interval.low), axis.interval.high))
