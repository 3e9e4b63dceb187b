"""The peer for a BM25 run without logging: read, tokenise, index, search.

usage: python bm25s_alone.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bm25s
import Stemmer

data = Path(sys.argv[1])
documents = [json.loads(line) for line in (data / "corpus.jsonl").open()]
queries = [json.loads(line)["text"] for line in (data / "queries.jsonl").open()]
stemmer = Stemmer.Stemmer("english")
texts = [f"{document['title']} {document['text']}" for document in documents]
tokens = bm25s.tokenize(texts, stemmer=stemmer, stopwords="en", show_progress=False)
index = bm25s.BM25(k1=0.9, b=0.4, backend="numba")
index.index(tokens, show_progress=False)
asked = bm25s.tokenize(queries, stemmer=stemmer, stopwords="en", return_ids=False, show_progress=False)
index.retrieve(asked, k=100, show_progress=False, n_threads=1)
