"""The Python API: the features of the command line as functions that return values. See `docs/python.md`."""
