"""Measure what an agent retrieved: on one task, over many, and compared with another configuration."""
