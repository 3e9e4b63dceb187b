"""Golden reports: the JSON document of one search type or several, and its Markdown."""
