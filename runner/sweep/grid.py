"""Lists the combinations of a grid, or a sample of them."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from hydra.core.config_loader import ConfigLoader

from runner.config.objects import ConfigError
from runner.sweep.axes import Value, too_many
from runner.sweep.products import Combination, Dimension, Lookup, Product, products
from runner.sweep.settings import Space


def combinations(
    arguments: Sequence[str],
    params: Mapping[str, Any],
    space: Space,
    loader: ConfigLoader | None = None,
    lookup: Lookup | None = None,
) -> list[Combination]:
    """Return the distinct combinations of a sweep in the order of its declaration.

    With `space.sample`, only that many are drawn and built; a combination of several products has one chance for each
    of them, but is returned once. The arguments are those of `products`. Raises `ConfigError`.
    """
    made = products(arguments, params, space, loader, lookup)
    for axis in (axis for product in made for axis in product.axes if axis.interval):
        raise ConfigError(
            f"{axis.line}: a grid needs a list of values, not an interval; write range(from,to,step) or choice(...)"
        )
    *starts, total = accumulate((math.prod(len(d.points) for d in p.dimensions) for p in made), initial=0)
    if (wanted := total if space.sample is None else min(space.sample, total)) > space.max_combinations:
        raise ConfigError(too_many("sweep", wanted, "combinations", space.max_combinations))
    combinations_by_overrides: dict[frozenset[str], tuple[int, Combination]] = {}
    for index in range(total) if space.sample is None else _shuffle(total, space.seed):
        which = bisect_right(starts, index) - 1
        combination = _at(made[which], index - starts[which])
        if combination is not None:
            combinations_by_overrides.setdefault(frozenset(combination.overrides), (index, combination))
        if len(combinations_by_overrides) == space.sample:
            break
    if not combinations_by_overrides:
        raise ConfigError(
            f"sweep.include, sweep.exclude: the conditions exclude all {total:,} combinations; relax them"
        )
    return [
        combination for _, combination in sorted(combinations_by_overrides.values(), key=lambda element: element[0])
    ]


def _at(product: Product, index: int) -> Combination | None:
    """Return the combination of a product at an index, the last axis varying fastest; None if it is excluded."""
    positions: dict[Dimension, int] = {}
    for dimension in reversed(product.dimensions):
        index, positions[dimension] = divmod(index, len(dimension.points))
    applied = product.apply(lambda dimension: dimension.points[positions[dimension]])
    if any(_repeats(dimension, position, applied) for dimension, position in positions.items()):
        return None
    return product.combination(applied)


def _repeats(dimension: Dimension, position: int, applied: Mapping[str, Value]) -> bool:
    """Return whether an earlier point has the same values on the axes that apply."""
    kept = [i for i, axis in enumerate(dimension.axes) if axis.name in applied]
    if len(kept) == len(dimension.axes):
        return False
    here = dimension.points[position]
    return any(all(point[i].override == here[i].override for i in kept) for point in dimension.points[:position])


def _shuffle(n: int, seed: int) -> Iterator[int]:
    """Yield the numbers below n in random order, in memory proportional to those taken (sparse Fisher-Yates)."""
    generator = random.Random(seed)  # noqa: S311 (a sample of combinations)
    moved: dict[int, int] = {}
    for i in range(n):
        j = generator.randrange(i, n)
        yield moved.get(j, j)
        moved[j] = moved.pop(i, i)
