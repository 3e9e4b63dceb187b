"""The calls of Qdrant's engine for words: how they are stored and queried, and their fusion with vectors.

BM25 is scored in one of two ways: as sparse vectors, whose weights are computed when the index is built, or by a text
index, which stores counts and is scored at search time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import qdrant_edge

ScoringQuery = Any
"""A query of the engine for words; its stubs have no name for it at run time."""

FIELD = "words"
"""The name of the sparse vectors, and of the text in the payload."""

Language = Literal[
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian", "norwegian",
    "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
]  # fmt: skip
"""Languages that the engine has both stop words and a stemmer for."""

_COUNTING = 1e6
"""A saturation so high that the weight of a term equals its count to within a millionth."""


@dataclass(frozen=True)
class SparseSettings:
    """The settings of the weights of sparse vectors; a mean length of None stands for that of the corpus."""

    k1: float
    b: float
    mean_length: float | None


@dataclass(frozen=True)
class WordSettings:
    """How words are stored: in a text index, or in sparse vectors."""

    language: Language | None
    sparse: SparseSettings | None = None


class Words:
    """The words of documents and queries, as the engine stores and searches them."""

    def __init__(self, settings: WordSettings, texts: Sequence[str]) -> None:
        self._settings, self.texts = settings, [_clean(text) for text in texts]

    @property
    def sparse_vectors(self) -> dict[str, qdrant_edge.EdgeSparseVectorParams]:
        """Return the configuration of sparse vectors; a text index leaves them empty."""
        import qdrant_edge as engine

        return {FIELD: engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)}

    @property
    def text_index(self) -> qdrant_edge.TextIndexParams | None:
        """Return the configuration of the text index, None for sparse vectors."""
        import qdrant_edge as engine

        if self._settings.sparse is not None:
            return None
        if self._settings.language is None:
            return engine.TextIndexParams(scoring=True)
        language = self._settings.language.capitalize()
        stemmer = engine.SnowballParams(getattr(engine.SnowballLanguage, language))
        return engine.TextIndexParams(scoring=True, stemmer=stemmer, stopwords=getattr(engine.Language, language))

    def create_points(self, places: range, vectors: Mapping[int, list[float]]) -> list[qdrant_edge.Point]:
        """Return documents as points, with the vectors of those that have one."""
        import qdrant_edge as engine

        points = []
        for place in places:
            stored: dict[str, Any] = {"": vectors[place]} if place in vectors else {}
            if self._model is not None:
                stored[FIELD] = self._model.embed_document(self.texts[place])
            points.append(engine.Point(place, stored, {FIELD: self.texts[place]} if self._model is None else None))
        return points

    def parse_query(self, text: str, k1: float, b: float) -> ScoringQuery | None:
        """Return the words of a query for the engine; `k1` and `b` apply to a text index. None without words."""
        import qdrant_edge as engine

        if self._model is None:
            return engine.TextQuery(FIELD, _clean(text), engine.Bm25Params(k=k1, b=b))
        words = self._model.embed_query(_clean(text))
        return engine.Query.Nearest(words, using=FIELD) if words.indices else None

    @cached_property
    def _model(self) -> qdrant_edge.Bm25 | None:
        """Return the model of the weights of sparse vectors."""
        sparse = self._settings.sparse
        if sparse is None:
            return None
        mean_length = sparse.mean_length or self._measure_length()
        return self._create_model(sparse.k1, sparse.b, mean_length)

    def _measure_length(self) -> float:
        """Return the mean number of words of the texts with any, as the engine counts them."""
        counting = self._create_model(_COUNTING, 0.0, 1.0)
        lengths = [length for text in self.texts if (length := sum(counting.embed_document(text).values))]
        return sum(lengths) / len(lengths) if lengths else 1.0

    def _create_model(self, k1: float, b: float, mean_length: float) -> qdrant_edge.Bm25:
        import qdrant_edge as engine

        language = self._settings.language
        options: dict[str, Any] = {"language": language}
        if language is None:
            options = {"stemmer": engine.DisabledStemmer(), "stopwords": engine.StopwordsSet(custom=set())}
        return engine.Bm25(engine.Bm25Config(k=k1, b=b, avg_len=mean_length, **options))


def _clean(text: str) -> str:
    """Return a text that the engine accepts: without lone surrogates."""
    return text.encode("utf-8", "replace").decode()
