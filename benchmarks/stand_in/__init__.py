"""A stand-in for a search cluster: millions of generated documents behind the search API of OpenSearch.

    python -m benchmarks.stand_in folder=trial documents=5000000 port=9200

writes queries, judgments and the encoder of the vectors to a folder, and serves the index `articles` until it is
stopped. A document is computed from its number, so nothing is read or stored; five million take about 2 GB of memory.
"""
