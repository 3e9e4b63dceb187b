"""The quality of a dataset: its tables, its JSON, and its page."""
