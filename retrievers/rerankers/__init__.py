"""Rerankers: they reorder the best hits of another retriever."""
