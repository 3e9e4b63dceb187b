"""Settings that pre-trained models share, and the keys of what they make of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.encoders.backends import Backend, Precision, choose_backend, describe_backend, open_exported
from retrievers.encoders.base import Role, plan_by_role
from retrievers.encoders.batches import PADDING, encode_in_batches
from retrievers.encoders.cuts import Cuts, Length, count_by_role, measure_lengths
from retrievers.encoders.pretrained import (
    check_library,
    identify_model,
    open_model,
    replace_surrogates,
    set_max_length,
)
from retrievers.search import Work
from retrievers.store import Key, Store, fingerprint
from retrievers.work import ENCODING_PLANNED, LIVE_MODEL, WorkKind

if TYPE_CHECKING:
    from retrievers.base import Corpus

M = TypeVar("M")

_SAVED_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""The names under which sentence-transformers looks for the prompt saved with a model."""


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class PretrainedModel:
    """Settings of a model of sentence-transformers.

    `model` is a folder, or a name on the Hugging Face hub, at a `revision`. `max_length` is in tokens; null is the
    model's own. With a null `device` the fastest available one is used. Texts of similar length are encoded in batches
    of at most `batch_tokens` tokens, padding included; null encodes each text alone. The last digits of a result depend
    on the batch. `backend` and `precision` say what runs the model (`retrievers.encoders.backends.choose_backend`).
    """

    model: str
    revision: str | None = None
    max_length: int | None = Field(default=None, ge=1)
    backend: Backend = "auto"
    precision: Precision = "fp32"
    device: str | None = Field(default=None, repr=False)
    batch_tokens: int | None = Field(default=None, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_library()
        # The settings name the backend that runs, so that results of two backends are kept apart.
        object.__setattr__(self, "backend", choose_backend(self.backend, self.precision, self.device))

    def __repr__(self) -> str:
        """Return the settings and the identity of the model, which changes with the files in its folder."""
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)}, identity={self.identity!r})"

    @property
    def identity(self) -> str:
        """Return the identity of the model."""
        return identify_model(self.model, self.revision)

    def open_with(self, library_class: Callable[..., M], store: Store) -> M:
        """Open the model with a class of sentence-transformers; the store keeps its export to another backend."""
        if self.backend == "torch":
            model: Any = open_model(library_class, self.model, self.revision, self.device)
        else:
            names = (self.model, self.revision, self.identity)
            model = open_exported(library_class, *names, self.backend, self.precision, store)
        set_max_length(model, self.model, self.max_length)
        opened: M = model
        return opened


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class PromptedModel(PretrainedModel):
    """Settings of a model that encodes queries and documents.

    A prompt is put before every text; null is the one saved with the model, if any. What a model makes of documents is
    stored in shards, and that of queries together. `WORK` is the kind of work for texts in each role. `MADE_BY` is
    the module that encodes; a class without one of its own encodes in its own module.
    """

    WORK: ClassVar[Mapping[Role, WorkKind]]
    MADE_BY: ClassVar[str]

    query_prompt: str | None = None
    document_prompt: str | None = None

    @property
    def made_by(self) -> str:
        """Return the module that encodes."""
        made_by: str = vars(type(self)).get("MADE_BY", type(self).__module__)
        return made_by

    def get_prompt(self, role: Role) -> str | None:
        """Return the prompt of texts in a role, None for the one saved with the model."""
        return self.query_prompt if role == "query" else self.document_prompt

    def list_parts(self, role: Role) -> dict[str, object]:
        """Return what the result for texts in a role depends on, besides the texts."""
        model = {"model": self.identity, "max_length": self.max_length, "prompt": repr(self.get_prompt(role))}
        return {**model, **describe_backend(self.backend, self.precision)}

    def build_key(self, role: Role, texts: Sequence[str]) -> Key:
        """Return the key of what the model makes of texts in a role."""
        size = {"rows": len(texts), "characters": sum(map(len, texts))}
        parts = {"texts": fingerprint(*texts), **size, **self.list_parts(role)}
        return Key.of(self.WORK[role], self.made_by, **parts)

    def build_live_key(self) -> Key:
        """Return the key of the open model."""
        options = {"max_length": self.max_length, "device": self.device}
        options |= {"backend": self.backend, "precision": self.precision}
        return Key.of(LIVE_MODEL, self.made_by, product=self.WORK["document"].name, model=self.identity, **options)

    def plan_encoding(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the encoding of each shard of documents, then that of the queries, as work."""
        roles = {"as query": self.list_parts("query"), "as document": self.list_parts("document")}
        parts = {**corpus.key_parts, "queries": fingerprint(*queries), **roles}
        key = Key.of(ENCODING_PLANNED, self.made_by, **parts)
        return store.share(key, lambda: plan_by_role(corpus, queries, self.build_key, self.build_live_key()))

    def open_model(self, store: Store) -> Any:  # noqa: ANN401 (any class of sentence-transformers)
        """Return the open model, which all who need it share through the store."""
        return store.share(self.build_live_key(), partial(self._open, store))

    def _open(self, store: Store) -> Any:  # noqa: ANN401 (any class of sentence-transformers)
        """Open the model."""
        raise NotImplementedError

    def count_cuts(self, corpus: Corpus, queries: Sequence[str], store: Store) -> dict[str, float]:
        """Return what the model cuts from documents and queries (`retrievers.encoders.cuts`)."""

        def count(role: Role, texts: Sequence[str]) -> Cuts:
            return Cuts.of(self.measure_lengths(self.open_model(store), role, texts))

        return count_by_role(corpus, queries, self.build_key, count, self.made_by, store)

    def measure_lengths(self, model: Any, role: Role, texts: Sequence[str]) -> list[Length]:  # noqa: ANN401 (see above)
        """Return the tokens of each text with its prompt, and how many of these an open model does not read."""
        prompt = self._find_prompt(model, role) or ""
        return measure_lengths(model, [f"{prompt}{replace_surrogates(text)}" for text in texts], role)

    def _find_prompt(self, model: Any, role: Role) -> str | None:  # noqa: ANN401 (see above)
        """Return the prompt of texts in a role, the one saved with the open model if the settings have none."""
        prompt = self.get_prompt(role)
        saved = getattr(model, "prompts", None) or {}
        return prompt if prompt is not None else next((saved[n] for n in _SAVED_PROMPTS[role] if n in saved), None)

    def encode_texts(
        self,
        model: Any,  # noqa: ANN401 (any class of sentence-transformers)
        role: Role,
        texts: Sequence[str],
        encode: Callable[..., Any],
        **options: object,
    ) -> list[Any]:
        """Return what an open model makes of each text in a role, by its method `encode`, in batches."""
        prompt, counted = self.get_prompt(role), self._find_prompt(model, role)
        longest, padding = getattr(model, "max_seq_length", None), None
        if role == "document" and str(getattr(model, "device", None)) == "cpu" and longest and longest % PADDING == 0:
            padding = PADDING
            options["processing_kwargs"] = {"text": {"pad_to_multiple_of": padding}}

        def encode_batch(batch: list[str]) -> Sequence[Any]:
            results: Sequence[Any] = encode(
                batch, prompt=prompt, batch_size=len(batch), show_progress_bar=False, **options
            )
            return results

        cleaned = [replace_surrogates(text) for text in texts]
        return encode_in_batches(encode_batch, cleaned, self.batch_tokens, model, padding, prompt=counted, task=role)
