"""Analyse scores: their uncertainty, and the queries on which systems differ."""
