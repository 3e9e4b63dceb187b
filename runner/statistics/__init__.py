"""Statistics on arrays: intervals, tests, corrections, effects, selection."""
