"""Search engines as retrievers; the engines run in this process or in the user's server."""
