"""Recorded runs on disk: where they lie, whose they are, what they came to, and the tasks that they were given."""
