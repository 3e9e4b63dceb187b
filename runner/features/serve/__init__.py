"""A search API over HTTP, with the routes that `retriever=http/runner` queries."""
