"""Reports: one room for each kind, a module for the few tables of other verbs, and the console.

Numbers, tables, Markdown, pages and plots are rendered by `rendering`.
"""
