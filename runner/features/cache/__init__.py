"""List, verify and prune the entries of the store."""
