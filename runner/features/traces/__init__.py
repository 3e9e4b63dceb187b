"""Measure what agents retrieve: recorded traces become retrieval events, and events become measures."""
