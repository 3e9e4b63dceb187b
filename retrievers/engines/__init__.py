"""Search engines that run in this process or in a server of the user's, as retrievers."""
