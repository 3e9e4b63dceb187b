"""Cross-encoders of sentence-transformers: a model reads a query and a document together, and scores the pair.

The scores of a query's candidates are kept together, and besides, within a process, those of each pair: where other
settings of a first stage, or another depth, bring candidates that were seen before, only the new ones are scored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from threading import Lock

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import RetrieverError
from retrievers.encoders.pretrained import Backend, identify_model, open_model
from retrievers.multistage import QueryLog, report_progress
from retrievers.rerankers.base import CandidateScores, Rerank
from retrievers.store import Arrays, Key, Store, fingerprint

Known = dict[tuple[str, str], tuple[float, float]]
"""The score of a query and a text, and its share of the seconds of the batch in which it was found."""

_MADE_BY = (__name__, "retrievers.encoders.pretrained")


@settings(frozen=True, config={"extra": "forbid"})
class CrossEncoderReranker:
    """Settings of a cross-encoder, which gives one score a pair: its logit, in which nothing saturates.

    `model` is a folder, or a name on the Hugging Face hub, at a `revision`. `max_length` is in tokens of query and
    document together; null is the model's own. A null `device` is the best there is. More pairs than one in a batch
    are quicker on a GPU (on a CPU they are not), and the last digits of a score then depend on its batch.
    """

    model: str = "cross-encoder/ms-marco-MiniLM-L6-v2"
    revision: str | None = None
    max_length: int | None = Field(default=None, ge=8)
    backend: Backend = "torch"
    device: str | None = Field(default=None, repr=False)
    batch_size: int = Field(default=1, ge=1, repr=False)

    def __repr__(self) -> str:
        """Return the settings, and what the model is known by, which changes with the files in its folder."""
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)}, identity={identify_model(self.model, self.revision)!r})"

    def ready(self, store: Store) -> Rerank:
        """Return the function that scores; it opens the model when the first pair is new."""
        identity = identify_model(self.model, self.revision)
        parts = {"model": identity, "max_length": self.max_length, "backend": self.backend}
        live = Key.of("live model", _MADE_BY, device=self.device, **parts)
        return _Scorer(self.batch_size, cache(lambda: store.share(live, partial(_LoadedCrossEncoder, self))), parts)


@dataclass(frozen=True, eq=False)
class _Scorer:
    """The function that scores. `parts` are what a score depends on, besides the two texts."""

    batch_size: int
    model: Callable[[], _LoadedCrossEncoder]
    parts: Mapping[str, object]

    def __call__(
        self, queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store
    ) -> list[CandidateScores]:
        known: Known = store.share(Key.of("live pair scores", _MADE_BY, **self.parts), dict)
        pairs = zip(queries, candidates, strict=True)
        judged = (self._judged(query, texts, known, store) for query, texts in pairs)
        return list(report_progress(judged, "reranked", len(queries)))

    def _judged(self, query: str, texts: Sequence[str], known: Known, store: Store) -> CandidateScores:
        if not texts:
            return CandidateScores(np.zeros(0, dtype=np.float32))
        asked = {"query": fingerprint(query), "texts": fingerprint(*texts)}
        size = {"rows": len(texts), "characters": sum(map(len, texts))}
        key = Key.of("pair scores", _MADE_BY, **asked, **size, **self.parts)
        kept = store.arrays(key, lambda: self._scored(query, texts, known))
        both = zip(kept["scores"].tolist(), kept["seconds"].tolist(), strict=True)
        known.update(zip(((query, text) for text in texts), both, strict=True))
        return CandidateScores(kept["scores"], QueryLog(float(kept["seconds"].sum())))

    def _scored(self, query: str, texts: Sequence[str], known: Known) -> Arrays:
        """Return the scores of a query's candidates and the seconds of each, which only the new ones cost now."""
        if new := [text for text in dict.fromkeys(texts) if (query, text) not in known]:
            known.update(self.model().score(query, new, self.batch_size))
        scores, seconds = zip(*(known[query, text] for text in texts), strict=True)
        return {"scores": np.array(scores, dtype=np.float32), "seconds": np.array(seconds, dtype=np.float32)}


class _LoadedCrossEncoder:
    """An open model, which scores for one thread at a time: its tokenizer is not made for more."""

    def __init__(self, how: CrossEncoderReranker) -> None:
        """Open the model, and score a pair, so that the first query takes no longer than others."""
        from sentence_transformers import CrossEncoder

        model = open_model(CrossEncoder, how.model, how.revision, how.device, how.backend)
        if model.num_labels != 1:
            raise RetrieverError(f"model={how.model}: gives {model.num_labels} scores a pair, and a reranker gives one")
        if how.max_length:
            longest = getattr(model.config, "max_position_embeddings", None)
            if longest and how.max_length > longest:
                raise RetrieverError(f"max_length={how.max_length}: {how.model} reads at most {longest} tokens")
            model.max_seq_length = how.max_length
        self._name, self._model, self._alone = how.model, model, Lock()
        self.score("word", ["word"], 1)

    def score(self, query: str, texts: Sequence[str], batch_size: int) -> Known:
        """Return the score of a query with each text."""
        from torch.nn import Identity

        pairs = [tuple(t.encode("utf-8", "replace").decode() for t in (query, text)) for text in texts]
        with self._alone:
            start = time.perf_counter()
            scores = self._model.predict(
                pairs, batch_size=batch_size, activation_fn=Identity(), show_progress_bar=False
            ).tolist()
            share = (time.perf_counter() - start) / len(texts)
        if not np.isfinite(scores).all():
            raise RetrieverError(f"model={self._name}: gives scores that are no numbers, as of the query {query!r}")
        return {(query, text): (score, share) for text, score in zip(texts, scores, strict=True)}
