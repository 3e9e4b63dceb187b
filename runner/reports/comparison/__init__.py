"""Results side by side: whether they may be, how they differ and how surely, and the rules of a gate."""
