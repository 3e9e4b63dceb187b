"""A library of text retrievers: documents in, rankings out.

It works without the rest of the program:

    from retrievers import BM25, Corpus, MemoryStore

    corpus = Corpus(ids=["a", "b"], texts=["a red boat", "a blue house"])
    rankings = BM25().index(corpus, MemoryStore()).search(["red"], k=10)

The names below are loaded when they are used, so that an import of one retriever loads no other. `__init__.pyi` has
their types.
"""

import importlib

_PLACES = {
    "BM25": "lexical.bm25",
    "BM25F": "lexical.bm25f",
    "LSAEncoder": "encoders.lsa",
    "Analyzer": "lexical.analyzer",
    "Corpus": "base",
    "Dense": "vectors.dense",
    "Hybrid": "composed.fusion",
    "MemoryStore": "store",
    "Rankings": "base",
    "Reranked": "composed.reranked",
    "SentenceTransformerEncoder": "encoders.sentence_transformer",
    "SqliteFts": "lexical.sqlite_fts",
}

__all__ = [
    "BM25",
    "BM25F",
    "Analyzer",
    "Corpus",
    "Dense",
    "Hybrid",
    "LSAEncoder",
    "MemoryStore",
    "Rankings",
    "Reranked",
    "SentenceTransformerEncoder",
    "SqliteFts",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
