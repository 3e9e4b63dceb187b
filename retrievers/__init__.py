"""A library of text retrievers: documents in, rankings out.

It works without the rest of the program:

    from retrievers.base import Corpus
    from retrievers.bm25 import BM25
    from retrievers.store import MemoryStore

    corpus = Corpus(ids=["a", "b"], texts=["a red boat", "a blue house"])
    rankings = BM25().index(corpus, MemoryStore()).search(["red"], k=10)
"""
