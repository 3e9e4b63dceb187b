"""Batches of texts of similar length: what they hold, and that they change no result beyond its last digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus, RetrieverError
from retrievers.encoders.batches import encode_in_batches, split_batches
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.store import MemoryStore, NoStore
from tests.retrievers.composed.test_reranked import saved
from tests.retrievers.encoders.test_encoders import documents


@given(st.lists(st.integers(0, 300)), st.integers(1, 1000))
def test_a_batch_is_bounded_by_its_padded_tokens_and_longer_texts_come_first(lengths: list[int], most: int) -> None:
    batches = split_batches(lengths, most)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    in_order = [lengths[position] for batch in batches for position in batch]
    assert in_order == sorted(lengths, reverse=True)
    assert all(len(batch) == 1 or len(batch) * lengths[batch[0]] <= most for batch in batches)
    assert all((len(batch) + 1) * lengths[batch[0]] > most for batch in batches[:-1])


class Words:
    """A model that reads a token for each word."""

    def preprocess(self, texts: Sequence[str]) -> dict[str, Any]:
        return {"attention_mask": np.array([[word < len(text.split()) for word in range(9)] for text in texts])}


def test_results_come_in_the_order_of_the_texts() -> None:
    batches: list[list[str]] = []

    def encode(batch: list[str]) -> list[str]:
        batches.append(batch)
        return [text.upper() for text in batch]

    texts = ["a", "a b c", "b", "b c", "c", "c d e"]
    assert encode_in_batches(encode, texts, 6, Words()) == [text.upper() for text in texts]
    assert batches == [["a b c", "c d e"], ["b c", "a", "b"], ["c"]]
    batches.clear()
    encode_in_batches(encode, texts, None, Words())
    assert batches == [[text] for text in texts]


def test_no_tokens_are_counted_where_any_texts_fit() -> None:
    class Short:
        max_seq_length = 4

    texts = ["a", "b", "c"]
    assert encode_in_batches(lambda batch: [len(batch)] * len(batch), texts, 12, Short()) == [3, 3, 3]
    with pytest.raises(AttributeError, match="preprocess"):  # counts
        encode_in_batches(lambda batch: batch, texts, 11, Short())


def test_a_batch_that_does_not_fit_on_the_device_is_halved(caplog: pytest.LogCaptureFixture) -> None:
    import torch

    batches: list[list[str]] = []

    def encode(batch: list[str]) -> list[str]:
        batches.append(batch)
        if len(batch) > 3:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return [text.upper() for text in batch]

    texts = [f"{letter} x" for letter in "abcdefghijklmn"]
    assert encode_in_batches(encode, texts, 16, Words()) == [text.upper() for text in texts]
    assert [len(batch) for batch in batches] == [8, 4, 2, 2, 2, 2, 2, 2, 2]
    assert [record.message for record in caplog.records if "at most 4" in record.message]


def test_a_text_that_does_not_fit_on_the_device_names_the_settings() -> None:
    import torch

    def encode(batch: list[str]) -> list[str]:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(RetrieverError, match=r"batch_tokens=6: a single text does not fit .*max_length, or device=cpu"):
        encode_in_batches(encode, ["a b", "c"], 6, Words())


def test_vectors_of_a_batch_are_those_of_texts_encoded_alone() -> None:
    texts = [" ".join(["harbour", "ships", "and", "ferries"][: 1 + i % 4] * (1 + i % 5)) for i in range(12)] + [""]
    alone, together = (documents(SentenceTransformerEncoder(batch_tokens=n), texts) for n in (1, 100))
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert not together[-1].any()


def test_pairs_of_several_queries_are_scored_in_one_batch(
    harbour: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import CrossEncoder

    batches: list[list[tuple[str, str]]] = []
    predict = CrossEncoder.predict

    def note(self: Any, pairs: list[tuple[str, str]], **options: Any) -> Any:
        batches.append(pairs)
        return predict(self, pairs, **options)

    monkeypatch.setattr(CrossEncoder, "predict", note)
    model, queries, texts = saved(tmp_path), ["ships and ferries", "a lighthouse"], list(harbour.contents())
    alone, together = (
        CrossEncoderReranker(model, batch_tokens=n).open(MemoryStore())(queries, [texts] * 2, NoStore())
        for n in (None, 100_000)
    )
    del batches[0], batches[12]  # the pair that a model is opened with
    assert [len(batch) for batch in batches] == [*[1] * 12, 12]
    assert {query for query, _ in batches[-1]} == set(queries)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other.scores, one.scores, atol=1e-5)
        assert other.log.seconds > 0
