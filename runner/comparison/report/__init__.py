"""The report of a comparison, and of its gate."""
