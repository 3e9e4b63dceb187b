"""Retrievers made of others: fusion, reranking, expansion of queries, agentic search."""
