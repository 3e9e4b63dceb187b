"""Simulations behind the figures of docs/explanations, each run by `python -m benchmarks.simulations.NAME`."""
