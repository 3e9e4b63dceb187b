"""Models behind APIs, with retries, rate limits, a budget, prices, a ledger and a cache.

Language models use the SDKs of their providers; embeddings and rerankers use HTTP.

The modules here decide how a question is sent and paid for, not what is asked or what an answer means.
"""
