"""Recorded runs on disk: their folders, their provenance, their outcome, and the definitions of their tasks."""
