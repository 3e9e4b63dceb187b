"""Measures of rankings: what they are called, their values for each query, and what abstaining would do."""
