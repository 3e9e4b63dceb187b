"""What an agent did, call by call: which tool, which files, and the document that all of it is written to."""
