"""A search API over HTTP, with the routes that `retrievers.http_api` queries by default."""
