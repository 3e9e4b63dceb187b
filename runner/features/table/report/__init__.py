"""The table of a paper: LaTeX, Markdown, CSV, and the cells with the commands that reproduce them."""
