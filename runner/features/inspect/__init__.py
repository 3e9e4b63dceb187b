"""Inspect the quality of a dataset."""
