"""The golden report format: reports are read as results, and results become reports for JSON."""
