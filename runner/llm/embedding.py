"""Embed texts by an API, paying for each text once.

Every vector is stored in the ledger, in the transaction that settles its call; its key depends only on the model, the
settings and the text. If another process is already paying for a text, this one waits for it.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, RetrieverError
from retrievers.encoders.base import Embedded, Vectors
from retrievers.encoders.cuts import REFUSING, UNKNOWN_CUTS, Cuts, Length, count_by_role
from retrievers.extras import check_installed
from retrievers.files import hash_file
from retrievers.llm.chat import BudgetSpent, ChatError
from retrievers.progress import REPORT_INTERVAL_S
from retrievers.services.templates import fill_template, get_path
from retrievers.store import Key, Store, fingerprint
from retrievers.threads import map_threads
from retrievers.work import DOCUMENT_VECTORS, QUERY_VECTORS
from runner.llm.api_model import API_ACCESS, STOP, Answer, ModelRequest
from runner.llm.client import TEMPLATE_TOKENS
from runner.llm.faults import fault_of_form
from runner.llm.http_model import HttpModel, read_items, to_floats
from runner.llm.ledger import open_ledger

RESULTS_VERSION = "embedding API 1"

Role = Literal["document", "query"]

REQUEST = {"model": "{model}", "input": "{texts}", "dimensions": "{dimensions}"}
"""The default request: OpenAI's."""

PURPOSE = "embed"

_IDENTITY = ("model", "base_url", "path", "request", "text", "vectors", "vector", "dimensions", "truncation")
"""The settings in the key of a vector, besides its input type and its text."""

logger = logging.getLogger("retrievers")


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class ApiEncoder(HttpModel):
    """Settings of embeddings from an API, by default one like OpenAI's `/embeddings`.

    `{texts}` in the request is the list of texts, each in the form of `text`; `{input_type}` is `document_type` or
    `query_type`, and `{dimensions}` and `{truncation}` are those settings. A prompt is put before each text.

    `vectors` is the path of the list of vectors in a reply. In each of them, `vector` is the path of the numbers (a
    list, or base64 of 32-bit floats), and `position` that of the position of its text; null if they are in the order of
    the texts.

    A request has at most `batch_size` texts and `batch_tokens` tokens. Tokens are counted with `tokenizer`: a file
    tokenizer.json, or the folder that contains it. Without one, each byte counts as a token, which is an upper bound,
    and costs are planned from earlier calls. A text is cut after `max_length` tokens before it is sent.
    """

    access: ClassVar[Access] = replace(API_ACCESS, paths=(*API_ACCESS.paths, "tokenizer"))
    usual_key: ClassVar[str] = "OPENAI_API_KEY"
    group: ClassVar[str] = "encoder"
    label: ClassVar[str] = "embeddings"

    path: str = "/embeddings"
    text: Any = "{text}"
    vectors: str = "data"
    vector: str = "embedding"
    position: str | None = Field(default="index", repr=False)
    tokens: str | None = Field(default="usage.prompt_tokens?", repr=False)
    dimensions: int | None = Field(default=None, ge=1)
    document_type: str | None = None
    query_type: str | None = None
    document_prompt: str = ""
    query_prompt: str = ""
    truncation: bool | str | None = None
    max_length: int | None = Field(default=None, ge=1)
    tokenizer: str | None = Field(default=None, repr=False)
    batch_size: int = Field(default=32, ge=1, repr=False)
    batch_tokens: int = Field(default=100_000, ge=1, repr=False)

    @model_validator(mode="after")
    def _check_tokenizer(self) -> Self:
        if self.tokenizer is not None:
            check_installed("tokenizers", "tokenizers", "dense")
            if not _find_tokenizer(self.tokenizer).is_file():
                raise ValueError(
                    f"tokenizer={self.tokenizer}: no such file; set the path of a tokenizer.json, or null to count "
                    "bytes"
                )
        elif self.max_length is not None:
            raise ValueError(f"max_length={self.max_length}: needs a tokenizer; set the path of a tokenizer.json")
        return self

    def __repr__(self) -> str:
        """Return the settings that affect a vector, including a hash of the tokenizer if it cuts texts."""
        shown = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr]
        if self.tokenizer is not None and self.max_length is not None:
            shown.append(f"tokenizer={hash_file(_find_tokenizer(self.tokenizer))!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def template(self) -> Mapping[str, Any]:
        """Return the request with its placeholders."""
        return self.request or REQUEST

    @property
    def address(self) -> str:
        """Return the address of the server, by default OpenAI's."""
        return self.base_url or "https://api.openai.com/v1"

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus, which are paid for on first use."""

        def queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
            return self.load_vectors(texts, "query"), np.full(len(texts), np.nan, dtype=np.float32)

        return Embedded(_CorpusVectors(self, corpus), queries)

    def count_cuts(self, corpus: Corpus, queries: Sequence[str], store: Store) -> dict[str, float]:
        """Return what is cut before it is sent; {} without `max_length`, as a service does not say what it cuts."""
        if self.max_length is None:
            return {}

        def build_key(role: Role, texts: Sequence[str]) -> Key:
            kind = QUERY_VECTORS if role == "query" else DOCUMENT_VECTORS
            return Key.of(kind, __name__, texts=fingerprint(*texts), encoder=repr(self))

        def count(role: Role, texts: Sequence[str]) -> Cuts:
            counter = _TokenCounter.of(self)
            return Cuts.of([counter.measure(text) for text in self._list_sent(texts, role) if text.strip()])

        return count_by_role(corpus, queries, build_key, count, __name__, store)

    def describe_silent_cuts(self) -> str:
        """Return that the service may cut texts, with a remedy; "" if they are cut here, or refused by the service."""
        if self.max_length is not None or self.truncation in REFUSING:
            return ""
        return (
            f"encoder.model={self.model}: {UNKNOWN_CUTS}; set encoder.tokenizer and encoder.max_length to cut texts "
            "here and count them"
        )

    def _list_sent(self, texts: Sequence[str], role: Role) -> list[str]:
        """Return texts with their prompt and without lone surrogates; blank ones stay as they are."""
        prompt = self.document_prompt if role == "document" else self.query_prompt
        return [(prompt + text).encode("utf-8", "replace").decode() if text.strip() else text for text in texts]

    def list_texts(self, texts: Sequence[str], role: Role) -> list[PaidText | None]:
        """Return the texts as they are sent; None for a blank one, which is not sent and has a vector of zeros."""
        kind = self.document_type if role == "document" else self.query_type
        identity = fingerprint(*(f"{name}={getattr(self, name)!r}" for name in _IDENTITY), f"input_type={kind!r}")
        counter = _TokenCounter.of(self)
        prepared: list[PaidText | None] = []
        for text in self._list_sent(texts, role):
            if not text.strip():
                prepared.append(None)
                continue
            sent, tokens = counter.cut(text)
            prepared.append(PaidText(fingerprint(identity, sent), sent, kind, tokens))
        return prepared

    def split_batches(self, texts: Sequence[PaidText]) -> Iterator[list[PaidText]]:
        """Yield texts in batches for sending; a text with more tokens than `batch_tokens` is sent alone."""
        batch: list[PaidText] = []
        tokens = 0
        for text in texts:
            if batch and (len(batch) == self.batch_size or tokens + text.tokens > self.batch_tokens):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += text.tokens
        if batch:
            yield batch

    def load_vectors(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text, zeros for a blank one; texts without a vector are paid for.

        Raises `RetrieverError` if that fails. The vectors of answered calls are kept.
        """
        prepared = self.list_texts(texts, role)
        rows: dict[str, list[int]] = {}
        wanted: dict[str, PaidText] = {}
        for row, text in enumerate(prepared):
            if text is not None:
                rows.setdefault(text.key, []).append(row)
                wanted[text.key] = text
        self._pay(wanted)
        vectors: Vectors = np.zeros((len(texts), 0), dtype=np.float32)
        for key, content in open_ledger(self.ledger).recall_vectors(list(wanted)):
            vector = np.frombuffer(content, dtype=np.float32)
            if not vectors.shape[1]:
                vectors = np.zeros((len(texts), len(vector)), dtype=np.float32)
            if len(vector) != vectors.shape[1]:
                small, large = sorted((vectors.shape[1], len(vector)))
                raise RetrieverError(
                    f"encoder.model={self.model}: returned vectors of {small:,} and of {large:,} dimensions; set "
                    "encoder.dimensions, or encoder.ledger to a new file"
                )
            vectors[rows[key]] = vector
        return vectors

    def _pay(self, wanted: Mapping[str, PaidText]) -> None:
        """Embed all texts that have no vector yet; those that other processes have claimed are waited for."""
        for missing in self.iter_missing(list(wanted)):
            work = _EmbeddingRun(self)
            batches = self.split_batches([wanted[key] for key in missing])
            began = time.monotonic()
            try:
                for _ in map_threads(work.embed, batches, self.concurrency):
                    if work.done < len(missing) and time.monotonic() - began >= REPORT_INTERVAL_S:
                        began = time.monotonic()
                        logger.info("embedded %s of %s texts", f"{work.done:,}", f"{len(missing):,}")
            finally:
                work.stop.set()
            if work.errors:
                left = len(open_ledger(self.ledger).find_missing(list(wanted)))
                place = "" if isinstance(work.errors[0], BudgetSpent) else "encoder: "
                raise RetrieverError(
                    f"{place}{work.errors[0]}; {len(wanted) - left:,} of {len(wanted):,} texts are embedded and kept "
                    "for the next run"
                ) from work.errors[0]


@dataclass(frozen=True)
class PaidText:
    """A text as it is sent: the key of its vector, its input type, and its number of tokens, or an upper bound."""

    key: str
    text: str
    input_type: str | None
    tokens: int


class _EmbeddingRun:
    """Embeds batches in threads. After an error, no further batch is sent."""

    def __init__(self, encoder: ApiEncoder) -> None:
        self._encoder = encoder
        self.stop = threading.Event()
        self.errors: list[ChatError] = []
        self.done = 0

    def embed(self, batch: Sequence[PaidText]) -> None:
        """Embed the texts of a batch that no other process has claimed, and store their vectors."""
        if self.stop.is_set():
            return
        encoder, before = self._encoder, STOP.set(self.stop)
        try:
            texts = {text.key: text for text in batch}
            encoder.call_for_missing(list(texts), lambda keys: _build_request(encoder, [texts[key] for key in keys]))
            self.done += len(batch)
        except ChatError as error:
            self.errors.append(error)
            self.stop.set()
        finally:
            STOP.reset(before)


def _build_request(encoder: ApiEncoder, texts: Sequence[PaidText]) -> ModelRequest:
    size = sum(len(text.text.encode()) for text in texts)
    most = sum(text.tokens for text in texts)

    def send() -> Answer:
        items = [fill_template(encoder.text, {**_list_values(encoder, texts[0]), "text": text.text}) for text in texts]
        reply = encoder.post(**_list_values(encoder, texts[0]), texts=items)
        try:
            return _read_answer(encoder, texts, reply)
        except (LookupError, TypeError, ValueError) as error:
            raise fault_of_form(f"{error}: {reply}") from error

    return ModelRequest(send, PURPOSE, most, encoder.nanos((most, 0)), texts[0].key, size=size)


def _list_values(encoder: ApiEncoder, text: PaidText) -> dict[str, object]:
    settings = {"dimensions": encoder.dimensions, "truncation": encoder.truncation, "input_type": text.input_type}
    return {"model": encoder.model, **settings}


def _read_answer(encoder: ApiEncoder, texts: Sequence[PaidText], reply: object) -> Answer:
    vectors = {
        texts[position].key: _read_vector(get_path(item, encoder.vector))
        for position, item in read_items(reply, encoder.vectors, encoder.position, len(texts))
    }
    if len(set(map(len, vectors.values()))) > 1:
        raise ValueError("the vectors have different lengths")
    if not any(vector.any() for vector in vectors.values()):
        raise ValueError("all vectors are zero, although no text is blank")
    tokens = encoder.count_billed(reply, encoder.tokens)
    return Answer(tokens=None if tokens is None else (tokens, 0), vectors={k: v.tobytes() for k, v in vectors.items()})


def _read_vector(value: object) -> NDArray[np.float32]:
    return to_floats(np.frombuffer(base64.b64decode(value), dtype="<f4") if isinstance(value, str) else value)


class _CorpusVectors(Sequence[Vectors]):
    """The vectors of a corpus as one shard, paid for and loaded on first use."""

    def __init__(self, encoder: ApiEncoder, corpus: Corpus) -> None:
        self._encoder, self._corpus = encoder, corpus

    def __len__(self) -> int:
        return 1

    def __getitem__(self, position: Any) -> Any:  # noqa: ANN401 (an index or a slice)
        return [self._vectors][position]

    @cached_property
    def _vectors(self) -> Vectors:
        return self._encoder.load_vectors(list(self._corpus.contents()), "document")


class _TokenCounter:
    """Counts and cuts tokens; without a tokenizer, each byte is a token, plus a fixed number of tokens per text."""

    def __init__(self, tokenizer: Any, max_length: int | None) -> None:  # noqa: ANN401 (has no types)
        self._tokenizer, self._max_length = tokenizer, max_length

    @classmethod
    def of(cls, encoder: ApiEncoder) -> _TokenCounter:
        return cls(_load_tokenizer(encoder.tokenizer) if encoder.tokenizer else None, encoder.max_length)

    def measure(self, text: str) -> Length:
        """Return the tokens of a text, and how many of them are cut."""
        tokens = len(self._tokenizer.encode(text).ids)
        return Length(tokens, tokens - self.cut(text)[1])

    def cut(self, text: str) -> tuple[str, int]:
        """Return a text, cut if it is too long, and its number of tokens."""
        if self._tokenizer is None:
            return text, len(text.encode()) + TEMPLATE_TOKENS
        encoding = self._tokenizer.encode(text)
        while self._max_length is not None and len(encoding.ids) > self._max_length:
            excess = len(encoding.ids) - self._max_length
            ends = [end for start, end in encoding.offsets if end > start]
            if len(ends) <= excess:  # only special tokens would be left
                break
            text = text[: ends[-excess - 1]]
            encoding = self._tokenizer.encode(text)
        return text, len(encoding.ids)


def _find_tokenizer(path: str) -> Path:
    place = Path(path).expanduser()
    return place / "tokenizer.json" if place.is_dir() else place


@cache
def _load_tokenizer(path: str) -> Any:  # noqa: ANN401 (has no types)
    from tokenizers import Tokenizer

    file = _find_tokenizer(path)
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no specific errors
        raise RetrieverError(f"encoder.tokenizer={file}: cannot be read ({error})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
