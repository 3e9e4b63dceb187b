"""Search by words: BM25 and its relatives, and how texts become terms and counts."""
