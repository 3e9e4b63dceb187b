"""Encoding in batches of texts of similar length, bounded by the tokens that they take with padding."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from retrievers.errors import RetrieverError

logger = logging.getLogger("retrievers")

PADDING = 8
"""The multiple of tokens to which documents are padded on a CPU.

A model pads the texts of a batch to the longest, and the last digits of a vector depend on the padded length, though
not on the other texts. With batches of one length, the vector of a text is always the same, in whichever shard it is.
"""

R = TypeVar("R")
T = TypeVar("T")


def encode_in_batches(
    encode: Callable[[list[T]], Iterable[R]],
    texts: Sequence[T],
    batch_tokens: int | None,
    model: Any,  # noqa: ANN401 (any class of sentence-transformers)
    padding: int | None = None,
    **settings: object,
) -> list[R]:
    """Return what `encode` makes of each text, or pair of texts, which it is given in batches (`split_batches`).

    With null `batch_tokens` each text is alone; equal texts are encoded once. The open `model` counts tokens, with the
    `settings` of its preprocessing. Unless `padding` is null, `encode` pads texts to a multiple of it in tokens, and a
    batch has texts of one padded length. A batch that does not fit in the memory of the device is halved. Raises
    `RetrieverError` if a single text does not fit.
    """
    given, texts = texts, list(dict.fromkeys(texts))
    batches = [[position] for position in range(len(texts))]
    if batch_tokens is not None and len(texts) > 1:
        longest = getattr(model, "max_seq_length", None)
        # On a GPU, counting takes as long as encoding, because both wait for the tokenizer; so no tokens are counted
        # where any texts fit.
        if not padding and longest and len(texts) * longest <= batch_tokens:
            batches = [list(range(len(texts)))]
        else:
            batches = split_batches(_count_tokens(model, texts, **settings), batch_tokens, padding)
    waiting = batches[::-1]
    results: dict[int, R] = {}
    while waiting:
        batch = waiting.pop()
        encoded = _encode_if_it_fits(encode, [texts[position] for position in batch])
        if encoded is not None:
            results.update(zip(batch, encoded, strict=True))
            continue
        if len(batch) == 1:
            raise RetrieverError(
                f"batch_tokens={batch_tokens}: a single text does not fit in the memory of the device; set a smaller "
                "max_length, or device=cpu"
            )
        # The remaining batches take as much memory as this one, so they are halved, too, instead of failing first.
        size = len(batch) // 2
        waiting = [part for other in [*waiting, batch] for part in _split(other, size)]
        logger.warning(
            "a batch of %d texts does not fit in the memory of the device; continuing with at most %d (set a smaller "
            "batch_tokens)",
            len(batch),
            size,
        )
    positions = {text: position for position, text in enumerate(texts)}
    return [results[positions[text]] for text in given]


def _encode_if_it_fits(encode: Callable[[list[T]], Iterable[R]], texts: list[T]) -> list[R] | None:
    """Return what `encode` makes of a batch, None if it does not fit in the memory of the device."""
    import torch

    try:
        return list(encode(texts))
    except torch.cuda.OutOfMemoryError:
        # The freed blocks are too small for the next batch as long as PyTorch keeps them for itself.
        torch.cuda.empty_cache()
        return None


def _split(batch: list[int], size: int) -> list[list[int]]:
    """Return a batch in parts of at most `size` texts, the last part first."""
    return [batch[start : start + size] for start in range(0, len(batch), size)][::-1]


def split_batches(lengths: Sequence[int], most: int, padding: int | None = None) -> list[list[int]]:
    """Return the positions of texts in batches, given the number of tokens of each text.

    A batch has one text, or takes at most `most` tokens with all texts padded to the longest, or to a multiple of
    `padding`, which is then the same for all of its texts. The longest texts come first, so that a batch that does not
    fit in memory fails at once.
    """
    padded = [-(-length // padding) * padding for length in lengths] if padding else lengths
    batches: list[list[int]] = []
    for position in sorted(range(len(padded)), key=lambda position: -padded[position]):
        longest = padded[batches[-1][0]] if batches else 0
        fits = batches and (len(batches[-1]) + 1) * longest <= most
        if fits and (not padding or padded[position] == longest):
            batches[-1].append(position)
        else:
            batches.append([position])
    return batches


def _count_tokens(model: Any, texts: Sequence[object], **settings: object) -> list[int]:  # noqa: ANN401 (see above)
    """Return how many tokens of each text a model reads; 0 if it pads none."""
    mask = model.preprocess(list(texts), **settings).get("attention_mask")
    return [0] * len(texts) if mask is None else [int(count) for count in mask.sum(1)]
