"""Explanations of a difference between two results: tables, Markdown, JSON and a page."""
