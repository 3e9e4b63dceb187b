"""The table of a paper, and the cells with the commands that reproduce them."""
