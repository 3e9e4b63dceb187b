"""Synthesise queries from chunks: validate, select bundles, generate, validate again, save."""
