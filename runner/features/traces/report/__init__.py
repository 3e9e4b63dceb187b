"""Reports about agents' runs: configurations, and timelines of the files they visit."""
