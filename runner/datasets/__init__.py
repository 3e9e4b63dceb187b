"""Datasets: each format a module, and what every dataset is."""
