"""Find queries that look like variants of each other, which statistics should not count as independent.

Variants share their gold, and either most of their words or the value of a metadata field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.datasets.dataset import Dataset
from runner.features.inspect.rankings import list_golds

Group = Sequence[int]
"""The positions of queries that belong together."""


@dataclass(frozen=True)
class Variants:
    """Groups of variants, and the field whose value they share ("" if only their words show it)."""

    groups: Sequence[Group]
    field: str = ""

    @property
    def queries(self) -> int:
        """Return how many queries have a variant."""
        return sum(map(len, self.groups))


def find_variants(dataset: Dataset, near_duplicates: Sequence[Group]) -> Variants:
    """Return the queries that look like variants: by the field that groups most of them, or else by their words."""
    gold = {query: tuple(list_golds(dataset, query)) for query in range(len(dataset.queries))}

    def share_gold(group: Group) -> bool:
        return len(group) > 1 and gold[group[0]] != () and len({gold[query] for query in group}) == 1

    by_field: list[Variants] = []
    for field, groups in _groups_by_field(dataset.queries.metadata).items():
        repeated = [group for group in groups if len(group) > 1]
        if len(groups) > 1 and repeated and all(map(share_gold, repeated)):
            by_field.append(Variants(repeated, field))
    by_words = Variants([group for group in near_duplicates if share_gold(group)])
    return max([*by_field, by_words], key=lambda variants: variants.queries)


def _groups_by_field(metadata: Sequence[Mapping[str, object]]) -> dict[str, list[Group]]:
    """Return the groups of queries that share a value, by field."""
    groups: defaultdict[str, defaultdict[object, list[int]]] = defaultdict(lambda: defaultdict(list))
    for query, fields in enumerate(metadata):
        for field, value in fields.items():
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                groups[field][value].append(query)
    return {field: list(values.values()) for field, values in groups.items()}
