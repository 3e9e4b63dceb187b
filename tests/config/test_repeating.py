"""The overrides of a recorded evaluation describe the same evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from runner.config.composing import compose_config
from runner.config.repeating import list_overrides
from runner.config.values import Settled, config_hash, settle


def settle_words(words: Sequence[str]) -> Settled:
    return settle(*compose_config("evaluate", words))


@pytest.mark.parametrize(
    "words",
    [
        ["retriever=bm25", "retriever.k1=0.4", "dataset=beir", "dataset.path='a folder'"],
        ["retriever=hybrid", "dataset=jsonl", "dataset.documents=d.jsonl", "dataset.queries='{split}.jsonl'"],
        ["retriever=dense", "encoder=minilm", "chunking=sentences", "chunking.size=40", "metrics.k_values=[5,20]"],
        ["experiment=tour_dense"],
        ["retriever=http/opensearch", "retriever.base_url=http://x", "retriever.parameters.index=i"],
    ],
    ids=["values", "parts", "groups", "preset", "service"],
)
def test_a_recorded_configuration_is_repeated_exactly(words: list[str]) -> None:
    first = settle_words(words)
    again = settle_words(list(list_overrides(first.public).values()))
    assert config_hash(again.public) == config_hash(first.public)
    assert again.config["retriever"] == first.config["retriever"]
