"""Search through services over HTTP: the form of requests and replies, addresses, faults."""
