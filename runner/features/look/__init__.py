"""The server of `look`: the pages of stored runs, newer data while a sweep is running, whole texts, and the desk.

It renders the pages that reports have as files; the desk is that of `runner.features.judge.desk`. It only reads runs.
"""
