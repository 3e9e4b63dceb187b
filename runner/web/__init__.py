"""What servers of pages and APIs share: the server, its limits, and who may use it."""
