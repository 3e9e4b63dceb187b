"""Language models: providers through their own SDKs, with retries, rate limits, a budget, a ledger and a cache.

The room decides how a question is sent and paid for, not what is asked or what an answer means.
"""
