"""Reports about agents' runs: configurations, comparisons between them, and timelines of the files they visit."""
