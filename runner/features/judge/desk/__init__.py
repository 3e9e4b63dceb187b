"""A desk in the browser at which people judge a pool of documents: journals, order of work, pages and export.

Each assessor has an append-only journal. Everything else (what is left, agreement, final grades) follows from them.
"""
