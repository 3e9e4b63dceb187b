"""Datasets: one module per format, and what all formats share."""
