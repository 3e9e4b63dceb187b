"""What results say about each other: comparisons and gates, leaderboards, selected winners, searches.

Decides; `runner.reports` presents.
"""
