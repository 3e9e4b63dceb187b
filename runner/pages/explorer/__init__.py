"""The explorer: pages that people keep open, with their data inside.

A page is readable as it stands. Its script, `static/`, adds what needs one: sorting, filters, plots and the queries of
each system. Knows nothing of sweeps, runs or comparisons; their rooms choose the data and the plots.
"""
