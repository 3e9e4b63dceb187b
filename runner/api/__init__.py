"""The Python API: what the command line does, as functions that return values. See `docs/python.md`."""
