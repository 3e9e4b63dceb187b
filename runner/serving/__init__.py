"""A search API over HTTP, which puts retrievers behind the routes that `retrievers.http_api` queries by default."""
