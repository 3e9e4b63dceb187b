"""The report of a sweep: the leaderboard, what a choice is worth, how a search went, and what each setting does."""
