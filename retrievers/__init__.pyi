from retrievers.base import Corpus as Corpus
from retrievers.base import Rankings as Rankings
from retrievers.composed.fusion import Hybrid as Hybrid
from retrievers.composed.reranked import Reranked as Reranked
from retrievers.encoders.lsa import LSAEncoder as LSAEncoder
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder as SentenceTransformerEncoder
from retrievers.lexical.analyzer import Analyzer as Analyzer
from retrievers.lexical.bm25 import BM25 as BM25
from retrievers.lexical.bm25f import BM25F as BM25F
from retrievers.lexical.sqlite_fts import SqliteFts as SqliteFts
from retrievers.store import MemoryStore as MemoryStore
from retrievers.vectors.dense import Dense as Dense

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
