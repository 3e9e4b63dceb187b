"""Turn tool calls into events: which tool, which files, and the document that records them."""
