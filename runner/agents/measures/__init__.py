"""Measures what an agent retrieved: on one task, over many, and beside another configuration."""
