"""Explain why a measure differs between two results."""
