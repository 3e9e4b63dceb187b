"""What becomes of results: leaderboards, tables, pages, and the console."""
