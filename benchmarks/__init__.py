"""Benchmarks of speed and memory against a peer in the same run: `make bench`."""
