"""What is costly to rebuild, kept on disk: entries, the lock that one process builds under, and the store of both."""
