"""Relate results to each other: comparisons and gates, leaderboards, selected winners, searches.

Nothing here but `report` formats a report.
"""
