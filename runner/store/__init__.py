"""Cached work: the store, its entries on disk or in an object store, and their locks."""
