"""Reports of agents' runs: configurations, comparisons between them, and the way of each through the files."""
