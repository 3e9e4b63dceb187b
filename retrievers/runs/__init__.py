"""Rankings from elsewhere: files of runs, and retriever objects of other libraries."""
