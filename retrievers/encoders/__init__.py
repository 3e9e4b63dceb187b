"""Encoders: they turn texts into vectors."""
