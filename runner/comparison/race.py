"""The course of a race, for leaderboards, reports and resuming: what was dropped, when, how surely, what it saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

RACE = "race.json"
"""The file of a race among the artifacts of the parent run."""


@dataclass(frozen=True)
class DroppedCombination:
    """A combination that a race dropped after some queries, because it is surely not the best.

    `p` is the p-value, valid at any time, of the hypothesis that it is the best on all queries. `mean` and
    `leader_mean` are means over these queries only. `calls` is the largest number of calls of language models that its
    other queries would have needed.
    """

    combination: str
    name: str
    swept: Mapping[str, Any]
    queries: int
    leader: str
    p: float
    mean: float
    leader_mean: float
    calls: int = 0

    def to_json(self) -> str:
        """Return the dropped combination as JSON."""
        return orjson.dumps(asdict(self)).decode()


@dataclass(frozen=True)
class RaceRecord:
    """A race on the queries with gold of a dataset, by the mean of a measure.

    `combinations` are the identities of all, `queries` the number of queries, `block` the number of queries between two
    decisions, and `alpha` the largest probability that the best combination is dropped; with a `margin`, that all
    combinations are dropped whose mean is lower than that of the best by at most the margin. `exempt` are the names of
    combinations with failed searches, which are never dropped.
    """

    measure: str
    alpha: float
    margin: float
    block: int
    seed: int
    queries: int
    combinations: Sequence[str]
    dropped: Sequence[DroppedCombination] = ()
    exempt: Sequence[str] = field(default_factory=tuple)

    @property
    def saved(self) -> int:
        """Return how many searches of a combination for a query with gold the race saved."""
        return sum(self.queries - one.queries for one in self.dropped)

    @property
    def share(self) -> float:
        """Return the share of these searches among those of the full sweep."""
        return self.saved / max(self.queries * len(self.combinations), 1)

    @property
    def calls(self) -> int:
        """Return the largest number of calls of language models that the race saved."""
        return sum(one.calls for one in self.dropped)

    def describe(self) -> str:
        """Return the outcome of the race in sentences."""
        n, m = len(self.dropped), len(self.combinations)
        calls = f", and up to {self.calls:,} calls of language models" if self.calls else ""
        exempt = f" Never dropped, because searches failed: {', '.join(self.exempt)}." if self.exempt else ""
        claim = (
            f"With a probability of at least {1 - self.alpha:g}, the mean {self.measure} of the best survivor is lower "
            f"than that of the best combination by at most {self.margin:g}."
            if self.margin
            else f"The combination with the best mean {self.measure} on these queries is dropped with a probability of "
            f"at most {self.alpha:g}."
        )
        return (
            f"Race: {n:,} of {m:,} combinations were dropped before all {self.queries:,} queries with gold were "
            f"searched. This saved {self.saved:,} of {self.queries * m:,} searches ({self.share:.0%}){calls}. {claim} "
            f"Tests, effects and importances of settings cover only the survivors.{exempt}"
        )

    def list_rows(self) -> list[dict[str, object]]:
        """Return a row for each dropped combination: `dropped` in place of its rank, and partial means.

        The column of the measure is absent, because a partial mean does not compare with a mean over all queries.
        """
        return [
            {"rank": "dropped", "name": one.name}
            | dict(one.swept)
            | {"race_queries": one.queries, "race_leader": one.leader, "race_p": one.p}
            | {"race_partial_mean": one.mean, "race_partial_mean_of_leader": one.leader_mean}
            for one in self.dropped
        ]

    def to_json(self) -> str:
        """Return the record as JSON."""
        figures = {"saved": self.saved, "saved_share": self.share, "saved_calls": self.calls}
        return orjson.dumps({**asdict(self), **figures}, option=orjson.OPT_INDENT_2).decode() + "\n"


def parse_dropped(text: str) -> DroppedCombination:
    """Return the dropped combination that `DroppedCombination.to_json` wrote."""
    return DroppedCombination(**orjson.loads(text))


def parse_race(text: str) -> RaceRecord:
    """Return the race that `to_json` wrote; raises `ValueError`."""
    content = orjson.loads(text)
    try:
        fields = {name: content[name] for name in RaceRecord.__dataclass_fields__}
        return RaceRecord(**{**fields, "dropped": [DroppedCombination(**one) for one in fields["dropped"]]})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a record of a race: {error}") from error
