"""A stand-in for an embedding API, to be served by `FakeLLM`: it bills every text that it answers for."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

DIMENSIONS = 4


def embed(text: str) -> list[float]:
    """Return the vector of a text: always the same, and with 32-bit floats that JSON carries exactly."""
    digest = hashlib.sha256(text.encode()).digest()
    return [digest[i] / 256 + 0.5 for i in range(DIMENSIONS)]


def count_words(text: str) -> int:
    """Return the number of tokens that are billed."""
    return len(text.split())


class EmbeddingService:
    """OpenAI's `/embeddings`. `billed` counts the texts that were answered for, `tokens` those of each answer.

    Before each reply, `before` is called with the number of the request, from 1.
    """

    def __init__(
        self,
        before: Callable[[int], object] = lambda number: None,
        count: Callable[[str], int] = count_words,
        embed: Callable[[str], Any] = embed,
    ) -> None:
        self.billed: Counter[str] = Counter()
        self.requests: list[Sequence[str]] = []
        self.tokens = 0
        self._before, self._count, self._embed, self._lock = before, count, embed, threading.Lock()

    def __call__(self, path: str, body: Any) -> Any:
        """Return the reply to a request."""
        assert path.endswith("/embeddings")
        texts = body["input"]
        with self._lock:
            self.requests.append(texts)
            number = len(self.requests)
        self._before(number)
        tokens = sum(map(self._count, texts))
        with self._lock:
            self.billed.update(texts)
            self.tokens += tokens
        data = [{"object": "embedding", "index": i, "embedding": self._embed(text)} for i, text in enumerate(texts)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}


class ClientKilled(Exception):
    """The client was killed, so that its request is neither answered nor billed."""


def kill(pid: int) -> None:
    """End a process as a power cut would, and wait until it is gone; then raise `ClientKilled`."""
    os.kill(pid, signal.SIGKILL)
    raise ClientKilled


def write_tokenizer(file: Path) -> Path:
    """Write a tokenizer of words, whose count is that of `count_words`."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    tokenizer = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(file))
    return file
