"""Measures of rankings: their names, their values for each query, and the effect of abstaining."""
