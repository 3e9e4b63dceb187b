"""Language models during a search: their interface, the prompts, and the calls that a search will make."""
