"""Which types of queries are asked of which bundle, in which order. It knows nothing of how queries are made."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import ConfigError, suggestion
from runner.generation.synthesis.base import COMPARISON, QUERY_TYPES, Bundle, Chunks, Wanted


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Sampling:
    """How query types are spread over bundles.

    `all_per_bundle` asks each bundle for every type; `sample_per_bundle` for `min_types` to `max_types` of them, drawn
    by `weights` (1 where none is given, 0 for never).
    """

    mode: Literal["all_per_bundle", "sample_per_bundle"] = "sample_per_bundle"
    min_types: int = Field(default=1, ge=1)
    max_types: int = Field(default=3, ge=1)
    weights: Mapping[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)

    @field_validator("weights")
    @classmethod
    def _known(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        for name in value:
            if name not in QUERY_TYPES:
                raise ValueError(f"there is no query type {name!r}: {suggestion(name, QUERY_TYPES)}")
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_types > self.max_types:
            raise ValueError(f"min_types={self.min_types} is above max_types={self.max_types}")
        return self

    def chosen(
        self, types: Collection[str] | None, possible: Collection[str], several_goldens: bool
    ) -> tuple[str, ...]:
        """Return the types that are asked for, in the usual order.

        `types` are those of the settings, None for all that are `possible`; comparisons need bundles that can have
        several goldens. Raises `ConfigError` where no type is left.
        """
        asked = [name for name in QUERY_TYPES if name in (possible if types is None else types)]
        if COMPARISON in asked and not several_goldens:
            if types is not None:
                raise ConfigError("generator.types: comparison needs two goldens a bundle: set selection.mode=cluster")
            asked.remove(COMPARISON)
        left = tuple(name for name in asked if self.weights.get(name, 1.0) > 0)
        if not left:
            raise ConfigError(
                "generator.types: none has a weight above 0 (sampling.weights); null asks for all that can be made"
            )
        return left

    def wanted(
        self, types: Sequence[str], chunks: Chunks, bundles: Iterable[Bundle], seed: int, again: bool
    ) -> Iterator[Wanted]:
        """Yield what is to be made of bundles, each bundle's types together.

        With `again`, bundles are asked another time for types that they were not asked for, until all were; each time
        in their order, and for as many types as the first time.
        """
        waiting: list[tuple[Bundle, list[str], np.random.Generator]] = []
        for bundle in bundles:
            random = np.random.default_rng(seed_of(seed, chunks, bundle, ""))
            turn = (bundle, self._drawn(types, bundle, random), random)
            yield from self._turn(*turn, chunks, seed)
            waiting.append(turn)
        while again and (waiting := [turn for turn in waiting if turn[1]]):
            for turn in waiting:
                yield from self._turn(*turn, chunks, seed)

    def _drawn(self, types: Sequence[str], bundle: Bundle, random: np.random.Generator) -> list[str]:
        """Return the types of a bundle, in the order in which they are drawn."""
        fitting = [name for name in types if name != COMPARISON or len(bundle.goldens) > 1]
        if self.mode == "all_per_bundle" or not fitting:
            return fitting
        weights = np.array([self.weights.get(name, 1.0) for name in fitting])
        drawn = random.choice(len(fitting), len(fitting), replace=False, p=weights / weights.sum())
        return [fitting[i] for i in drawn.tolist()]

    def _turn(
        self, bundle: Bundle, left: list[str], random: np.random.Generator, chunks: Chunks, seed: int
    ) -> Iterator[Wanted]:
        """Yield what a bundle is asked for next, and take it from what is left."""
        few = int(random.integers(self.min_types, self.max_types + 1))
        taken = left[:] if self.mode == "all_per_bundle" else left[:few]
        del left[: len(taken)]
        for name in taken:
            yield Wanted(bundle, name, seed_of(seed, chunks, bundle, name))


def seed_of(seed: int, chunks: Chunks, bundle: Bundle, query_type: str) -> int:
    """Return the seed of a query, which its first golden and its type decide, not its place in the work."""
    first = bundle.goldens[0]
    name = "\0".join((str(seed), chunks.doc_ids[first], chunks.chunk_ids[first], query_type))
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
