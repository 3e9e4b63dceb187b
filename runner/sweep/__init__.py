"""Sweeps: axes, composition of configs, execution, reports."""
