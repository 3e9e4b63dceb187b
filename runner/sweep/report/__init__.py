"""The report of a sweep: the leaderboard, the selected winner, the search, and the effects of settings."""
