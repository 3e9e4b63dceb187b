from retrievers.analyzer import Analyzer as Analyzer
from retrievers.base import Corpus as Corpus
from retrievers.base import Rankings as Rankings
from retrievers.bm25 import BM25 as BM25
from retrievers.bm25f import BM25F as BM25F
from retrievers.dense import Dense as Dense
from retrievers.encoders.lsa import LSAEncoder as LSAEncoder
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder as SentenceTransformerEncoder
from retrievers.fusion import Hybrid as Hybrid
from retrievers.reranked import Reranked as Reranked
from retrievers.sqlite_fts import SqliteFts as SqliteFts
from retrievers.store import MemoryStore as MemoryStore

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
