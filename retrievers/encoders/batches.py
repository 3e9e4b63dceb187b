"""Encoding in batches of texts of similar length, bounded by the tokens that they take with padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from retrievers.errors import RetrieverError

R = TypeVar("R")
T = TypeVar("T")


def encode_in_batches(
    encode: Callable[[list[T]], Iterable[R]],
    texts: Sequence[T],
    batch_tokens: int | None,
    model: Any,  # noqa: ANN401 (any class of sentence-transformers)
    **settings: object,
) -> list[R]:
    """Return what `encode` makes of each text, or pair of texts, which it is given in batches (`split_batches`).

    With null `batch_tokens` each text is alone. The open `model` counts tokens, with the `settings` of its
    preprocessing. Raises `RetrieverError` if a batch does not fit in the memory of the device.
    """
    import torch

    batches = [[position] for position in range(len(texts))]
    if batch_tokens is not None and len(texts) > 1:
        batches = split_batches(_count_tokens(model, texts, **settings), batch_tokens)
    results: dict[int, R] = {}
    for batch in batches:
        try:
            results.update(zip(batch, encode([texts[position] for position in batch]), strict=True))
        except torch.cuda.OutOfMemoryError as error:
            raise RetrieverError(
                f"batch_tokens={batch_tokens}: a batch of {len(batch)} texts does not fit in the memory of the device; "
                "set a smaller batch_tokens or max_length, or device=cpu"
            ) from error
    return [results[position] for position in range(len(texts))]


def split_batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Return the positions of texts in batches, given the number of tokens of each text.

    A batch has one text, or takes at most `most` tokens with all texts padded to the longest. The longest texts come
    first, so that a batch that does not fit in memory fails at once.
    """
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= most:
            batches[-1].append(position)
        else:
            batches.append([position])
    return batches


def _count_tokens(model: Any, texts: Sequence[object], **settings: object) -> list[int]:  # noqa: ANN401 (see above)
    """Return how many tokens of each text a model reads; 0 if it pads none."""
    mask = model.preprocess(list(texts), **settings).get("attention_mask")
    return [0] * len(texts) if mask is None else [int(count) for count in mask.sum(1)]
