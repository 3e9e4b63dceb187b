"""Decide which types of queries are requested from which bundle, and in which order."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from runner.config.objects import ConfigError
from runner.features.synthesize.base import COMPARISON, QUERY_TYPES, Bundle, Chunks, Request, check_names


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Sampling:
    """The distribution of query types over bundles.

    `all_per_bundle` requests every type from each bundle; `sample_per_bundle` requests `min_types` to `max_types` of
    them, drawn by `weights` (default 1; 0 for never).
    """

    mode: Literal["all_per_bundle", "sample_per_bundle"] = "sample_per_bundle"
    min_types: int = Field(default=1, ge=1)
    max_types: int = Field(default=3, ge=1)
    weights: Mapping[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)

    @field_validator("weights")
    @classmethod
    def _check_types(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        check_names(value)
        return value

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.min_types > self.max_types:
            raise ValueError(f"min_types={self.min_types}: should be at most max_types={self.max_types}")
        return self

    def select_types(
        self, types: Collection[str] | None, possible: Collection[str], several_goldens: bool
    ) -> tuple[str, ...]:
        """Return the requested types in the order of `QUERY_TYPES`.

        `types` are those of the settings, None for all `possible` ones; comparisons need bundles with several goldens.
        Raises `ConfigError` if no type is left.
        """
        names = [name for name in QUERY_TYPES if name in (possible if types is None else types)]
        if COMPARISON in names and not several_goldens:
            if types is not None:
                raise ConfigError(
                    "generator.types: comparison queries need bundles with two gold chunks; set selection.mode=cluster"
                )
            names.remove(COMPARISON)
        left = tuple(name for name in names if self.weights.get(name, 1.0) > 0)
        if not left:
            raise ConfigError(
                "generator.types: no type has a weight above 0 in sampling.weights; raise a weight, or set "
                "generator.types=null to request all possible types"
            )
        return left

    def iter_requests(
        self, types: Sequence[str], chunks: Chunks, bundles: Iterable[Bundle], seed: int, again: bool
    ) -> Iterator[Request]:
        """Yield the requests for bundles, with the types of a bundle together.

        With `again`, further passes over the bundles request their remaining types, until none is left; each pass has
        the same order and draws as many types per bundle as the first.
        """
        waiting: list[tuple[Bundle, list[str], np.random.Generator]] = []
        for bundle in bundles:
            random = np.random.default_rng(derive_seed(seed, chunks, bundle, ""))
            turn = (bundle, self._draw_types(types, bundle, random), random)
            yield from self._turn(*turn, chunks, seed)
            waiting.append(turn)
        while again and (waiting := [turn for turn in waiting if turn[1]]):
            for turn in waiting:
                yield from self._turn(*turn, chunks, seed)

    def _draw_types(self, types: Sequence[str], bundle: Bundle, random: np.random.Generator) -> list[str]:
        """Draw the types of a bundle, in order."""
        fitting = [name for name in types if name != COMPARISON or len(bundle.goldens) > 1]
        if self.mode == "all_per_bundle" or not fitting:
            return fitting
        weights = np.array([self.weights.get(name, 1.0) for name in fitting])
        drawn = random.choice(len(fitting), len(fitting), replace=False, p=weights / weights.sum())
        return [fitting[i] for i in drawn.tolist()]

    def _turn(
        self, bundle: Bundle, left: list[str], random: np.random.Generator, chunks: Chunks, seed: int
    ) -> Iterator[Request]:
        """Yield the next requests for a bundle, and remove their types from `left`."""
        few = int(random.integers(self.min_types, self.max_types + 1))
        taken = left[:] if self.mode == "all_per_bundle" else left[:few]
        del left[: len(taken)]
        for name in taken:
            yield Request(bundle, name, derive_seed(seed, chunks, bundle, name))


def derive_seed(seed: int, chunks: Chunks, bundle: Bundle, query_type: str) -> int:
    """Return the seed of a query, which depends on its first golden and its type, not on the order of work."""
    first = bundle.goldens[0]
    name = "\0".join((str(seed), chunks.doc_ids[first], chunks.chunk_ids[first], query_type))
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
