"""What scores mean: how sure they are, and where they differ."""
