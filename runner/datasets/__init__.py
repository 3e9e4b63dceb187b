"""Datasets: one module for each format, and what all of them share."""
