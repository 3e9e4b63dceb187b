"""The report of one evaluation: measures, missed queries and why, grades, and thresholds."""
