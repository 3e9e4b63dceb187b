"""Relate results to each other: comparisons and gates, leaderboards, selected winners, searches.

Nothing here formats a report; see `runner.reports`.
"""
