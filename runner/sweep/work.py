"""The plan of a sweep: the work to do, and its estimated time, disk space and model calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import orjson

LEAST_S = 0.1
"""Times below this many seconds are not shown exactly."""


@dataclass(frozen=True)
class PlannedStage:
    """The work of one kind: the number of distinct pieces, of cached pieces (`there`), and of pieces to do.

    `seconds` and `bytes` are those of the pieces to do; `unknown` of these have no estimate, because no comparable work
    was measured. A `rough` estimate comes from far smaller work.
    """

    name: str
    distinct: int
    there: int
    to_do: int
    seconds: float
    bytes: float
    rough: bool = False
    unknown: int = 0


@dataclass(frozen=True)
class PlannedCalls:
    """The maximum number of calls of a language model for a purpose, without retries, and their tokens and cost.

    Tokens and cost are None if unknown. Figures that are neither exact nor from earlier calls are either `rough`, with
    the maximum number of output tokens, or an upper bound (`most`), as no token is shorter than a byte.
    `price_settings` names the settings to add if the cost is unknown.
    """

    purpose: str
    model: str
    calls: int
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    rough: bool = False
    most: bool = False
    price_settings: str = "llm.price_in and llm.price_out"


@dataclass(frozen=True)
class PlannedPower:
    """What the queries of a dataset can show by the primary measure, before anything is computed.

    `units` is the number of queries with gold, or of their clusters. `spread` is the standard deviation of the
    differences between two systems: the median over pairs of `results` earlier results on the dataset, or an assumed
    one if there are fewer than two. A test with a power of 0.8 detects the difference `single` by itself, and
    `corrected` at the level that the correction of the leaderboard leaves to the least significant of `pairs` pairs.
    """

    dataset: str
    measure: str
    units: int
    unit: str
    pairs: int
    results: int
    spread: float
    single: float
    corrected: float


@dataclass(frozen=True)
class Plan:
    """The work of a sweep: the number of combinations, the names of those to do, and the stages of the work.

    `wall_seconds` is the time of the work with this many `workers`, without starting these, logging, and the `calls` of
    language models; None if nothing has an estimate. `power` is that of each dataset. `race` describes the saving of a
    race, which the other figures leave out; "" without a race.
    """

    name: str
    datasets: Sequence[str]
    combinations: int
    finished: int
    to_do: Sequence[str]
    stages: Sequence[PlannedStage]
    wall_seconds: float | None
    workers: int
    store: str
    calls: Sequence[PlannedCalls] = field(default_factory=tuple)
    race: str = ""
    power: Sequence[PlannedPower] = ()

    @property
    def bytes(self) -> float:
        """Return how much the store will grow, in bytes."""
        return sum(stage.bytes for stage in self.stages)

    @property
    def rough(self) -> bool:
        """Return whether a time of at least `LEAST_S` comes from far smaller work."""
        return any(stage.rough and stage.seconds >= LEAST_S for stage in self.stages)

    @property
    def unknown(self) -> Sequence[str]:
        """Return the stages with work that has no estimate."""
        return [stage.name for stage in self.stages if stage.unknown]

    def to_json(self) -> str:
        """Return the plan with its totals as JSON."""
        content = {**asdict(self), "bytes": self.bytes, "rough": self.rough, "unknown": self.unknown}
        return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


@dataclass(frozen=True)
class SearchPlan:
    """The size of a search before it runs: the number of trials on all queries, repeated for each fold.

    `power` is that of its dataset.
    """

    name: str
    trials: int
    folds: int
    power: Sequence[PlannedPower] = ()

    @property
    def combinations(self) -> int:
        """Return the number of trials over all queries and folds."""
        return self.trials * (self.folds + 1)

    def to_json(self) -> str:
        """Return the plan as JSON."""
        content = {"name": self.name, "combinations": self.combinations, "power": list(map(asdict, self.power))}
        return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()
