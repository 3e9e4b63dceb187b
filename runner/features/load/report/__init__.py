"""The report of a load test."""
