"""Read exported spans of retrieval from production: what users searched for, what was served, and their feedback."""
