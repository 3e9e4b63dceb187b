"""Simulations behind the figures of docs/statistics.md, each run by `python -m benchmarks.simulations.NAME`."""
